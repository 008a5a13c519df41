// Strided copies for processors with AVX-512.
//
// Elements that are at most four elements apart are read by whole registers and permuted. Loads past the last
// element and stores into gaps are masked, so that neither touches other memory.
#if defined(__x86_64__)
#include "copy/strided_blocks.h"
#include "copy/strided_x86.h"

#include <type_traits>

namespace near::copy {
namespace {

/// What differs between widths.
template <std::size_t width>
struct Lanes;
template <>
struct Lanes<8> {
  using Index = std::int64_t;
  using Mask = __mmask8;
  static __m512i load(Mask mask, const std::byte* from) { return _mm512_maskz_loadu_epi64(mask, from); }
  static void store(std::byte* to, Mask mask, __m512i value) { _mm512_mask_storeu_epi64(to, mask, value); }
  static __m512i choose(__m512i first, __m512i index, __m512i second) {
    return _mm512_permutex2var_epi64(first, index, second);
  }
  static __m512i spread(Mask mask, __m512i index, __m512i value) {
    return _mm512_maskz_permutexvar_epi64(mask, index, value);
  }
};
template <>
struct Lanes<4> {
  using Index = std::int32_t;
  using Mask = __mmask16;
  static __m512i load(Mask mask, const std::byte* from) { return _mm512_maskz_loadu_epi32(mask, from); }
  static void store(std::byte* to, Mask mask, __m512i value) { _mm512_mask_storeu_epi32(to, mask, value); }
  static __m512i choose(__m512i first, __m512i index, __m512i second) {
    return _mm512_permutex2var_epi32(first, index, second);
  }
  static __m512i spread(Mask mask, __m512i index, __m512i value) {
    return _mm512_maskz_permutexvar_epi32(mask, index, value);
  }
};
template <>
struct Lanes<2> {
  using Index = std::int16_t;
  using Mask = __mmask32;
  static __m512i load(Mask mask, const std::byte* from) { return _mm512_maskz_loadu_epi16(mask, from); }
  static void store(std::byte* to, Mask mask, __m512i value) { _mm512_mask_storeu_epi16(to, mask, value); }
  static __m512i choose(__m512i first, __m512i index, __m512i second) {
    return _mm512_permutex2var_epi16(first, index, second);
  }
  static __m512i spread(Mask mask, __m512i index, __m512i value) {
    return _mm512_maskz_permutexvar_epi16(mask, index, value);
  }
};

/// The first `lanes` lanes, all if there are fewer; none if it is negative.
template <std::size_t width>
typename Lanes<width>::Mask first_lanes(std::ptrdiff_t lanes) {
  constexpr std::ptrdiff_t all = 64 / width;
  if (lanes >= all) return static_cast<typename Lanes<width>::Mask>(-1);
  return lanes <= 0 ? 0 : static_cast<typename Lanes<width>::Mask>((std::uint64_t{1} << lanes) - 1);
}

/// Elements whose distance is `apart` elements, in as many registers.
template <std::size_t width, int apart>
struct Comb {
  static constexpr int lanes = 64 / width;
  using Index = typename Lanes<width>::Index;
  /// Gathering: step k takes elements of the result from register k + 1, and the rest from the result so far.
  alignas(64) Index merge[apart - 1][lanes] = {};
  /// Scattering: which element goes to each lane of register k, and which lanes have one.
  alignas(64) Index spread[apart][lanes] = {};
  std::uint32_t has_element[apart] = {};

  constexpr Comb() {
    for (int k = 0; k + 1 < apart; ++k)
      for (int lane = 0; lane < lanes; ++lane) {
        const int source = lane * apart, within = source % lanes;
        merge[k][lane] = static_cast<Index>(source / lanes == k + 1    ? lanes + within
                                            : k == 0 && source < lanes ? within
                                                                       : lane);
      }
    for (int k = 0; k < apart; ++k)
      for (int lane = 0; lane < lanes; ++lane)
        if ((k * lanes + lane) % apart == 0) {
          spread[k][lane] = static_cast<Index>((k * lanes + lane) / apart);
          has_element[k] |= std::uint32_t{1} << lane;
        }
  }
};

template <bool packs, std::size_t width, std::ptrdiff_t apart>
struct Permuted {
  static std::size_t copy(std::byte* packed, std::byte* strided, std::ptrdiff_t stride, std::size_t count) {
    // Loads of whole registers may cross lines, which costs time if the lines come from the second-level cache.
    if constexpr (packs && width == 8 && apart > 2)
      if (come_from_second_level(count, stride)) return Apart<width>::copy(packed, strided, stride, count);
    if constexpr (packs)
      gather(packed, strided, count);
    else
      scatter(strided, packed, count);
    return count;
  }

private:
  using My = Lanes<width>;
  using Mask = typename My::Mask;
  static constexpr std::size_t lanes = 64 / width;
  static constexpr std::ptrdiff_t line = 64;
  static constexpr Comb<width, apart> comb{};

