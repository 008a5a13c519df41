// Strided copies for processors with AVX2.
#if defined(__x86_64__)
#include "copy/strided_blocks.h"
#include "copy/strided_x86.h"

namespace near::copy {
namespace {

struct Avx2 : MovesByLength<Avx2> {
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

  // Every second element. The second register ends with the last of them, so that nothing after it is read, and has its
  // elements where the first register has gaps.
  static __m256i halves_of_8(const std::byte* from) {
    const __m256i both =
        _mm256_blend_epi32(load(from), load(from + 24), 0b11'00'11'00); // elements 0, 2, 1, 3
    return _mm256_permute4x64_epi64(both, 0b11'01'10'00);
  }
  static __m256i halves_of_4(const std::byte* from) {
    const __m256i both =
        _mm256_blend_epi32(load(from), load(from + 28), 0b10'10'10'10); // elements 0, 4, 1, 5, 2, 6, 3, 7
    return _mm256_permutevar8x32_epi32(both, _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7));
  }

  template <std::size_t width>
  struct EverySecond {
    static std::size_t copy(std::byte* packed, const std::byte* from, std::ptrdiff_t, std::size_t count) {
      constexpr std::size_t elements = 32 / width;
      std::size_t i = 0;
      for (; i + elements <= count; i += elements, packed += 32, from += 64)
        store(packed, width == 8 ? halves_of_8(from) : halves_of_4(from));
      return i;
    }
  };

  /// Elements are scattered one by one: AVX2's masked stores were not measured.
  template <bool packs, std::size_t width>
  static CopyGrid elements(std::ptrdiff_t stride, bool one_row) {
    if constexpr (packs && width > 2) {
      if (stride == 2 * static_cast<std::ptrdiff_t>(width))
        return elements_copy<true, width, EverySecond<width>>(one_row);
      return elements_copy<true, width, Apart<width>>(one_row);
    }
    return nullptr;
  }
};

} // namespace

const StridedKernel strided_avx2 = strided_kernel_of<Avx2>;

} // namespace near::copy
#endif
