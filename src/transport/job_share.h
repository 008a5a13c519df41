// Whether long yields are due to other programs, or to the ranks of this job themselves.
//
// A yield takes long if another program computes on the processor. It also takes long among many ranks of one job: some compute for a
// while, and those that nap are served before one that yields, each time they wake. If such yields made ranks nap, as beside another
// program (long_turns.h), their naps would make the yields of others long, and so on: with 16 ranks on two processors, a program that
// polls took ten times as long until it ended (doc/adr/0046). So the time for which processors were busy is compared with that of the
// ranks.
#pragma once

#include "os/affinity.h"

#include <cstdint>
#include <vector>

namespace near::transport {

/// Of one thread.
class JobShare {
public:
  /// Whether other programs than the ranks that share processors with this thread have had a sixth of the time of these processors, lately:
  /// between two calls that were a tenth of a second to a second apart. False as long as there were none. Such a call takes a
  /// system call for each of these ranks, and reads a file that has a row for each processor of the machine.
  bool others_run(std::uint64_t now_ns);

  /// For how long processors were idle, or busy with the ranks, in nanoseconds.
  struct Times {
    std::uint64_t idle_ns = 0, ranks_ns = 0;
  };
  /// Whether others have had a sixth of the time of so many processors, between two measurements that are `time_ns` apart.
  static bool others_ran(unsigned processors, std::uint64_t time_ns, Times before, Times after);

private:
  void find_ranks();
  /// Returns false if they cannot be had.
  bool measure(Times& times) const;

  std::vector<std::int32_t> ranks_; ///< their process IDs
  os::CpuSet processors_;
  std::uint64_t since_ns_ = 0;
  Times since_; ///< the times at since_ns_
  bool others_run_ = false;
};

} // namespace near::transport
