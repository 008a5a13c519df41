// The only code in which the processor copies user memory, and the kinds of such memory.
//
// Small messages are copied by small.h, bulk data by copy.h (which can bypass the cache), everything between
// by raw(). No layer above calls memcpy for payload; dev/check_layers.py enforces this. So a kind of memory
// that the processor cannot access needs its copies here and nowhere else.
#pragma once

#include "copy/small.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace near::copy {

/// The kind of memory that a user's buffer is in.
enum class MemoryKind : std::uint8_t {
  host,   ///< the processor can load and store it; the only kind in use
  device, ///< GPU memory; not supported yet, so buffers of this kind are refused
};

/// Whether the functions of this layer can copy this kind of memory.
inline constexpr bool can_copy(MemoryKind kind) { return kind == MemoryKind::host; }

/// Like raw(), but by a loop over vectors instead of string instructions.
void loop(void* to, const void* from, std::size_t bytes);

/// Whether `rep movsb` is slow on this processor if the destination
/// begins just past the source, modulo a page. Tests may change it.
extern bool strings_are_slow_just_past;

/// Whether memcpy() would take very long for such a copy. From about 2 KiB up to the size of the second-level cache it uses `rep
/// movsb` (glibc before 2.39). This takes up to 28 times as long as a loop if the destination begins 1 to 31 bytes past the source,
/// modulo 4 KiB, and 1.5 times as long if it begins 33 to 63 bytes past it (doc/adr/0053). Packets begin at a page, and malloc()
/// blocks of 128 KiB and more begin 16 bytes past one.
[[gnu::always_inline]] inline bool is_slow_for_strings(const void* to, const void* from, std::size_t bytes) {
  constexpr std::size_t fewest = 2048, most = 1 << 20, page = 4096, line_bytes = 64;
  const std::uintptr_t past = reinterpret_cast<std::uintptr_t>(to) - reinterpret_cast<std::uintptr_t>(from);
  return bytes - fewest - 1 < most - fewest && past % page - 1 < line_bytes - 1 && strings_are_slow_just_past;
}

/// Copies `bytes` bytes between ranges that do not overlap. Inline, so that a length known to the compiler
/// becomes single loads and stores.
[[gnu::always_inline]] inline void raw(void* to, const void* from, std::size_t bytes) {
  if (is_slow_for_strings(to, from, bytes)) [[unlikely]]
    loop(to, from, bytes);
  else
    std::memcpy(to, from, bytes);
}

/// Copies `bytes` bytes between ranges that may overlap.
[[gnu::always_inline]] inline void raw_overlapping(void* to, const void* from, std::size_t bytes) {
  const std::uintptr_t apart = reinterpret_cast<std::uintptr_t>(to) - reinterpret_cast<std::uintptr_t>(from);
  if (is_slow_for_strings(to, from, bytes) && apart >= bytes && 0 - apart >= bytes) [[unlikely]]
    loop(to, from, bytes);
  else
    std::memmove(to, from, bytes);
}

/// In bytes. Up to this size, a call of memcpy would cost more than the copy.
inline constexpr std::size_t small_block = 64;

/// raw() for blocks that are often small.
inline void block(void* to, const void* from, std::size_t bytes) {
  if (bytes <= small_block)
    small(to, from, bytes);
  else
    raw(to, from, bytes);
}

} // namespace near::copy
