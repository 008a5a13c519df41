// Windows (windows.h) for processors with AVX-512 and permutations of bytes.
//
// Loads and stores have masks, so nothing but the blocks is read or written. What kernel.h says about internal linkage holds here too.
#if defined(__x86_64__)
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "copy/windows.h"

namespace near::copy {
namespace {

/// The mask of the first `bytes` bytes, 1 to 64.
__mmask64 first_bytes(std::size_t bytes) { return ~std::uint64_t{0} >> (64 - bytes); }

/// A window in registers.
template <bool packs>
struct Held {
  __m512i order;
  __mmask64 loaded, stored;
  std::ptrdiff_t at, packed;

  [[gnu::always_inline]] void hold(const Window& window) {
    order = _mm512_loadu_si512(packs ? window.gather : window.scatter);
    loaded = packs ? window.data : window.taken;
    stored = packs ? window.taken : window.data;
    at = window.at;
    packed = static_cast<std::ptrdiff_t>(window.packed);
  }
  /// Both point to an element.
  [[gnu::always_inline]] void copy(std::byte* to_packed, std::byte* to_strided, __mmask64 load,
                                   __mmask64 store) const {
    std::byte *const memory = to_strided + at, *const bytes = to_packed + packed;
    const __m512i given = _mm512_maskz_loadu_epi8(load, packs ? memory : bytes);
    _mm512_mask_storeu_epi8(packs ? bytes : memory, store, _mm512_permutexvar_epi8(order, given));
  }
};

/// One window, which holds a group of elements.
template <bool packs>
[[gnu::always_inline]] inline void copy_groups(std::byte* packed, std::byte* strided, const Windows& windows,
                                               std::size_t count) {
  Held<packs> window;
  window.hold(windows.all[0]);
  const std::size_t group = windows.group, size = windows.size;
  const std::ptrdiff_t extent = windows.extent;
  for (; count >= group; count -= group) {
    window.copy(packed, strided, window.loaded, window.stored);
    packed += group * size;
    strided += static_cast<std::ptrdiff_t>(group) * extent;
  }
  if (count == 0) return;
  // The elements of a group lie apart, the first one in front.
  const __mmask64 of_packed = first_bytes(count * size),
                  of_memory = first_bytes(count * static_cast<std::size_t>(extent));
  window.copy(packed, strided, window.loaded & (packs ? of_memory : of_packed),
              window.stored & (packs ? of_packed : of_memory));
}
template <bool packs>
void copy_elements_of_groups(std::byte* packed, std::byte* strided, const Windows& windows,
                             std::size_t count) {
  copy_groups<packs>(packed, strided, windows, count);
}
template <bool packs>
void copy_one_of_group(std::byte* packed, std::byte* strided, const Grid& grid) {
  copy_groups<packs>(packed, strided, *grid.windows, 1);
}

/// Several windows for each element.
template <bool packs, std::size_t count_windows>
void copy_elements_by_windows(std::byte* packed, std::byte* strided, const Windows& windows,
                              std::size_t count) {
  Held<packs> held[count_windows];
  for (std::size_t i = 0; i < count_windows; ++i) held[i].hold(windows.all[i]);
  const std::size_t size = windows.size;
  const std::ptrdiff_t extent = windows.extent;
  for (; count != 0; --count, packed += size, strided += extent)
    for (const Held<packs>& window : held) window.copy(packed, strided, window.loaded, window.stored);
}

} // namespace

const WindowKernel windows_avx512 = {{
    {copy_elements_of_groups<true>, copy_elements_of_groups<false>, copy_one_of_group<true>,
     copy_one_of_group<false>},
    {copy_elements_by_windows<true, 2>, copy_elements_by_windows<false, 2>},
    {copy_elements_by_windows<true, 3>, copy_elements_by_windows<false, 3>},
    {copy_elements_by_windows<true, 4>, copy_elements_by_windows<false, 4>},
}};

} // namespace near::copy
#endif
