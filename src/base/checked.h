// Arithmetic that reports overflow, and rounding for layouts.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace near::base {

/// result = a + b; returns false on overflow.
template <std::integral T>
[[nodiscard]] constexpr bool checked_add(T a, T b, T& result) {
  return !__builtin_add_overflow(a, b, &result);
}

/// result = a * b; returns false on overflow.
template <std::integral T>
[[nodiscard]] constexpr bool checked_multiply(T a, T b, T& result) {
  return !__builtin_mul_overflow(a, b, &result);
}

/// The smallest multiple of `unit`, a power of two, that is at least `value`.
constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) & ~(unit - 1);
}

constexpr bool is_power_of_two(std::uint64_t value) { return value != 0 && (value & (value - 1)) == 0; }

} // namespace near::base
