// Decides which empty polls yield the processor, where ranks share processors.
//
// A rank that polls for a message keeps the processor from the rank that will send it, until its time slice
// of a few milliseconds is over. A yield takes less than a microsecond, or two if another process wants the
// processor. But a yield after each empty poll would cost too much in a program that tests a thousand requests
// one by one, or that computes between its polls.
//
//   sweep    the empty polls from a poll of one thing (the sweep's mark) to the next poll of the same thing:
//            a program that tests one request in a loop makes sweeps of one poll; one that tests a thousand
//            requests in turn makes sweeps of a thousand. If progress moves something, the sweep ends without
//            a yield.
//   mark     a program that goes on to poll something else leaves the mark behind. So the mark moves to what is
//            being polled after as many polls as the last sweep had, then after twice as many, and so on, as in
//            Brent's algorithm for finding cycles (BIT 20, 1980).
//   idle     a sweep that took little longer than its polls and its other MPI calls take: a loop that polls may
//            also ask for its rank, or test requests that are null
//
// The end of an idle sweep yields. The end of any other sweep yields if the program has had the processor for
// a turn: for `turn_ns`, or for as long as the last yield took if that was longer, but at most for
// `longest_turn_ns`. Without this bound, three ranks that poll on one processor would make each other's turns longer
// and longer.
//
// A program may also do its work in pieces of about 50 ns, with a poll after each. By these times its sweeps are idle,
// and each yield takes as long as ten pieces. So after a number of yields in vain, during which no poll has moved
// anything, an idle sweep yields only if the program has had the processor for a certain time, which grows with each
// further yield in vain.
#pragma once

#include <algorithm>
#include <cstdint>

namespace near::p2p {

/// Decides which of a thread's empty polls yield. Times are nanoseconds of any monotonic clock. `calls` counts
/// the thread's MPI calls, including the one that polls.
class Patience {
public:
  /// The shortest and the longest turn of a program that computes between its polls.
  static constexpr std::uint64_t turn_ns = 50'000, longest_turn_ns = 100'000;
  /// After this many checks a sweep ends without its mark, because the marked request may be gone.
  static constexpr std::uint64_t longest_sweep = 2048;
  /// The most time that an idle sweep spends on a poll, on each thing that a poll checks, and on each other
  /// MPI call.
  static constexpr std::uint64_t poll_ns = 1000, check_ns = 250, call_ns = 500;

  /// After this many yields in vain, an idle sweep yields only if the thread has had the processor for a time that grows by `more_ns`
  /// with each, up to `longest_in_vain_ns`. If eight ranks that pass a token share a processor, the token comes after some eight yields
  /// of each.
  static constexpr std::uint64_t most_in_vain = 16, more_ns = 500, longest_in_vain_ns = 3000;

  /// Notes an empty poll of `what` (not 0) that checked `checks` things. Returns true if the poll begins or
  /// ends a sweep; only then does the caller read the clock and call gives_way().
  bool polled(std::uintptr_t what, std::uint64_t checks) {
    polls_ += 1;
    checks_ += checks;
    return ends(what) || mark_ == 0 || polls_ >= limit_;
  }

  /// Whether this poll yields; if so, the caller yields and then calls came_back(). With `always`, each end
  /// of a sweep yields, even if the program computes between its polls.
  bool gives_way(std::uintptr_t what, std::uint64_t now_ns, std::uint64_t calls, bool always = false) {
    bool ended = mark_ != 0 && ends(what);
    if (mark_ != 0)
      limit_ = ended ? polls_ : 2 * limit_ + 1; // odd, so that the mark does not skip every other thing
    // The thread's calls include the polls of this sweep.
    std::uint64_t others = calls - calls_ - std::min(calls - calls_, polls_);
    bool idle = now_ns - since_ns_ <= poll_ns + checks_ * check_ns + others * call_ns;
    bool its_turn_is_over = now_ns - back_ns_ >= std::clamp(away_ns_, turn_ns, longest_turn_ns);
    begin_sweep(what, now_ns, calls);
    // The program has computed or waited, or others took the processor; or it polls something else, since what it polled has come.
    if (!idle || !ended) in_vain_ = 0;
    if (in_vain_ >= most_in_vain)
      idle = now_ns - back_ns_ >= std::min((in_vain_ - most_in_vain + 1) * more_ns, longest_in_vain_ns);
    if (!ended || !(idle || its_turn_is_over || always)) return false;
    left_ns_ = now_ns;
    return true;
  }

  /// Notes the end of the yield. `napped`: the caller slept instead, which gives the processor to others for longer than it is kept.
  void came_back(std::uint64_t now_ns, bool napped = false) {
    since_ns_ = back_ns_ = now_ns;
    away_ns_ = now_ns - left_ns_;
    if (!napped) ++in_vain_;
  }

  /// Ends the sweep: progress has moved something.
  void something_moved() {
    mark_ = 0;
    in_vain_ = 0;
  }

private:
  bool ends(std::uintptr_t what) const { return mark_ == what || checks_ >= longest_sweep; }
  void begin_sweep(std::uintptr_t what, std::uint64_t now_ns, std::uint64_t calls) {
    mark_ = what;
    polls_ = checks_ = 0;
    since_ns_ = now_ns;
    calls_ = calls;
  }

  std::uintptr_t mark_ = 0;                                         ///< 0: no sweep
  std::uint64_t limit_ = 1;                                         ///< the mark moves after this many polls
  std::uint64_t polls_ = 0, checks_ = 0, since_ns_ = 0, calls_ = 0; ///< of the sweep
  std::uint64_t left_ns_ = 0, back_ns_ = 0, away_ns_ = 0;           ///< of the last yield
  std::uint64_t in_vain_ = 0;                                       ///< yields since something moved
};

} // namespace near::p2p
