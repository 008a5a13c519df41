// Whether others want the processor on which a thread waits and polls, in a job on several machines: ranks of a machine that shares
// this kernel (containers), ranks of another job, or any other program. What the ranks of one machine know about each other from the start
// is in WaitSettings::oversubscribed.
//
// A yield takes a fraction of a microsecond if nobody else wants the processor. So a thread that polls yields now and then. If a yield
// takes as long as a switch to another thread and back, somebody else does want it. Then the thread yields after every poll until
// yields are short again, because what it waits for may have to run on this processor. If yields take very long, it may sleep instead
// (long_turns.h).
#pragma once

#include <algorithm>
#include <cstdint>

namespace near::transport {

/// Learns from one thread's yields whether others want its processor.
class Competition {
public:
  /// Whether the processor was wanted at one of the last yields.
  bool exists() const { return short_left_ != 0; }
  /// Whether the thread should yield after this poll, which has found nothing. If so, it then passes the duration to yielded().
  bool should_yield() { return exists() || ++polls_ % polls_between == 0; }
  void yielded(std::uint64_t took_ns) {
    shortest_ns_ = std::min(shortest_ns_, std::max<std::uint64_t>(took_ns, 1));
    if (took_ns >= surely_ns || (took_ns >= switch_ns && took_ns >= times_shortest * shortest_ns_))
      short_left_ = most_short;
    else if (short_left_ != 0)
      --short_left_;
  }

  /// About 50 us, of which a yield takes less than a hundredth.
  static constexpr std::uint32_t polls_between = 64;
  /// This many short yields in a row mean that nobody else wants the processor.
  static constexpr std::uint32_t most_short = 32;

private:
  /// Two switches take a microsecond or more. Where system calls are slow, a yield without a switch may take as long.
  static constexpr std::uint64_t switch_ns = 1000, times_shortest = 3;
  /// No yield takes as long by itself: others may have wanted the processor from the start.
  static constexpr std::uint64_t surely_ns = 20'000;
  std::uint32_t polls_ = 0, short_left_ = 0;
  std::uint64_t shortest_ns_ = ~std::uint64_t{0} / times_shortest;
};

inline thread_local constinit Competition competition;

/// Whether others are known to want this thread's processor: ranks that share it, or anybody else.
bool processor_is_wanted();
/// Yields if the processor may be wanted. Returns false if it did not. Call it after a poll that has found nothing, without the engine
/// lock.
bool yield_to_others();

} // namespace near::transport
