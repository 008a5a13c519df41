// The running jobs: the choice of one if --job is not given, and their list.
#include "base/text.h"
#include "os/process.h"
#include "segment/parts.h"
#include "segment/segment.h"
#include "tools/commands.h"

#include <cstdio>
#include <ctime>

namespace near::tools {

namespace {

std::string age_text(std::uint64_t started_ns) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  auto seconds = static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9 -
                 static_cast<double>(started_ns) * 1e-9;
  return seconds < 0 || seconds > 1e9 ? "-" : base::format("{:.0f} s", seconds);
}

std::string command_text(std::int32_t launcher) {
  constexpr std::size_t shown = 100;
  auto text = os::arguments_of(launcher);
  return text.size() <= shown ? base::printable(text) : base::printable(text.substr(0, shown)) + " ...";
}

} // namespace

std::string jobs_text(const std::vector<std::int32_t>& launchers) {
  std::string text = base::format("{:>9} {:>6} {:>9}  {}\n", "pid", "ranks", "for", "command");
  for (auto launcher : launchers) {
    segment::Segment segment;
    bool known = segment::attach_job(launcher, segment).ok();
    std::uint32_t ranks = known ? segment.job_size() : 0;
    for (const auto& part : segment::parts_of(launcher)) ranks += part.ranks;
    text += base::format("{:>9} {:>6} {:>9}  {}\n", launcher, ranks != 0 ? std::to_string(ranks) : "?",
                         known ? age_text(segment.started_ns()) : "?", command_text(launcher));
  }
  return text;
}

bool choose_job(std::int32_t& job) {
  if (job != 0) return true;
  auto running = segment::running_jobs();
  if (running.size() == 1) {
    job = running[0];
    return true;
  }
  if (running.empty()) {
    std::fputs("near: you have no running NearMPI job\n", stderr);
    return false;
  }
  std::fprintf(stderr, "near: you have %zu running jobs; choose one with --job PID\n", running.size());
  std::fputs(jobs_text(running).c_str(), stdout);
  return false;
}

} // namespace near::tools
