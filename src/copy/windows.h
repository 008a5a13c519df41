// Small elements as windows: the part of an element, or of several,
// that fits in one register is copied at once, whatever its blocks.
//
//   struct { char; short; int; double }, 15 of 16 bytes, four in a window:
//
//     memory   c.ssiiiidddddddd c.ssiiiidddddddd c.ssiiiidddddddd c.ssiiiidddddddd     one load, without the gaps
//     packed   cssiiiidddddddd cssiiiidddddddd cssiiiidddddddd cssiiiidddddddd         one permutation, one store
//
// A loop over the blocks takes a load and a store for each block, and must find its length. A window takes three instructions.
#pragma once

#include "copy/strided.h"

#include <cstddef>
#include <cstdint>

namespace near::copy {

/// Up to 64 packed bytes, and the at most 64 bytes of memory that contain them.
struct Window {
  static constexpr std::size_t width = 64;
  std::uint8_t gather[width];  ///< for each packed byte, which byte of memory it is
  std::uint8_t scatter[width]; ///< for each packed byte: its index in memory
  std::uint64_t data;          ///< for each data byte in memory: its index in the packed bytes
  std::uint64_t taken;         ///< a bit for each packed byte: the lowest ones
  std::ptrdiff_t at;           ///< where the memory begins, relative to the element
  std::size_t packed;          ///< where the packed bytes begin, relative to the element's
};

/// An element, or several if they fit into one window, in packed order.
struct Windows {
  static constexpr std::size_t most = 4;
  /// The size of the smallest page. Elements that are further apart, or in descending order, are each checked for ends of pages.
  static constexpr std::ptrdiff_t farthest = 4096;
  const Window* all = nullptr;
  std::size_t count = 0; ///< up to `most`; 0 if the element cannot be copied by windows
  std::size_t group = 1; ///< elements in the window, if there is one
  std::size_t size = 0;  ///< packed bytes of an element
  std::ptrdiff_t extent = 0;
  std::ptrdiff_t high = 0; ///< where the memory of an element ends
};

/// Cuts elements of these blocks, `extent` bytes apart, into windows, which are written to `memory`. Returns none if there would be
/// more than Windows::most.
Windows cut_into_windows(Blocks blocks, std::ptrdiff_t extent, Window (&memory)[Windows::most]);

/// Copies `count` elements in the direction for which it was chosen. Both pointers are
/// non-const, since one type serves both directions. Nothing but the blocks and the packed
/// bytes is read or written. If blocks overlap, the last one in packed order is scattered last.
using CopyElements = void (*)(std::byte* packed, std::byte* strided, const Windows& windows,
                              std::size_t count);

/// The functions for these windows, and for one element of one window (Grid::windows). Null if the processor has none, or if there
/// are no windows.
struct WindowFunctions {
  CopyElements gather = nullptr, scatter = nullptr;
  CopyGrid gather_one = nullptr, scatter_one = nullptr;
};
WindowFunctions functions_for(const Windows& windows);

/// An implementation for one instruction set.
struct WindowKernel {
  WindowFunctions of_count[Windows::most]; ///< for 1, 2, ... windows
};
extern const WindowKernel windows_avx512; // in the file of the same name

} // namespace near::copy
