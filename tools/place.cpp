// `near place`: where the pages of a job or process lie. The folder tools/place samples and describes; this
// file decides when to sample: once, repeatedly, or while a program runs that near starts itself; and which machines.
#include "os/clock.h"
#include "os/descriptor.h"
#include "os/poller.h"
#include "os/process.h"
#include "os/signals.h"
#include "place/show.h"
#include "place/viewer.h"
#include "segment/activity.h"
#include "tools/commands.h"
#include "tools/output.h"
#include "tools/parts.h"
#include "tools/rounds.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <unistd.h>

namespace near::tools {

namespace {

constexpr int assertion_status = 3;

/// Writes the page so that a browser which reloads it during --watch never finds half of it. If the path is
/// not a regular file (but a link, a device or a pipe), it is written to, not replaced.
base::Result write_page(const std::string& path, const std::string& text) {
  Output draft;
  std::error_code none;
  auto there = std::filesystem::symlink_status(path, none).type();
  if (there != std::filesystem::file_type::regular && there != std::filesystem::file_type::not_found) {
    NEAR_TRY(draft.open(path));
    return draft.write(text);
  }
  auto beside = base::format("{}.{}", path, getpid());
  // In a folder that everybody may write to, somebody could have created a link of this name to another
  // file.
  unlink(beside.c_str());
  NEAR_TRY(draft.open(beside, "wxe"));
  auto written = draft.write(text);
  if (written.ok() && std::rename(beside.c_str(), path.c_str()) != 0)
    written = base::fail_system("rename", errno, path);
  if (!written.ok()) unlink(beside.c_str());
  return written;
}

base::Result show(const PlaceOptions& options, const place::Snapshot& snapshot, Output& output) {
  if (!options.page.empty()) NEAR_TRY(write_page(options.page, place::page_of(snapshot)));
  std::string text;
  if (options.watch && output.is_terminal() && !options.json) text = clear_screen;
  text +=
      options.json ? place::json_of(snapshot, !options.watch) + "\n" : place::text_of(snapshot, options.all);
  return output.write(text);
}

/// Returns 0, or 3 after listing the offenders on standard error.
int check(const PlaceOptions& options, const place::Snapshot& snapshot) {
  if (options.assert_local <= 0) return 0;
  auto text = place::assertion_text(snapshot, options.assert_local);
  if (text.empty()) return 0;
  std::fprintf(stderr, "near: %s", text.c_str());
  return assertion_status;
}

int sample_running(const PlaceOptions& options, Output& output) {
  std::int32_t pid = options.job != 0 ? options.job : options.pid;
  Rounds rounds;
  if (options.watch && !rounds.open(pid).ok()) return complain();
  place::Viewer viewer;
  if (!(options.job != 0 ? viewer.open_job(pid) : viewer.open_process(pid)).ok()) return complain();
  for (bool again = false;; again = true) {
    place::Snapshot snapshot;
    auto sampled = viewer.sample(snapshot);
    if (again && sampled.is(base::Code::gone)) break;
    if (!sampled.ok() || !show(options, snapshot, output).ok()) return complain();
    int status = check(options, snapshot);
    if (!options.watch || status != 0) return status;
    if (rounds.ends_within(options.interval_s)) break;
  }
  std::fputs("near: the job has ended\n", stderr);
  return 0;
}

// ---- a job on several machines -------------------------------------------------------------------------

/// What `near place` has printed on the machines.
Combined combine_places(const PlaceOptions& options, const std::vector<segment::JobPart>& parts) {
  std::vector<std::string> arguments = {"place"};
  if (options.all) arguments.emplace_back("--all");
  if (options.json) arguments.emplace_back("--json");
  if (options.assert_local > 0)
    arguments.insert(arguments.end(), {"--assert-local", base::format("{}", options.assert_local)});
  const auto answers = ask(parts, arguments);
  Combined all = combine(parts, answers);
  if (!options.json) return all;
  std::vector<std::pair<std::string, std::string>> documents;
  for (std::size_t at = 0; at < parts.size(); ++at)
    documents.emplace_back(parts[at].machine, answers[at].output);
  all.text = place::json_of(documents, !options.watch) + '\n';
  return all;
}

int sample_parts(const PlaceOptions& options, const std::vector<segment::JobPart>& parts, Output& output) {
  if (!options.page.empty()) {
    std::fputs("near: --html draws one machine, and this job runs on several; on each of them, "
               "`near place --html FILE` draws its part\n",
               stderr);
    return 1;
  }
  Repetition how;
  how.launcher = options.job;
  how.once = !options.watch;
  how.interval_s = options.interval_s;
  how.last_status = assertion_status;
  how.ask = [&] { return combine_places(options, parts); };
  how.show = [&](const Combined& all) {
    const bool clears = options.watch && output.is_terminal() && !options.json;
    return output.write((clears ? clear_screen : "") + all.text);
  };
  const std::optional<int> status = repeat(how);
  if (!status) std::fputs("near: the job has ended\n", stderr);
  return status.value_or(0);
}

// ---- a program of our own ------------------------------------------------------------------------------

/// A viewer of the job among the program's processes, or, if there is none (yet), of the program itself.
std::unique_ptr<place::Viewer> find_viewer(std::int32_t child, bool& job) {
  auto processes = os::descendants_of(child);
  processes.insert(processes.begin(), child);
  for (auto pid : processes) {
    auto viewer = std::make_unique<place::Viewer>();
    if (!viewer->open_job(pid).ok()) continue;
    job = true;
    return viewer;
  }
  auto viewer = std::make_unique<place::Viewer>();
  return viewer->open_process(child).ok() ? std::move(viewer) : nullptr;
}

/// Whether the snapshot `one` is worth more than `other`: it has more ranks between MPI_Init and
/// MPI_Finalize, and then more memory; of equal ones the later is better.
bool tells_more(const place::Snapshot& one, const place::Snapshot& other) {
  auto weight = [](const place::Snapshot& snapshot) {
    std::uint64_t bytes = 0;
    for (auto [node, count] : snapshot.bytes_on()) bytes += count;
    for (const auto& part : snapshot.parts)
      for (auto [node, count] : part.bytes_on) bytes += count;
    auto running = segment::phase_name(segment::Phase::ready);
    auto there = std::count_if(snapshot.processes.begin(), snapshot.processes.end(), [&](auto& process) {
      return process.problem.empty() && process.phase == running;
    });
    return std::tuple(!snapshot.job.empty(), there, bytes);
  };
  return weight(one) >= weight(other);
}

/// Passes signals on to the program, whose end will end us. Signals from a terminal have reached it
/// already.
void pass_on(os::SignalInbox& inbox, std::int32_t child) {
  std::int32_t sender = 0;
  while (int signal = inbox.take(sender))
    if (signal != SIGCHLD && sender != 0) os::send_signal(child, signal);
}

/// Shows the best sample of a program that has ended; `asserted` is what asserting samples with --watch has returned.
int report(const PlaceOptions& options, const place::Snapshot& best, int asserted, Output& output) {
  if (!options.watch && !show(options, best, output).ok()) return complain();
  // With --watch, samples of a job were asserted as they were taken. A launcher that has not yet started a
  // job is not its job.
  return !options.watch || best.job.empty() ? check(options, best) : asserted;
}

int sample_program(const PlaceOptions& options, Output& output) {
  static constexpr int signals[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT};
  enum : std::uint64_t { key_signals = 1 };
  os::SignalInbox inbox;
  os::Poller poller;
  if (!inbox.open(signals).ok() || !poller.open().ok() || !poller.add(inbox.descriptor(), key_signals).ok())
    return complain();
  os::Launch launch;
  launch.program = options.command[0];
  launch.arguments = options.command;
  for (char** variable = environ; *variable != nullptr; ++variable)
    launch.environment.emplace_back(*variable);
  launch.own_group = false;
  std::int32_t child = 0;
  if (!os::start_process(launch, child).ok()) return complain();

  constexpr double first_ms = 50; // doubled each time, so that short programs are sampled too
  const std::uint64_t started = os::monotonic_ns();
  std::unique_ptr<place::Viewer> viewer;
  bool job = false, any = false;
  int asserted = 0;
  place::Snapshot best;
  std::string problem = "it was too short";
  std::vector<std::uint64_t> keys;
  os::Ending ending;
  for (double next_ms = first_ms;;) {
    double now_ms = static_cast<double>(os::monotonic_ns() - started) * 1e-6;
    poller.wait(std::max(1, static_cast<int>(next_ms - now_ms)), keys);
    if (!keys.empty()) pass_on(inbox, child);
    bool none_left = false, ended = false;
    for (os::Ending one; !ended && os::reap(one, none_left);)
      if (one.pid == child) ending = one, ended = true;
    if (ended || none_left) break;
    now_ms = static_cast<double>(os::monotonic_ns() - started) * 1e-6;
    if (now_ms < next_ms) continue;
    next_ms = now_ms + std::min(options.interval_s * 1000, std::max(first_ms, now_ms));
    if (!job) viewer = find_viewer(child, job);
    place::Snapshot snapshot;
    if (viewer == nullptr || !viewer->sample(snapshot).ok()) {
      problem = base::failure_text();
      job = false; // the job has ended; the program may start another
      if (viewer != nullptr) viewer->read_traffic(best);
      continue;
    }
    if (options.watch && !show(options, snapshot, output).ok()) return complain();
    if (options.watch && job && asserted == 0) asserted = check(options, snapshot);
    if (!any || tells_more(snapshot, best)) best = std::move(snapshot);
    any = true;
  }
  if (any && viewer != nullptr) viewer->read_traffic(best); // all traffic, also after the last sample
  if (!any)
    std::fprintf(stderr, "near: '%s' ended before it could be sampled: %s\n", options.command[0].c_str(),
                 problem.c_str());
  const int reported = any ? report(options, best, asserted, output) : 1;
  return ending.status() != 0 ? ending.status() : reported;
}

} // namespace

int place(const PlaceOptions& options) {
  Output output;
  if (!options.output.empty() && !output.open(options.output).ok()) return complain();
  if (!options.command.empty()) return sample_program(options, output);
  const auto parts = options.job != 0 ? segment::parts_of(options.job) : std::vector<segment::JobPart>{};
  return parts.empty() ? sample_running(options, output) : sample_parts(options, parts, output);
}

} // namespace near::tools
