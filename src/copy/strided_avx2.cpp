// Strided copies for processors with AVX2.
#if defined(__x86_64__)
#include "copy/strided_kernel.h"
#include "copy/strided_x86.h"

namespace near::copy {
namespace {

struct Avx2 {
  static __m256i load(const std::byte* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  }
  static void store(std::byte* to, __m256i value) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), value);
  }

  static void move_line(std::byte* to, const std::byte* from) {
    const __m256i first = load(from), second = load(from + 32);
    store(to, first);
    store(to + 32, second);
  }

  // Every second element of two registers. The last one of them is a gap, so another element must follow.
  static __m256i halves_of_8(const std::byte* from) {
    const __m256i both = _mm256_unpacklo_epi64(load(from), load(from + 32)); // elements 0, 4, 2, 6
    return _mm256_permute4x64_epi64(both, 0b11'01'10'00);
  }
  static __m256i halves_of_4(const std::byte* from) {
    const __m256 both =
        _mm256_shuffle_ps(_mm256_castsi256_ps(load(from)), _mm256_castsi256_ps(load(from + 32)),
                          0b10'00'10'00); // elements 0, 2, 8, 10, 4, 6, 12, 14
    return _mm256_permute4x64_epi64(_mm256_castps_si256(both), 0b11'01'10'00);
  }

  template <std::size_t width>
  struct EverySecond {
    static std::size_t copy(std::byte* packed, const std::byte* from, std::ptrdiff_t stride,
                            std::size_t count) {
      constexpr std::size_t elements = 32 / width;
      std::size_t i = 0;
      for (; i + elements < count; i += elements, packed += 32, from += 64)
        store(packed, width == 8 ? halves_of_8(from) : halves_of_4(from));
      return i + Apart<width>::copy(packed, from, stride, count - i);
    }
  };

  /// Elements are scattered one by one: the masked stores of AVX2 were not measured.
  template <bool packs, std::size_t width>
  static CopyGrid elements(std::ptrdiff_t stride) {
    if constexpr (packs && width > 2) {
      if (stride == 2 * static_cast<std::ptrdiff_t>(width))
        return copy_elements<true, width, EverySecond<width>>;
      return copy_elements<true, width, Apart<width>>;
    }
    return nullptr;
  }
};

} // namespace

const StridedKernel strided_avx2 = strided_kernel_of<Avx2>;

} // namespace near::copy
#endif