  static void gather(std::byte* packed, const std::byte* from, std::size_t count) {
    __m512i merge[apart - 1];
    for (std::ptrdiff_t k = 0; k + 1 < apart; ++k) merge[k] = _mm512_load_si512(comb.merge[k]);
    // More elements follow these.
    std::size_t i = 0;
    for (; i + lanes < count; i += lanes, packed += line, from += line * apart) {
      __m512i got = _mm512_loadu_si512(from);
      for (std::ptrdiff_t k = 0; k + 1 < apart; ++k)
        got = My::choose(got, merge[k], _mm512_loadu_si512(from + line * (k + 1)));
      _mm512_storeu_si512(packed, got);
    }
    const auto left = static_cast<std::ptrdiff_t>(count - i), to_last = (left - 1) * apart + 1;
    __m512i got = My::load(first_lanes<width>(to_last), from);
    for (std::ptrdiff_t k = 0; k + 1 < apart; ++k) {
      const std::ptrdiff_t from_here = to_last - (k + 1) * static_cast<std::ptrdiff_t>(lanes);
      got = My::choose(got, merge[k], My::load(first_lanes<width>(from_here), from + line * (k + 1)));
    }
    My::store(packed, first_lanes<width>(left), got);
  }

  static void put(std::byte* to, Mask mask, __m512i index, __m512i given) {
    My::store(to, mask, My::spread(mask, index, given));
  }
  static void scatter(std::byte* to, const std::byte* packed, std::size_t count) {
    __m512i spread[apart];
    for (std::ptrdiff_t k = 0; k < apart; ++k) spread[k] = _mm512_load_si512(comb.spread[k]);
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes, packed += line, to += line * apart) {
      const __m512i given = _mm512_loadu_si512(packed);
      for (std::ptrdiff_t k = 0; k < apart; ++k)
        put(to + line * k, static_cast<Mask>(comb.has_element[k]), spread[k], given);
    }
    const auto left = static_cast<std::ptrdiff_t>(count - i);
    if (left == 0) return;
    const __m512i given = My::load(first_lanes<width>(left), packed);
    for (std::ptrdiff_t k = 0; k < apart; ++k) {
      const std::ptrdiff_t from_here = (left - 1) * apart + 1 - k * static_cast<std::ptrdiff_t>(lanes);
      put(to + line * k, static_cast<Mask>(comb.has_element[k] & first_lanes<width>(from_here)), spread[k],
          given);
    }
  }
};

struct Avx512 {
  static void move_line(std::byte* to, const std::byte* from) {
    _mm512_storeu_si512(to, _mm512_loadu_si512(from));
  }

  template <bool packs, std::size_t width>
  static CopyGrid elements(std::ptrdiff_t stride, bool one_row) {
    constexpr auto unit = static_cast<std::ptrdiff_t>(width);
    if (stride == 2 * unit) return elements_copy<packs, width, Permuted<packs, width, 2>>(one_row);
    if (stride == 3 * unit) return elements_copy<packs, width, Permuted<packs, width, 3>>(one_row);
    if (stride == 4 * unit) return elements_copy<packs, width, Permuted<packs, width, 4>>(one_row);
    if constexpr (packs && width > 2) return elements_copy<true, width, Apart<width>>(one_row);
    return nullptr;
  }

  // Up to 64 bytes are copied without a branch that depends on their number: the block is loaded or stored with a mask. The
  // packed bytes of the following blocks may be read and, since they are written later, written as well.
  template <bool packs>
  static void move_block(std::byte* packed, std::byte* block, std::size_t bytes, std::size_t room) {
    if (bytes > 64) [[unlikely]]
      return packs ? move_long<Avx512>(packed, block, bytes) : move_long<Avx512>(block, packed, bytes);
    const auto of_block = static_cast<__mmask64>(~std::uint64_t{0} >> (64 - bytes));
    if constexpr (packs) {
      const __m512i given = _mm512_maskz_loadu_epi8(of_block, block);
      if (room >= 64) [[likely]]
        _mm512_storeu_si512(packed, given);
      else
        _mm512_mask_storeu_epi8(packed, of_block, given);
    } else {
      const __m512i given =
          room >= 64 ? _mm512_loadu_si512(packed) : _mm512_maskz_loadu_epi8(of_block, packed);
      _mm512_mask_storeu_epi8(block, of_block, given);
    }
  }
};

} // namespace

const StridedKernel strided_avx512 = strided_kernel_of<Avx512>;

} // namespace near::copy
#endif
