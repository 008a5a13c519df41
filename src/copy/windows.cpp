// See windows.h.
#include "copy/windows.h"

#include "copy/copy.h"

#include <algorithm>
#include <bit>

namespace near::copy {
namespace {

constexpr std::size_t most_bytes = Windows::most * Window::width;

/// Where the bytes of an element lie, in packed order.
struct Bytes {
  std::ptrdiff_t at[most_bytes];
  std::size_t count = 0;
};

/// Appends the positions of the blocks' bytes, shifted by `by` bytes. They fit.
void add_bytes(Blocks blocks, std::ptrdiff_t by, Bytes& into) {
  for (std::size_t i = 0; i < blocks.count; ++i)
    for (std::int32_t byte = 0; byte < blocks.start[i + 1] - blocks.start[i]; ++byte)
      into.at[into.count++] = std::ptrdiff_t{blocks.at[i]} + byte + by;
}

/// How many elements fit into one window; 1 if not even one fits.
/// Overlapping blocks may have more packed bytes than a window holds.
std::size_t elements_in_window(const Bytes& element, std::ptrdiff_t extent) {
  const auto [low, high] = std::minmax_element(element.at, element.at + element.count);
  const std::ptrdiff_t span = *high - *low + 1;
  constexpr auto width = static_cast<std::ptrdiff_t>(Window::width);
  if (extent < span || span > width) return 1;
  return std::min(std::max<std::size_t>(1, Window::width / element.count),
                  static_cast<std::size_t>((width - span) / extent) + 1);
}

/// The longest window that begins with packed byte `first`.
Window window_from(const Bytes& bytes, std::size_t first) {
  constexpr auto width = static_cast<std::ptrdiff_t>(Window::width);
  std::ptrdiff_t low = bytes.at[first], high = low;
  std::size_t end = first;
  for (; end < bytes.count && end - first < Window::width; ++end) {
    const std::ptrdiff_t lower = std::min(low, bytes.at[end]), higher = std::max(high, bytes.at[end]);
    if (higher - lower >= width) break;
    low = lower, high = higher;
  }
  Window window{};
  window.at = low;
  window.taken = ~std::uint64_t{0} >> (Window::width - (end - first));
  window.packed = first;
  for (std::size_t i = first; i < end; ++i) {
    const auto place = static_cast<std::size_t>(bytes.at[i] - low);
    window.gather[i - first] = static_cast<std::uint8_t>(place);
    window.scatter[place] = static_cast<std::uint8_t>(i - first);
    window.data |= std::uint64_t{1} << place;
  }
  return window;
}

} // namespace

Windows cut_into_windows(Blocks blocks, std::ptrdiff_t extent, Window (&memory)[Windows::most]) {
  const auto size = static_cast<std::size_t>(blocks.start[blocks.count] - blocks.start[0]);
  if (size > most_bytes) return {};
  Bytes bytes;
  add_bytes(blocks, 0, bytes);
  const std::size_t group = elements_in_window(bytes, extent);
  for (std::size_t i = 1; i < group; ++i) add_bytes(blocks, static_cast<std::ptrdiff_t>(i) * extent, bytes);
  std::size_t count = 0;
  for (std::size_t first = 0; first < bytes.count; ++count) {
    if (count == Windows::most) return {};
    memory[count] = window_from(bytes, first);
    first += static_cast<std::size_t>(std::popcount(memory[count].taken));
  }
  const std::ptrdiff_t high = 1 + *std::max_element(bytes.at, bytes.at + size);
  return {memory, count, group, size, extent, high};
}

WindowFunctions functions_for(const Windows& windows) {
  const WindowKernel* const kernel = chosen().windows;
  return kernel != nullptr && windows.count != 0 ? kernel->of_count[windows.count - 1] : WindowFunctions();
}

} // namespace near::copy
