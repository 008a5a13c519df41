// The only place through which the processor copies user memory, and the kinds of such memory.
//
// Small messages are copied by small.h, bulk data by copy.h (which can bypass the cache), everything between
// by raw(). No layer above calls memcpy for payload; dev/check_layers.py enforces it. So a kind of memory
// that the processor cannot access needs its copies here and nowhere else.
#pragma once

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

/// As raw(), without string instructions.
void loop(void* to, const void* from, std::size_t bytes);

/// Whether string instructions would take very long for such a copy. From some 2 KiB on, memcpy() consists of them (glibc before 2.39). If
/// the destination begins less than a line behind the source, except for whole pages, then they take up to 28 times as long on Zen 3
/// (doc/adr/0053). Packets begin at a page, and blocks of malloc() of 128 KiB and more begin 16 bytes behind one.
[[gnu::always_inline]] inline bool is_slow_for_strings(const void* to, const void* from, std::size_t bytes) {
#if defined(__x86_64__)
  constexpr std::size_t fewest = 2048, page = 4096, line = 64;
  const auto behind =
      static_cast<std::size_t>(static_cast<const std::byte*>(to) - static_cast<const std::byte*>(from));
  return bytes > fewest && behind % page - 1 < line - 1;
#else
  static_cast<void>(to), static_cast<void>(from), static_cast<void>(bytes);
  return false;
#endif
}

/// Copies `bytes` between ranges that do not overlap. Inline, so that a length known to the compiler becomes
/// single loads and stores.
[[gnu::always_inline]] inline void raw(void* to, const void* from, std::size_t bytes) {
  if (is_slow_for_strings(to, from, bytes)) [[unlikely]]
    loop(to, from, bytes);
  else
    std::memcpy(to, from, bytes);
}

/// Copies `bytes` between ranges that may overlap.
[[gnu::always_inline]] inline void raw_overlapping(void* to, const void* from, std::size_t bytes) {
  std::memmove(to, from, bytes);
}

} // namespace near::copy
