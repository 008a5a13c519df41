// The sign of life between mpiexec and its agents: each sends something every second, and detects by silence a lost peer
// that the connection does not report, such as a machine without power or a cable that was pulled.
//
// mpiexec's NEAR_LOST_AFTER sets how long that takes.
#pragma once

#include "os/clock.h"

#include <algorithm>
#include <cstdint>

namespace near::launch {

class Silence {
public:
  Silence() : heard_ns_(os::monotonic_ns()), spoken_ns_(heard_ns_), looked_ns_(heard_ns_) {}
  /// Sets how many seconds of silence are too long, at least 2; 0: no limit.
  void set_limit(std::uint64_t seconds) {
    longest_ns_ = seconds == 0 ? 0 : std::max<std::uint64_t>(seconds, 2) * every_ns;
  }
  std::uint64_t limit_s() const { return longest_ns_ / every_ns; }
  void heard() { heard_ns_ = os::monotonic_ns(); }
  /// Sets whether silence is expected, since the other side is stopped.
  void expect(bool expected) {
    expected_ = expected;
    heard();
  }
  /// Whether it is time to send something; if so, the caller must.
  bool must_speak() {
    const std::uint64_t now = os::monotonic_ns();
    if (now < spoken_ns_ + every_ns) return false;
    spoken_ns_ = now;
    return true;
  }
  /// Whether the other side has been silent for too long. Time during which this process did not run, since it was stopped or
  /// its machine slept, does not count. Call this at least every second.
  bool is_too_long() {
    const std::uint64_t now = os::monotonic_ns();
    if (now - looked_ns_ > 2 * every_ns) heard_ns_ += now - looked_ns_ - every_ns;
    looked_ns_ = now;
    return !expected_ && longest_ns_ != 0 && now > heard_ns_ + longest_ns_;
  }
  /// For how long nothing has been received.
  std::uint64_t since(std::uint64_t now_ns) const { return now_ns > heard_ns_ ? now_ns - heard_ns_ : 0; }
  /// The longest time to wait before the next call of these.
  int wait_ms() const {
    const std::uint64_t now = os::monotonic_ns(), due = spoken_ns_ + every_ns;
    return now >= due ? 0 : static_cast<int>((due - now) / 1'000'000) + 1;
  }

private:
  static constexpr std::uint64_t every_ns = 1'000'000'000;

  std::uint64_t longest_ns_ = 5 * every_ns; ///< 0: no silence is too long
  std::uint64_t heard_ns_, spoken_ns_, looked_ns_;
  bool expected_ = false;
};

} // namespace near::launch
