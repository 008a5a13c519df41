// Small elements as windows: what one register holds of an element, or of several, is copied at once, whatever blocks it has.
//
//   struct { char; short; int; double }, 15 of 16 bytes, four in a window:
//
//     memory   c.ssiiiidddddddd c.ssiiiidddddddd c.ssiiiidddddddd c.ssiiiidddddddd     one load, without the gaps
//     packed   cssiiiidddddddd cssiiiidddddddd cssiiiidddddddd cssiiiidddddddd         one permutation, one store
//
// A loop over the blocks takes a load and a store for each, and to find out how long it is. A window takes three instructions.
#pragma once

#include "copy/strided.h"

#include <cstddef>
#include <cstdint>

namespace near::copy {

/// Up to 64 packed bytes, and the up to 64 bytes of memory that they lie in.
struct Window {
  static constexpr std::size_t width = 64;
  std::uint8_t gather[width];  ///< for each packed byte, which byte of memory it is
  std::uint8_t scatter[width]; ///< for each byte of memory that is data, which packed byte goes there
  std::uint64_t data;          ///< a bit for each byte of memory that is data
  std::uint64_t taken;         ///< a bit for each packed byte: the lowest ones
  std::ptrdiff_t at;           ///< where the memory begins, from the element on
  std::size_t packed;          ///< where the packed bytes begin, from the element's on
};

/// An element, or several if they fit into one window, in packed order.
struct Windows {
  static constexpr std::size_t most = 4;
  /// Elements that are further apart, or in descending order, are each checked for ends of pages. The smallest page has as many bytes.
  static constexpr std::ptrdiff_t farthest = 4096;
  const Window* all = nullptr;
  std::size_t count = 0; ///< up to `most`; 0 if the element cannot be copied by windows
  std::size_t group = 1; ///< elements in the window, if there is one
  std::size_t size = 0;  ///< packed bytes of an element
  std::ptrdiff_t extent = 0;
  std::ptrdiff_t high = 0; ///< where the memory of an element ends
};

/// Cuts elements of these blocks, `extent` bytes apart, into windows, which are written to `memory`. None if they would be more than
/// Windows::most.
Windows cut_into_windows(Blocks blocks, std::ptrdiff_t extent, Window (&memory)[Windows::most]);

/// Copies `count` elements, in the direction that it was chosen for. Both pointers are non-const, since one type serves both
/// directions. Nothing but the blocks and the packed bytes is read or written. If blocks overlap, the last one in packed order is scattered last.
using CopyElements = void (*)(std::byte* packed, std::byte* strided, const Windows& windows,
                              std::size_t count);

/// The functions for these windows, and for one element of one window (Grid::windows). Null if the processor has none, or if there are
/// no windows.
struct WindowFunctions {
  CopyElements gather = nullptr, scatter = nullptr;
  CopyGrid gather_one = nullptr, scatter_one = nullptr;
};
WindowFunctions functions_for(const Windows& windows);

/// An implementation for one instruction set.
struct WindowKernel {
  WindowFunctions of_count[Windows::most]; ///< for 1, 2, ... windows
};
extern const WindowKernel windows_avx512; // in the file of its name

} // namespace near::copy
