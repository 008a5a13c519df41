// Whether long yields are due to other programs, or to the ranks of this job themselves.
//
// A yield takes long if another program computes on the processor. It also takes long among many ranks of one job: some compute for a
// while, and those that nap are served before one that yields, each time they wake. If such yields made ranks nap, as beside another
// program (long_turns.h), their naps would make the yields of others long, and so on: a program of 16 ranks on two processors took up to
// ten times as long until it ended (doc/adr/0046). So the time for which processors were busy is compared with the processor time of the
// ranks.
//
// All threads of a rank count as the job's. A rank in another PID namespace cannot be told from other processes, and counts as another program.
#pragma once

#include "os/affinity.h"

#include <cstdint>
#include <vector>

namespace near::transport {

/// Of this process; called by one thread at a time.
class JobShare {
public:
  /// Whether other programs have recently used more than a third of one of the processors that ranks share with this thread: between two
  /// calls that were a tenth of a second, or more on large machines, to two seconds apart. False until that is known. Such a call
  /// takes two system calls for each rank, and reads a file that has a row for each processor of the machine.
  bool others_run();

  /// What the processors did between two measurements, in nanoseconds.
  struct Interval {
    std::uint64_t time, idle, ranks;
  };
  /// Whether others than the ranks used more than a third of a processor.
  static bool others_ran(unsigned processors, const Interval& interval);

private:
  struct Rank {
    std::int32_t pid;
    std::uint64_t used_ns;
  };
  /// Measures again. Returns false if the kernel does not report the times, or if these are other processors than before.
  bool measure(Interval& interval);
  /// Notes the processor time of a rank. Returns what it has used since the last measurement: 0 if it was not known then, and no more
  /// than its processors had.
  std::uint64_t add_rank(std::int32_t pid, const os::CpuSet& cpus, std::uint64_t time_ns);

  std::vector<Rank> ranks_, before_;
  os::CpuSet processors_;
  std::uint64_t since_ns_ = 0, idle_ns_ = 0; ///< at the last measurement
  bool others_run_ = false;                  ///< in the last interval
};

} // namespace near::transport
