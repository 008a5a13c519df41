// The common part of all kernels for consecutive bytes, over the vector type of an instruction set: loops with ordinary stores
// (loop_by) and with streaming stores (stream_by):
//
//   destination   |  head  |  line  |  line  |  ...  |  line  | tail |
//                 to       ^ first multiple of 64             ^ fewer than 64 bytes are left
//
// Whole lines are stored, aligned: a streaming store that fills only part of a line costs a read from memory.
// Head and tail are shorter than a line and are copied by memcpy, with ordinary stores.
//
// The files that include this one are compiled for processors that the rest of the library does not require.
// If such a file defined an inline function with external linkage, the linker might keep that version for all
// callers. So everything here has internal linkage, and such a file includes nothing else that defines
// functions, except the always-inlined ones of raw.h (test/house/test_copy_kernels.py).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace near::copy {

// Each is in the file of the same name.
void streaming_avx512(void* to, const void* from, std::size_t bytes);
void streaming_avx2(void* to, const void* from, std::size_t bytes);
void streaming_sse2(void* to, const void* from, std::size_t bytes);
void streaming_neon(void* to, const void* from, std::size_t bytes);
void looping_avx512(void* to, const void* from, std::size_t bytes);
void looping_avx2(void* to, const void* from, std::size_t bytes);
void looping_sse2(void* to, const void* from, std::size_t bytes);
void looping_neon(void* to, const void* from, std::size_t bytes);

namespace {

constexpr std::size_t line = 64;
/// How far before its load a source line is prefetched. This speeds up copies from memory by a fifth; 16 to
/// 64 lines are equally good.
constexpr std::size_t ahead = 32 * line;

/// `Isa` has a type `Vector` and static functions load(), store(), stream() (aligned) and order_streams().
template <class Isa>
[[gnu::always_inline]] inline void stream_line(std::byte* to, const std::byte* from) {
  constexpr std::size_t width = sizeof(typename Isa::Vector);
  typename Isa::Vector part[line / width];
  for (std::size_t i = 0; i < line / width; ++i) part[i] = Isa::load(from + i * width);
  for (std::size_t i = 0; i < line / width; ++i) Isa::stream(to + i * width, part[i]);
}

template <class Isa>
[[gnu::always_inline]] inline void stream_by(void* destination, const void* source, std::size_t bytes) {
  auto* to = static_cast<std::byte*>(destination);
  const auto* from = static_cast<const std::byte*>(source);

  std::size_t head = -reinterpret_cast<std::uintptr_t>(to) % line;
  if (head > bytes) head = bytes;
  std::memcpy(to, from, head);
  to += head, from += head, bytes -= head;

  // Nothing after the end of the source is prefetched, since another core may be writing such a line.
  for (; bytes > ahead; to += line, from += line, bytes -= line) {
    __builtin_prefetch(from + ahead);
    stream_line<Isa>(to, from);
  }
  for (; bytes >= line; to += line, from += line, bytes -= line) stream_line<Isa>(to, from);

  std::memcpy(to, from, bytes);
  Isa::order_streams();
}

/// With ordinary stores, all aligned except the first and the last ones.
template <class Isa>
[[gnu::always_inline]] inline void loop_by(void* destination, const void* source, std::size_t bytes) {
  constexpr std::size_t width = sizeof(typename Isa::Vector), together = width < line ? line / width : 2;
  auto* to = static_cast<std::byte*>(destination);
  const auto* from = static_cast<const std::byte*>(source);
  if (bytes < width) return void(std::memcpy(to, from, bytes));

  Isa::store(to, Isa::load(from));
  const std::size_t head = width - reinterpret_cast<std::uintptr_t>(to) % width;
  to += head, from += head, bytes -= head;
  for (; bytes >= together * width;
       to += together * width, from += together * width, bytes -= together * width) {
    typename Isa::Vector part[together];
    for (std::size_t i = 0; i < together; ++i) part[i] = Isa::load(from + i * width);
    for (std::size_t i = 0; i < together; ++i) Isa::store(to + i * width, part[i]);
  }
  for (; bytes >= width; to += width, from += width, bytes -= width) Isa::store(to, Isa::load(from));
  std::memcpy(to, from, bytes);
}

} // namespace
} // namespace near::copy
