// Whether long yields are due to other programs or to the ranks of this job.
//
// A yield takes long if another program computes on the processor. It also takes long among many ranks of one job: some compute for a
// while, and ranks that nap run before one that yields each time they wake. If such yields made ranks nap, as yields beside another
// program do (long_turns.h), their naps would make the yields of others long, and so on: a program of 16 ranks on two processors took up
// to ten times as long to finish (doc/adr/0046). So the time for which processors were busy is compared with the ranks' processor time.
//
// All threads of a rank count as the job's. A rank in another PID namespace cannot be told from other processes, and counts as another program.
#pragma once

#include "os/affinity.h"

#include <cstdint>
#include <vector>

namespace near::transport {

/// Measures for this process what other programs use of its processors. Called by one thread at a time.
class JobShare {
public:
  /// Whether other programs have recently used more than a third of one of the processors that ranks share with this thread: between two
  /// calls that were from a tenth of a second (more on large machines) to two seconds apart. False until that is known. Such a call
  /// makes two system calls for each rank, and reads a file that has a row for each processor of the machine.
  bool others_run();

  /// What the processors did between two measurements, in nanoseconds.
  struct Interval {
    std::uint64_t time, idle, ranks;
  };
  /// Whether anything other than the ranks used more than a third of a processor.
  static bool others_ran(unsigned processors, const Interval& interval);

private:
  struct Rank {
    std::int32_t pid;
    std::uint64_t used_ns;
  };
  /// Measures again. Returns false if the kernel does not report the times, or if the processors are not the same as before.
  bool measure(Interval& interval);
  /// Notes the processor time of a rank. Returns what the rank has used since the last measurement, at most the time that its processors
  /// had; 0 if the rank was not known then.
  std::uint64_t add_rank(std::int32_t pid, const os::CpuSet& cpus, std::uint64_t time_ns);

  std::vector<Rank> ranks_, before_;
  os::CpuSet processors_;
  std::uint64_t since_ns_ = 0, idle_ns_ = 0; ///< at the last measurement
  bool others_run_ = false;                  ///< in the last interval
};

} // namespace near::transport
