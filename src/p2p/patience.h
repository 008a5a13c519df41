// Which empty polls give the processor away, where ranks share processors.
//
// A rank that polls for a message keeps its processor from the rank that will send it: each round of polling
// then takes a time slice, some milliseconds. A yield takes under a microsecond, two when somebody else wants
// the processor. But one after each empty poll would be wrong for a program that tests a thousand requests
// one by one, and for one that computes between its polls.
//
//   sweep    the empty polls from one of some thing (its mark) to the next one of the same thing: a request
//            that is tested in a loop makes sweeps of one poll, a thousand requests that are tested one by
//            one a sweep of a thousand. Whatever progress moves ends the sweep, without a yield.
//   idle     a sweep that took little more time than its polls take, and the other MPI calls in it: programs
//            that poll ask for a rank or look at requests that are null as they go round
//
// The end of an idle sweep yields. The end of any other one yields if the program has had the processor for a
// turn: `turn_ns`, or as long as the last yield has taken, if that is more, up to `longest_turn_ns`. Without
// that bound, three ranks that poll on one processor would wait for ever longer turns of each other.
#pragma once

#include <algorithm>
#include <cstdint>

namespace near::p2p {

/// One per thread. Times are nanoseconds of any clock that only rises; `calls` counts the MPI calls of the
/// thread, with the one that polls.
class Patience {
public:
  /// Of a program that computes between its polls: the least time between two yields, and the most if it
  /// polls as often.
  static constexpr std::uint64_t turn_ns = 50'000, longest_turn_ns = 100'000;
  /// A sweep that has not come back to its mark by then ends: the marked request may be gone.
  static constexpr std::uint64_t longest_sweep = 2048;
  /// What a poll takes at most, then each further thing that it looks at, and each other MPI call.
  static constexpr std::uint64_t poll_ns = 1000, look_ns = 250, call_ns = 500;

  /// An empty poll of `what` (not 0) that looked at so many things. True: it begins or ends a sweep; then
  /// ask gives_way(). Others need no clock.
  bool polled(std::uintptr_t what, std::uint64_t looks) {
    polls_ += 1;
    looks_ += looks;
    return mark_ == what || mark_ == 0 || looks_ >= longest_sweep;
  }

  /// Whether the poll that polled() was told of yields; `always`: at each end of a sweep, whatever the
  /// program does meanwhile. If so, came_back() follows.
  bool gives_way(std::uintptr_t what, std::uint64_t now_ns, std::uint64_t calls, bool always = false) {
    bool ends = mark_ != 0;
    // Polls of a sweep that was given up are among the calls, too.
    std::uint64_t others = calls - calls_ - std::min(calls - calls_, polls_);
    bool idle = now_ns - since_ns_ <= poll_ns + looks_ * look_ns + others * call_ns;
    bool its_turn_is_over = now_ns - back_ns_ >= std::clamp(away_ns_, turn_ns, longest_turn_ns);
    begin_sweep(what, now_ns, calls);
    if (!ends || !(idle || its_turn_is_over || always)) return false;
    left_ns_ = now_ns;
    return true;
  }

  /// After the yield.
  void came_back(std::uint64_t now_ns) {
    since_ns_ = back_ns_ = now_ns;
    away_ns_ = now_ns - left_ns_;
  }

  /// Progress has moved something.
  void something_moved() { mark_ = 0; }

private:
  void begin_sweep(std::uintptr_t what, std::uint64_t now_ns, std::uint64_t calls) {
    mark_ = what;
    polls_ = looks_ = 0;
    since_ns_ = now_ns;
    calls_ = calls;
  }

  std::uintptr_t mark_ = 0;                                        ///< 0: no sweep
  std::uint64_t polls_ = 0, looks_ = 0, since_ns_ = 0, calls_ = 0; ///< of the sweep
  std::uint64_t left_ns_ = 0, back_ns_ = 0, away_ns_ = 0;          ///< of the last yield
};

} // namespace near::p2p
