// The shape of every kernel, over the vector type of one set of instructions.
//
//   destination   |  head  |  line  |  line  |  ...  |  line  | tail |
//                 to       ^ first multiple of 64             ^ fewer than 64 bytes are left
//
// Lines are stored whole and aligned: a streaming store that fills only part of a line costs a read of
// memory. Head and tail are shorter than a line and go by memcpy.
//
// The files that include this one are compiled for processors that the rest of the library does not require.
// An inline function with external linkage, compiled there, could be the copy that the linker keeps for
// everybody. So everything here has internal linkage, and such a file includes nothing else that defines
// functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace near::copy {

// x86-64: sse2.cpp, avx2.cpp, avx512.cpp
void cached_sse2(void* to, const void* from, std::size_t bytes) noexcept;
void streaming_sse2(void* to, const void* from, std::size_t bytes) noexcept;
void cached_avx2(void* to, const void* from, std::size_t bytes) noexcept;
void streaming_avx2(void* to, const void* from, std::size_t bytes) noexcept;
void cached_avx512(void* to, const void* from, std::size_t bytes) noexcept;
void streaming_avx512(void* to, const void* from, std::size_t bytes) noexcept;
// arm64.cpp
void cached_neon(void* to, const void* from, std::size_t bytes) noexcept;
void streaming_neon(void* to, const void* from, std::size_t bytes) noexcept;

namespace {

constexpr std::size_t line = 64;
/// Lines that are loaded before the first of them is stored.
constexpr std::size_t group = 4;
/// How far ahead of the loads the source is prefetched.
constexpr std::size_t ahead = 8 * group * line;

/// Copies `Lines` lines by the vectors of `Isa`, which has `Vector` and static load(), store(), stream().
template <class Isa, bool Streaming, std::size_t Lines>
[[gnu::always_inline]] inline void copy_lines(std::byte* to, const std::byte* from) {
  constexpr std::size_t width = sizeof(typename Isa::Vector);
  typename Isa::Vector part[Lines * line / width];
  for (std::size_t i = 0; i < Lines * line / width; ++i) part[i] = Isa::load(from + i * width);
  for (std::size_t i = 0; i < Lines * line / width; ++i) {
    if constexpr (Streaming) {
      Isa::stream(to + i * width, part[i]);
    } else {
      Isa::store(to + i * width, part[i]);
    }
  }
}

template <class Isa, bool Streaming>
[[gnu::always_inline]] inline void copy_by(void* destination, const void* source, std::size_t bytes) {
  auto* to = static_cast<std::byte*>(destination);
  const auto* from = static_cast<const std::byte*>(source);
  const auto advance = [&](std::size_t step) { to += step, from += step, bytes -= step; };

  const std::size_t misaligned = reinterpret_cast<std::uintptr_t>(to) % line;
  std::size_t head = misaligned == 0 ? 0 : line - misaligned;
  if (head > bytes) head = bytes;
  std::memcpy(to, from, head);
  advance(head);

  // Nothing beyond the source's end is prefetched: those lines may be somebody's who is writing them.
  while (bytes >= ahead + group * line) {
    for (std::size_t i = 0; i < group; ++i) __builtin_prefetch(from + ahead + i * line, 0, 3);
    copy_lines<Isa, Streaming, group>(to, from);
    advance(group * line);
  }
  while (bytes >= group * line) {
    copy_lines<Isa, Streaming, group>(to, from);
    advance(group * line);
  }
  while (bytes >= line) {
    copy_lines<Isa, Streaming, 1>(to, from);
    advance(line);
  }
  std::memcpy(to, from, bytes);
  if constexpr (Streaming) Isa::order_streams();
}

} // namespace
} // namespace near::copy
