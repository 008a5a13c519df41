// The one place through which the processor copies the memory of users, and what kind of memory that is.
//
// Small messages go by small.h, bulk data by copy.h (which can bypass the cache), everything between by
// raw(). No layer above calls memcpy for payload: dev/check_layers.py refuses it. So a kind of memory
// that the processor cannot reach needs its copies here and nowhere else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace near::copy {

/// What kind of memory a user's buffer lies in.
enum class MemoryKind : std::uint8_t {
  host,   ///< the processor loads and stores it; the only kind that is in use
  device, ///< memory of a GPU; nothing here copies it yet, so buffers of this kind are refused
};

/// Whether the functions of this layer can copy memory of that kind.
inline constexpr bool can_copy(MemoryKind kind) { return kind == MemoryKind::host; }

/// Copies `bytes` between ranges that do not overlap. Inline, so that a length that the compiler knows
/// becomes single loads and stores.
[[gnu::always_inline]] inline void raw(void* to, const void* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}

/// Copies `bytes` between ranges that may overlap.
inline void raw_overlapping(void* to, const void* from, std::size_t bytes) { std::memmove(to, from, bytes); }

} // namespace near::copy
