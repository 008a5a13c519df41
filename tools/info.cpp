// `near info`: describes this installation and this machine.
#include "base/knob.h"
#include "os/limits.h"
#include "os/memory.h"
#include "profile/profile.h"
#include "segment/segment.h"
#include "tools/commands.h"
#include "topo/slots.h"

#include <cstdio>

namespace near::tools {

namespace {

std::string profile_text(const topo::Machine& machine) {
  profile::Profile known;
  bool found = false;
  std::string path, name = profile::machine_name(machine);
  if (!profile::path_of(name, path).ok() || !profile::load(name, known, found).ok())
    return std::string(base::failure_text());
  if (!found) return "none, so jobs begin with built-in estimates; `near calibrate` measures this machine";
  return base::format("{}, measured {}", path, known.measured);
}

/// "node 0 DRAM 64 GiB, node 2 slow 16 GiB".
std::string memory_text(const topo::Machine& machine) {
  std::string text;
  for (const auto& node : machine.nodes)
    text += base::format("{}node {} {} {:.1f} GiB", text.empty() ? "" : ", ", node.number,
                         topo::tier_name(node.tier), static_cast<double>(node.bytes) / (1u << 30));
  return text.empty() ? "not known" : text;
}

/// The sources of huge pages for MPI_Alloc_mem.
std::string huge_text() {
  std::size_t huge = os::huge_page_size();
  if (huge == 0) return "this kernel has none";
  std::string policy = os::shared_huge_pages_policy();
  bool merged = policy == "advise" || policy == "always" || policy == "within_size" || policy == "force";
  std::string text = base::format("{} KiB; {} reserved and free; merged from ordinary pages: {}", huge >> 10,
                                  os::reserved_huge_pages(), merged ? "yes" : "no");
  if (!merged && !policy.empty())
    text += " (the administrator may `echo advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled`)";
  return text;
}

} // namespace

int info(bool knobs) {
  if (knobs) {
    for (const auto* knob : base::all_knobs())
      std::printf("%-20s %-10s %s (%s)%s\n", knob->name.c_str(), knob->text.c_str(), knob->help,
                  base::expected_of(*knob).c_str(),
                  knob->set ? base::format(" (set; default {})", knob->default_text).c_str() : "");
    constexpr segment::JobShape alone, pair{.ranks = 2, .processors = 2};
    std::printf(
        "\nEach rank reserves %llu KiB when it begins (NEAR_PACKETS, NEAR_EAGER_LIMIT, NEAR_QUEUE_SLOTS), "
        "or %llu KiB in a job of 2 to 16 ranks with a processor each, and up to %llu KiB once there is "
        "traffic (NEAR_PIPELINE).\n",
        static_cast<unsigned long long>(segment::reserved_by_knobs(alone) >> 10),
        static_cast<unsigned long long>(segment::reserved_by_knobs(pair) >> 10),
        static_cast<unsigned long long>(segment::bytes_by_knobs(pair) >> 10));
    return 0;
  }
  topo::Machine machine;
  os::CpuSet affinity;
  if (!topo::read_machine(machine).ok() || !os::affinity_of(0, affinity).ok()) return complain();
  auto limits = os::read_limits();
  auto slots = topo::count_slots(affinity, limits);
  std::printf("NearMPI %s\nmachine: %s\nslots: %u (%s)\n", NEAR_VERSION, machine.text().c_str(), slots.count,
              slots.reason.c_str());
  for (const auto& limit : limits.memory)
    std::printf("memory limit: %llu MiB, %llu MiB used (%s)\n",
                static_cast<unsigned long long>(limit.bytes >> 20),
                static_cast<unsigned long long>(limit.used >> 20), limit.group.c_str());
  std::printf("memory: %s\nhuge pages: %s\n", memory_text(machine).c_str(), huge_text().c_str());
  std::printf("profile: %s\n", profile_text(machine).c_str());
  auto jobs = segment::running_jobs();
  if (jobs.empty())
    std::puts("your running jobs: none");
  else
    std::printf("your running jobs (near info --job shows the machine of one):\n%s", jobs_text(jobs).c_str());
  return 0;
}

} // namespace near::tools
