// Whether long yields are due to other programs, or to the ranks of this job themselves.
//
// A yield takes long if another program computes on the processor. It also takes long among many ranks of one job: some compute for a
// while, and those that nap are served before one that yields, each time they wake. If such yields made ranks nap, as beside another
// program (long_turns.h), their naps would make the yields of others long, and so on: with 16 ranks on two processors, a program that
// polls took ten times as long until it ended (doc/adr/0046). So the processor time of the ranks is compared with the time that has passed.
#pragma once

#include <cstdint>
#include <vector>

namespace near::transport {

/// Of one thread.
class JobShare {
public:
  /// Whether the ranks that share processors with this thread have had less than nine tenths of the time of these processors since the
  /// last call. False at the first call, and after a second without one. Takes a system call for each of these ranks.
  bool others_run(std::uint64_t now_ns);

private:
  void find_ranks();
  /// Of the ranks so far, in nanoseconds.
  std::uint64_t time_used() const;

  std::vector<std::int32_t> ranks_; ///< their process IDs
  std::uint64_t processors_ = 1;
  std::uint64_t since_ns_ = 0, used_ns_ = 0; ///< at the last call
};

} // namespace near::transport
