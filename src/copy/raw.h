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

/// Copies `bytes` between ranges that do not overlap. Inline, so that a length known to the compiler becomes
/// single loads and stores.
[[gnu::always_inline]] inline void raw(void* to, const void* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}

/// Copies `bytes` between ranges that may overlap.
inline void raw_overlapping(void* to, const void* from, std::size_t bytes) { std::memmove(to, from, bytes); }

} // namespace near::copy
