// Common to strided copies with AVX2 and AVX-512: separate elements, combined in a register.
//
// What kernel.h says about internal linkage holds here too.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstring>

namespace near::copy {
namespace {

inline __m128d two_of_8(const std::byte* first, const std::byte* second) {
  // _mm_load_sd() would dereference a double, which must be aligned.
  const __m128d low = _mm_castsi128_pd(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(first)));
  return _mm_loadh_pd(low, reinterpret_cast<const double*>(second));
}
inline __m256i four_of_8(const std::byte* from, std::ptrdiff_t stride) {
  return _mm256_castpd_si256(_mm256_insertf128_pd(_mm256_castpd128_pd256(two_of_8(from, from + stride)),
                                                  two_of_8(from + 2 * stride, from + 3 * stride), 1));
}
inline int word(const std::byte* from) {
  int value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
inline __m128i four_of_4(const std::byte* from, std::ptrdiff_t stride) {
  __m128i four = _mm_cvtsi32_si128(word(from));
  four = _mm_insert_epi32(four, word(from + stride), 1);
  four = _mm_insert_epi32(four, word(from + 2 * stride), 2);
  return _mm_insert_epi32(four, word(from + 3 * stride), 3);
}
inline __m256i eight_of_4(const std::byte* from, std::ptrdiff_t stride) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(four_of_4(from, stride)),
                                 four_of_4(from + 4 * stride, stride), 1);
}

/// Whether this many elements come from the second-level cache. The processor prefetches for each load instruction separately, and
/// with four loads per iteration each has twice the step that it has with two. The sizes are those of Zen 5.
inline bool come_from_second_level(std::size_t count, std::ptrdiff_t stride) {
  constexpr std::size_t line = 64, first_level = 49152, second_level = 786432;
  const auto forward = static_cast<std::size_t>(stride);
  const std::size_t apart = stride < 0 ? 0 - forward : forward;
  const std::size_t bytes = count * (apart < line ? apart : line);
  return bytes > first_level && bytes <= second_level;
}

/// Gathers as many elements of 4 or 8 bytes as fill registers, at any stride. Returns how many.
template <std::size_t width>
struct Apart {
  static std::size_t copy(std::byte* packed, const std::byte* from, std::ptrdiff_t stride,
                          std::size_t count) {
    std::size_t i = 0;
    if (width == 8 && come_from_second_level(count, stride)) {
      for (; i + 2 <= count; i += 2, packed += 16, from += 2 * stride)
        _mm_storeu_pd(reinterpret_cast<double*>(packed), two_of_8(from, from + stride));
      return i;
    }
    constexpr std::size_t elements = 32 / width;
    const std::ptrdiff_t step = static_cast<std::ptrdiff_t>(elements) * stride;
    for (; i + elements <= count; i += elements, packed += 32, from += step)
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(packed),
                          width == 8 ? four_of_8(from, stride) : eight_of_4(from, stride));
    return i;
  }
};
} // namespace
} // namespace near::copy
