// The basic types as seen by C++, including those for which C++ has no standard name.
#pragma once

#include "abi/types.h"
#include "copy/raw.h"

#include <bit>
#include <cstdint>
#include <cstring>

namespace near::datatype {

/// What reductions and conversions need to know about a basic type. The numbers in the names are bits; for
/// complex types, the bits of one part.
enum class Basic : std::uint8_t {
  none,
  int8,
  int16,
  int32,
  int64,
  int128,
  uint8,
  uint16,
  uint32,
  uint64,
  float16,
  float32,
  float64,
  float80,
  float128,
  complex16,
  complex32,
  complex64,
  complex80,
  complex128,
  logical1, ///< bytes
  logical2,
  logical4,
  logical8,
  logical16,
  boolean,
  byte,
  character,
  wide_character,
  pair,
  packed,
};

__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 UnsignedInt128;
#if defined(__x86_64__)
__extension__ typedef __float128 Float128;
inline constexpr Basic long_double_basic = Basic::float80, long_double_complex_basic = Basic::complex80;
#else
using Float128 = long double; // arm64: binary128
inline constexpr Basic long_double_basic = Basic::float128, long_double_complex_basic = Basic::complex128;
#endif

/// IEEE 754 binary16 in memory; calculates as float.
struct Half {
  std::uint16_t bits = 0;

  operator float() const {
    std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
    std::uint32_t exponent = (bits >> 10) & 0x1fu, fraction = bits & 0x3ffu;
    if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (fraction << 13));
    if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
    float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }

  /// Rounds to nearest, ties to even.
  static Half from(float value) {
    std::uint32_t word = std::bit_cast<std::uint32_t>(value);
    auto sign = static_cast<std::uint16_t>((word >> 16) & 0x8000u);
    std::uint32_t magnitude = word & 0x7fffffffu;
    auto half = [sign](std::uint32_t rest) { return Half{static_cast<std::uint16_t>(sign | rest)}; };
    if (magnitude > 0x7f800000u) return half(0x7e00u | ((magnitude >> 13) & 0x3ffu)); // NaN
    if (magnitude >= 0x477ff000u) return half(0x7c00u);                               // rounds to infinity
    if (magnitude < 0x38800000u) {
      // Subnormal: adding 2^-1 moves the halfs' last place to the float's last place, rounding on the way.
      float shifted = std::bit_cast<float>(magnitude) + 0.5f;
      return half(std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u);
    }
    std::uint32_t odd = (magnitude >> 13) & 1u;
    return half((magnitude + 0xfffu + odd - (112u << 23)) >> 13);
  }
};
static_assert(sizeof(Half) == 2 && alignof(Half) == 2);

template <class T>
struct Complex {
  T re, im;
};

/// Reads a value that may be unaligned: user buffers are aligned as
/// the standard requires, packed data need not be.
template <class T>
[[gnu::always_inline]] inline T load(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
template <class T>
[[gnu::always_inline]] inline void store(void* to, const T& value) {
  std::memcpy(to, &value, sizeof value);
}
#if defined(__x86_64__)
// Ten of an extended double's sixteen bytes are its value. The rest keep their contents, so that results
// contain no left-overs of the stack and are bitwise equal from run to run.
inline void store(void* to, const long double& value) { copy::raw(to, &value, 10); }
inline void store(void* to, const Complex<long double>& value) {
  store(to, value.re);
  store(static_cast<char*>(to) + sizeof(long double), value.im);
}
#endif

} // namespace near::datatype
