// How far away the bytes are that other processes have written: whether their lines come from a shared cache or from farther.
#pragma once

#include "base/atomic.h"

#include <cstdint>

namespace near::datatype {

/// Measured now and then, since on virtual machines it changes while the program runs. Any thread may call; if several do at the same
/// time, measurements may be lost.
class Distance {
public:
  /// Whether this call should measure how long a line takes to come.
  bool is_due() {
    constexpr std::uint32_t calls_between = 32;
    const std::uint32_t calls = calls_.load_relaxed();
    calls_.store_relaxed(calls + 1);
    return calls % calls_between == 0;
  }
  /// Adds a measurement: the time for one line, with the two looks at the clock that enclose it.
  void note(std::uint64_t ns) {
    // Lines of a shared cache take 30 to 60 ns, others 120 to 300; the looks take 20 to 40.
    constexpr std::uint64_t longest_near = 120;
    const std::int32_t sum = sum_.load_relaxed();
    if (ns > longest_near && sum < most) sum_.store_relaxed(sum + 1);
    if (ns <= longest_near && sum > -most) sum_.store_relaxed(sum - 1);
  }
  /// Whether most of the last measurements took long; false before the first one.
  bool is_far() const { return sum_.load_relaxed() > 0; }

private:
  static constexpr std::int32_t most = 3;
  base::Atomic<std::uint32_t> calls_{0};
  base::Atomic<std::int32_t> sum_{0};
};

} // namespace near::datatype
