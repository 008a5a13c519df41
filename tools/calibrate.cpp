// `near calibrate`: the machine's profile, measured, shown or removed.
#include "calibrate/calibrate.h"
#include "calibrate/blocks.h"

#include "os/descriptor.h"
#include "tools/commands.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <unistd.h>

namespace near::tools {

namespace {

using profile::Profile;
using profile::Source;

/// The time for messages: `near calibrate` may take 2 s, and also measures blocks, reads the topology and starts processes.
constexpr std::uint64_t budget_ns = 1'400'000'000;
/// The time for blocks, on a slow or busy machine.
constexpr std::uint64_t blocks_budget_ns = 3'000'000'000;

std::string rate_or_dash(std::uint32_t nanoseconds_per_mib) {
  return nanoseconds_per_mib == 0 ? "-" : base::format("{:.1f}", 1048576.0 / nanoseconds_per_mib);
}

/// Prints nanoseconds per block for each length, for one block out of every 16.
void print_blocks(const profile::BlockCosts& blocks) {
  if (!blocks.complete()) {
    std::printf("\npacking of datatypes: not measured, or not everything of it; `near calibrate` measures it "
                "on an idle machine\n");
    return;
  }
  constexpr std::size_t shown_step = 2;
  static_assert(profile::block_steps[shown_step] == 16);
  std::printf("\npacking, ns for one block out of every 16\n%10s %9s %9s %9s %9s   by where the blocks are\n",
              "", "L1", "L2", "L3", "memory");
  for (std::size_t length = 0; length < profile::block_lengths.size(); ++length) {
    const auto& row = blocks.block[0][0][length][shown_step];
    std::printf("%6u B  ", profile::block_lengths[length]);
    for (std::uint32_t cost : row) std::printf(" %9.2f", cost / 1000.0);
    std::printf("\n");
  }
}

void print(const Profile& profile, const std::string& path) {
  std::printf("%s\nmeasured %s, GB/s; \"rewritten\" is what jobs begin with\n", path.c_str(),
              profile.measured.c_str());
  for (std::size_t distance = 0; distance < segment::distances; ++distance) {
    const char* title = segment::distance_name(static_cast<segment::Distance>(distance));
    for (std::size_t size = 0; size < segment::size_classes; ++size)
      for (Source source : {Source::reused, Source::rewritten}) {
        const auto& row = profile.cost[distance][size][static_cast<std::size_t>(source)];
        if (row == std::array<std::uint32_t, profile::kinds>{}) continue;
        if (title != nullptr)
          std::printf("\n%-9s %-10s %8s %18s %21s %8s\n", title, "message", "direct", "pipelined, cached",
                      "pipelined, streaming", "cma");
        title = nullptr;
        std::printf("%5llu KiB %-10s %8s %18s %21s %8s\n", 4ull << size, profile::source_name(source),
                    rate_or_dash(row[0]).c_str(), rate_or_dash(row[1]).c_str(), rate_or_dash(row[2]).c_str(),
                    rate_or_dash(row[3]).c_str());
      }
    if (const auto& times = profile.short_time[distance];
        std::any_of(times.begin(), times.end(), [](std::uint32_t time) { return time != 0; })) {
      std::printf("short messages, half a round trip:");
      for (std::size_t size = 0; size < times.size(); ++size)
        std::printf("%s %s %s", size == 0 ? "" : ",",
                    profile::short_sizes[size] < 1024
                        ? base::format("{} B", profile::short_sizes[size]).c_str()
                        : base::format("{} KiB", profile::short_sizes[size] >> 10).c_str(),
                    times[size] == 0 ? "-" : base::format("{:.0f} ns", times[size] / 1000.0).c_str());
      std::printf("\n");
    }
    const auto& stores = profile.store_cost[distance];
    if (stores[0] != 0 || stores[1] != 0)
      std::printf("stores into packets: cached %s, streaming %s\n", rate_or_dash(stores[0]).c_str(),
                  rate_or_dash(stores[1]).c_str());
  }
  if (!profile.no_cma.empty())
    std::printf("\nno cma: the kernel does not let processes copy from each other here (%s)\n",
                profile.no_cma.c_str());
  print_blocks(profile.blocks);
}

void show_progress(unsigned done, unsigned total, const calibrate::Pair& pair, profile::Kind kind) {
  constexpr unsigned width = 30;
  std::string bar(width * done / total, '#');
  std::fprintf(stderr, "\r\033[K[%-*s] processors %u and %u (%s): %s", static_cast<int>(width), bar.c_str(),
               pair.sender, pair.receiver, segment::distance_name(pair.distance), calibrate::kind_name(kind));
}

int measure(const topo::Machine& machine, const std::string& path) {
  os::CpuSet allowed;
  if (!os::affinity_of(0, allowed).ok() || !profile::prepare(path).ok()) return complain();
  Profile made;
  bool terminal = os::is_terminal(2);
  auto report = [terminal](unsigned done, unsigned total, const calibrate::Pair& pair, profile::Kind kind) {
    if (terminal) show_progress(done, total, pair, kind);
  };
  auto measured = calibrate::measure(machine, allowed, budget_ns, report, made);
  if (terminal) std::fputs("\r\033[K", stderr);
  if (!measured.ok()) return complain();
  // The profile is useful to jobs without them, too.
  if (!calibrate::measure_blocks(blocks_budget_ns, made.blocks).ok()) (void)complain();
  made.machine = profile::machine_name(machine);
  char date[32] = {};
  std::time_t now = std::time(nullptr);
  std::tm broken{};
  std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &broken));
  made.measured = date;
  if (!profile::save(made, path).ok()) return complain();
  print(made, path);
  return 0;
}

int show(const std::string& machine, const std::string& path) {
  Profile known;
  bool found = false;
  if (!profile::load(machine, known, found).ok()) return complain();
  if (found) {
    print(known, path);
    return 0;
  }
  std::fprintf(stderr, "near: there is no profile %s; `near calibrate` makes it\n", path.c_str());
  return 1;
}

int remove(const std::string& path) {
  if (unlink(path.c_str()) == 0 || errno == ENOENT) return 0;
  (void)base::fail_system("unlink", errno, path);
  return complain();
}

} // namespace

int calibrate(Calibrate what) {
  topo::Machine machine;
  std::string path;
  if (!topo::read_machine(machine).ok()) return complain();
  auto name = profile::machine_name(machine);
  if (!profile::path_of(name, path).ok()) return complain();
  switch (what) {
  case Calibrate::measure: return measure(machine, path);
  case Calibrate::show: return show(name, path);
  case Calibrate::remove: break;
  }
  return remove(path);
}

} // namespace near::tools
