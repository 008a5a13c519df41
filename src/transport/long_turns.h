// Whether the waits of ranks that share processors yield first or sleep at once, and whether their polls yield or nap (doc/adr/0046).
//
// Among ranks that exchange messages, a yield costs less than a sleep and its wake-up. But a thread that yields goes to the end of the
// queue and gives up what the scheduler owes it: a program that computes then gets the processor for a whole time slice. A thread that
// is woken takes the processor back at once. Which of the two costs less depends on the other program, its niceness, and the kernel's
// settings. So both are measured, by the time for each wait, including what the program does between its waits. Waits yield until some
// yields have taken very long. Then a number of waits sleep. If a wait that sleeps takes less time on average, twice as many sleep the
// next time; otherwise, twice as many long yields pass before waits sleep again. Long yields come in bursts, so several times are averaged.
#pragma once

#include <algorithm>
#include <cstdint>

namespace near::transport {

/// Decides for one thread whether its waits sleep at once. Times are in nanoseconds.
class LongTurns {
public:
  /// Called at the beginning of a wait. Returns whether the wait sleeps at once. Reads the clock at the first of the waits that yield or
  /// sleep, and after the last one that sleeps.
  bool begins_asleep(std::uint64_t (*clock)()) {
    if (waits_ == 0) began_ = clock();
    if (sleeping_ && waits_ == sleeps_) judge(clock());
    ++waits_;
    return sleeping_;
  }
  /// Whether waits sleep at once now.
  bool asleep() const { return sleeping_; }
  /// Records that consecutive yields of a wait took `took_ns` and ended at `now`.
  void yielded(std::uint64_t took_ns, std::uint64_t now) {
    if (took_ns < long_ns || sleeping_) return;
    if (now - last_long_yield_ > forgotten_ns)
      begin_anew(now - took_ns);
    else if (waits_ == 0)
      begin_with_one(now - took_ns);
    last_long_yield_ = now;
    if (++long_yields_ < borne_) return;
    of_yields_.add(now - began_, waits_);
    sleeping_ = true;
    begin(now);
  }
  /// Leaves out of the measurement a wait that lasted from `since` until `now` for reasons other than waiting for a processor.
  void leave_out(std::uint64_t since, std::uint64_t now) {
    began_ = began_ <= since ? began_ + (now - since) : std::max(began_, now);
  }
  /// Makes waits yield again, although too few have slept to judge.
  void give_up() {
    sleeping_ = false;
    begin(0);
  }
  /// Begins to measure waits that yield, after others that were not recorded.
  void competition_begins() {
    if (!sleeping_) begin(0);
  }

  /// Ranks take turns of a few microseconds; a time slice is 3 ms or more.
  static constexpr std::uint64_t long_ns = 1'000'000;
  /// How many long yields pass before waits sleep, and how many waits then sleep. Sleeping in vain costs 20 us or more per wait, so 16
  /// waits lose less than a time slice.
  static constexpr std::uint32_t fewest_borne = 2, most_borne = 64, fewest_sleeps = 16, most_sleeps = 1024;
  /// After this time without a long yield, the other program is considered gone, and what was measured beside it no longer counts.
  static constexpr std::uint64_t forgotten_ns = 1'000'000'000;
  /// A wait that takes longer has other reasons.
  static constexpr std::uint64_t other_reasons_ns = 100'000'000;

private:
  /// The average time for each wait, in which the latest waits count most.
  class Cost {
  public:
    void add(std::uint64_t took_ns, std::uint32_t waits) {
      const double weight = std::min(waits, most_sleeps);
      ns_ = kept * ns_ + weight * static_cast<double>(took_ns) / waits;
      waits_ = kept * waits_ + weight;
    }
    double ns_for_each() const { return ns_ / waits_; }

  private:
    static constexpr double kept = 0.75;
    double ns_ = 0, waits_ = 0;
  };

  void begin(std::uint64_t now) {
    began_ = now;
    waits_ = long_yields_ = 0;
  }
  /// Begins with a first wait that has had a long yield, and that began at `now`.
  void begin_with_one(std::uint64_t now) {
    begin(now);
    waits_ = 1;
  }
  /// Like begin_with_one(), but beside a program about which nothing is known.
  void begin_anew(std::uint64_t now) {
    begin_with_one(now);
    of_yields_ = of_sleeps_ = {};
    borne_ = fewest_borne;
    sleeps_ = fewest_sleeps;
  }
  /// Compares the waits that slept, which are over, with those that yielded.
  void judge(std::uint64_t now) {
    of_sleeps_.add(now - began_, waits_);
    if (of_sleeps_.ns_for_each() < of_yields_.ns_for_each()) {
      sleeps_ = std::min(2 * sleeps_, most_sleeps);
      borne_ = fewest_borne;
    } else {
      sleeps_ = fewest_sleeps;
      borne_ = std::min(2 * borne_, most_borne);
    }
    sleeping_ = false;
    begin(now);
  }

  bool sleeping_ = false;
  std::uint32_t waits_ = 0, long_yields_ = 0; ///< since began_
  std::uint32_t borne_ = fewest_borne, sleeps_ = fewest_sleeps;
  std::uint64_t began_ = 0; ///< when waits began to yield, or to sleep
  std::uint64_t last_long_yield_ = 0;
  Cost of_yields_, of_sleeps_;
};

/// The LongTurns of waits, and of programs that poll; there, a wait is the polls until something comes.
inline thread_local constinit LongTurns long_turns, long_turns_of_polls;

/// When destroyed, leaves a wait that took long for other reasons out of the comparison of yields and sleeps.
class LeaveOutIfLong {
public:
  explicit LeaveOutIfLong(std::uint64_t since) : since_(since) {}
  ~LeaveOutIfLong() {
    if (last_ > since_ + LongTurns::other_reasons_ns) long_turns.leave_out(since_, last_);
  }
  LeaveOutIfLong(const LeaveOutIfLong&) = delete;
  LeaveOutIfLong& operator=(const LeaveOutIfLong&) = delete;

  /// Notes that the wait has lasted until `now`.
  void lasts_until(std::uint64_t now) { last_ = now; }

private:
  std::uint64_t since_, last_ = 0;
};

/// Returns how much of the time of a yield has probably gone to a rank that moves a long message, perhaps the one that is waited for. That
/// time does not count as polling. A process that computes keeps the processor for longer.
inline std::uint64_t turn_of_rank_ns(std::uint64_t yield_ns) {
  constexpr std::uint64_t switches_ns = 10'000, longest_turn_ns = 1'000'000;
  return yield_ns > switches_ns && yield_ns < longest_turn_ns ? yield_ns - switches_ns : 0;
}

/// Calls turns.yielded(), unless the yields took long because ranks of this job took turns (job_share.h).
void record_yields(LongTurns& turns, std::uint64_t took_ns, std::uint64_t now);

} // namespace near::transport
