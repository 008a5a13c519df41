// How far away the bytes are that other processes have written: whether their lines come from a shared cache or from farther away.
#pragma once

#include "base/atomic.h"

#include <cstddef>
#include <cstdint>

namespace near::datatype {

/// Measured from time to time, since on virtual machines the distance changes while the program runs. Any thread may call; if
/// several do so at the same time, measurements may be lost.
class LineDistance {
public:
  /// Whether this call should measure how long a line takes to arrive.
  bool is_due() {
    constexpr std::uint32_t calls_between = 31; // odd, since parts and neighbours often come in powers of two
    const std::uint32_t calls = calls_.load_relaxed();
    calls_.store_relaxed(calls + 1);
    return calls % calls_between == 0;
  }
  /// Adds a measurement: the time that one line took.
  void note(std::int64_t ns) {
    constexpr std::int64_t longest_near = 80; // lines of a shared cache take 30 to 60 ns, others 120 to 300
    const std::int32_t sum = sum_.load_relaxed();
    if (ns > longest_near && sum < most) sum_.store_relaxed(sum + 1);
    if (ns <= longest_near && sum > -most) sum_.store_relaxed(sum - 1);
  }
  /// Whether most of the last measurements were slow; false before the first one.
  bool is_far() const { return sum_.load_relaxed() > 0; }

private:
  static constexpr std::int32_t most = 3;
  base::Atomic<std::uint32_t> calls_{0};
  base::Atomic<std::int32_t> sum_{0};
};

/// Loads a byte of each line; the compiler cannot optimise the loads away. Precondition: bytes > 0.
inline void load_lines(const std::byte* first, std::size_t bytes) {
  const auto load = [](const std::byte* at) {
    static_cast<void>(*static_cast<const volatile unsigned char*>(static_cast<const void*>(at)));
  };
  for (std::size_t at = 0; at < bytes; at += base::cache_line) load(first + at);
  load(first + bytes - 1);
}

} // namespace near::datatype
