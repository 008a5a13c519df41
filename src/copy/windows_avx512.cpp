// Windows (windows.h) for processors with AVX-512 and permutations of bytes.
//
// Loads and stores have masks, so nothing but the blocks is read or written. But if one of them extends into a page that is not
// present, the processor takes 150 ns to find out that the mask excludes that page. So those at the end of the data are shifted
// back into the page. What kernel.h says about internal linkage holds here too.
#if defined(__x86_64__)
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "copy/windows.h"

namespace near::copy {
namespace {

/// Permutes the bytes of `from` by this order. The mask selects all bytes; it is there because GCC's intrinsic without a mask reads
/// a register that GCC considers uninitialized.
__m512i permuted(__m512i order, __m512i from) {
  return _mm512_maskz_permutexvar_epi8(~__mmask64{0}, order, from);
}

/// The mask of the first `bytes` bytes, 1 to 64.
__mmask64 first_bytes(std::size_t bytes) { return ~std::uint64_t{0} >> (64 - bytes); }

constexpr std::uintptr_t page = Windows::farthest; // the smallest

/// Whether data ending at `end` leave less than a window of the last page.
bool ends_page(const std::byte* end) {
  return (0 - reinterpret_cast<std::uintptr_t>(end)) % page < Window::width;
}
bool crosses_page(const std::byte* at) {
  return reinterpret_cast<std::uintptr_t>(at) % page > page - Window::width;
}
/// By how many bytes the 64 bytes from `at` on extend beyond the page in
/// which the mask ends; 0 if the mask does not end in the first page.
unsigned bytes_beyond(const std::byte* at, __mmask64 mask) {
  const std::uintptr_t in_page = reinterpret_cast<std::uintptr_t>(at) % page;
  const auto last = static_cast<std::uintptr_t>(63 - __builtin_clzll(mask));
  return in_page + last < page ? static_cast<unsigned>(in_page + Window::width - page) : 0;
}
/// Copies if at least one side crosses a page.
[[gnu::noinline]] void copy_in_pages(std::byte* to, __mmask64 stored, __m512i order, const std::byte* from,
                                     __mmask64 loaded) {
  const unsigned before_to = crosses_page(to) ? bytes_beyond(to, stored) : 0,
                 before_from = crosses_page(from) ? bytes_beyond(from, loaded) : 0;
  alignas(64) std::uint8_t lanes[Window::width];
  for (unsigned i = 0; i < Window::width; ++i) lanes[i] = static_cast<std::uint8_t>(i - before_to);
  order = permuted(_mm512_load_si512(lanes), order);
  order = _mm512_add_epi8(order, _mm512_set1_epi8(static_cast<char>(before_from)));
  const __m512i given = _mm512_maskz_loadu_epi8(loaded << before_from, from - before_from);
  _mm512_mask_storeu_epi8(to - before_to, stored << before_to, permuted(order, given));
}

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
  /// Copies these bytes of an element's window; `strided` and `bytes` point to the element's memory and packed bytes.
  [[gnu::always_inline]] void copy(std::byte* bytes, std::byte* strided, __mmask64 load,
                                   __mmask64 store) const {
    std::byte *const from = packs ? strided + at : bytes + packed, *const to =
                                                                       packs ? bytes + packed : strided + at;
    _mm512_mask_storeu_epi8(to, store, permuted(order, _mm512_maskz_loadu_epi8(load, from)));
  }
  void copy_with_care(std::byte* bytes, std::byte* strided, __mmask64 load, __mmask64 store) const {
    std::byte *const from = packs ? strided + at : bytes + packed, *const to =
                                                                       packs ? bytes + packed : strided + at;
    if (crosses_page(from) || crosses_page(to))
      copy_in_pages(to, store, order, from, load);
    else
      copy(bytes, strided, load, store);
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
  // A group's elements lie apart, the first one in front.
  const __mmask64 of_packed = first_bytes(count * size),
                  of_memory = first_bytes(count * static_cast<std::size_t>(extent));
  window.copy(packed, strided, window.loaded & (packs ? of_memory : of_packed),
              window.stored & (packs ? of_packed : of_memory));
}

/// Several windows for each element.
template <bool packs, std::size_t count_windows>
[[gnu::always_inline]] inline void copy_one_by_one(std::byte* packed, std::byte* strided,
                                                   const Windows& windows, std::size_t count) {
  Held<packs> held[count_windows];
  for (std::size_t i = 0; i < count_windows; ++i) held[i].hold(windows.all[i]);
  const std::size_t size = windows.size;
  const std::ptrdiff_t extent = windows.extent;
  for (; count != 0; --count, packed += size, strided += extent)
    for (const Held<packs>& window : held) window.copy(packed, strided, window.loaded, window.stored);
}

template <bool packs, std::size_t count_windows>
[[gnu::always_inline]] inline void copy_all(std::byte* packed, std::byte* strided, const Windows& windows,
                                            std::size_t count) {
  if constexpr (count_windows == 1)
    copy_groups<packs>(packed, strided, windows, count);
  else
    copy_one_by_one<packs, count_windows>(packed, strided, windows, count);
}

/// Whether the page after each element but the last is one in which the next element lies, unless it is the same page.
bool follow_in_pages(std::ptrdiff_t extent) { return extent > 0 && extent <= Windows::farthest; }

/// Whether some window may extend into a page that has no data. One branch covers all reasons: ends of pages
/// are rare, and so are small elements that are far apart.
[[gnu::always_inline]] inline bool needs_care(const std::byte* packed, const std::byte* strided,
                                              const Windows& windows, std::size_t count) {
  const std::byte *const end = packed + count * windows.size, *const high =
                                                                  strided +
                                                                  static_cast<std::ptrdiff_t>(count - 1) *
                                                                      windows.extent +
                                                                  windows.high;
  return (static_cast<unsigned>(ends_page(end)) | static_cast<unsigned>(ends_page(high)) |
          static_cast<unsigned>(!follow_in_pages(windows.extent))) != 0;
}

/// Copies elements one by one if windows may extend beyond the data.
template <bool packs, std::size_t count_windows>
[[gnu::noinline]] void copy_with_care(std::byte* packed, std::byte* strided, const Windows& windows,
                                      std::size_t count) {
  const std::size_t size = windows.size, last = Window::width / size + 2;
  const std::ptrdiff_t extent = windows.extent;
  if (follow_in_pages(extent) && count > last) {
    const std::size_t before = count - last;
    copy_all<packs, count_windows>(packed, strided, windows, before);
    packed += before * size;
    strided += static_cast<std::ptrdiff_t>(before) * extent;
    count = last;
  }
  for (; count != 0; --count, packed += size, strided += extent)
    for (std::size_t i = 0; i < count_windows; ++i) {
      Held<packs> window;
      window.hold(windows.all[i]);
      __mmask64 of_packed = ~__mmask64{0}, of_memory = of_packed;
      if (windows.group > 1)
        of_packed = first_bytes(size), of_memory = first_bytes(static_cast<std::size_t>(extent));
      window.copy_with_care(packed, strided, window.loaded & (packs ? of_memory : of_packed),
                            window.stored & (packs ? of_packed : of_memory));
    }
}

template <bool packs, std::size_t count_windows>
void copy_elements_by_windows(std::byte* packed, std::byte* strided, const Windows& windows,
                              std::size_t count) {
  if (needs_care(packed, strided, windows, count)) [[unlikely]]
    return copy_with_care<packs, count_windows>(packed, strided, windows, count);
  copy_all<packs, count_windows>(packed, strided, windows, count);
}
template <bool packs>
void copy_one_of_group(std::byte* packed, std::byte* strided, const Grid& grid) {
  const Windows& windows = *grid.windows;
  if (ends_page(packed + windows.size) || ends_page(strided + windows.high)) [[unlikely]]
    return copy_with_care<packs, 1>(packed, strided, windows, 1);
  copy_groups<packs>(packed, strided, windows, 1);
}

} // namespace

const WindowKernel windows_avx512 = {{
    {copy_elements_by_windows<true, 1>, copy_elements_by_windows<false, 1>, copy_one_of_group<true>,
     copy_one_of_group<false>},
    {copy_elements_by_windows<true, 2>, copy_elements_by_windows<false, 2>},
    {copy_elements_by_windows<true, 3>, copy_elements_by_windows<false, 3>},
    {copy_elements_by_windows<true, 4>, copy_elements_by_windows<false, 4>},
}};

} // namespace near::copy
#endif
