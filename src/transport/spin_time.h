// How long a wait polls before it sleeps, if ranks have processors of their own.
//
// A thread that sleeps wakes up about 5 to 50 us after what it waits for has come. That is little compared with a long wait. But a program
// whose waits last a little longer than they poll loses that time in every wait (doc/adr/0061).
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

namespace near::transport {

/// Learns from sleeps how long to poll: after two in a row that ended soon, waits poll for longer. A long sleep ends that.
class SpinTime {
public:
  /// The longest polling time that is learnt, in nanoseconds.
  static constexpr std::uint64_t longest_ns = 1'000'000;

  /// Call this after each sleep. Returns the time for which waits are to poll from now on; `present_ns` is the time until now.
  /// `quiet_ns` is the time from the last arrival to the end of the sleep. `was_rung`: this process was woken, so this was not a nap.
  std::uint64_t after_sleep(std::uint64_t present_ns, std::uint64_t quiet_ns, bool was_rung) {
    if (usual_ns_ == 0) usual_ns_ = present_ns;
    const bool is_short = quiet_ns <= longest_ns;
    if (is_short && !was_rung) return present_ns;
    const bool again = std::exchange(last_was_short_, is_short);
    if (!is_short) return usual_ns_;
    return again ? std::max(present_ns, std::min(2 * quiet_ns, longest_ns)) : present_ns;
  }

private:
  std::uint64_t usual_ns_ = 0;
  bool last_was_short_ = false;
};

} // namespace near::transport
