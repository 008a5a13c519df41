// Public handles. A handle is a number that fits in a positive int, in the guise of the ABI's pointer type.
// Predefined objects are the standard's constants below 4096; the others carry kind, generation and index. So
// a handle converts to a Fortran INTEGER by a cast, and a stale or invalid handle is detected without
// touching memory.
//
//   bit   30   29..26   25..20       19..0
//          1    kind    generation   index into the kind's pool          (every kind but requests)
//          1    1 1 (29..28), generation (27..22), index (21..0)   (requests: 4 million at once)
//
// Source: MPI 5.0, section 20.3 (ABI: opaque handles).
#pragma once

#include <cstdint>

namespace near::object {

enum class Kind : std::uint8_t {
  none = 0,
  communicator = 1,
  group = 2,
  datatype = 3,
  operation = 4,
  error_handler = 5,
  info = 6,
  message = 7,
  window = 8,
  file = 9,
  session = 10,
  // 12 to 14 must stay unused: bits 29 and 28 both set mean a request.
  request = 15,
};

using HandleBits = std::uint32_t;

/// The largest value that a predefined handle may have (MPI 5.0 keeps them in the first page).
inline constexpr HandleBits predefined_limit = 4096;

template <Kind kind>
struct HandleLayout {
  static constexpr unsigned index_bits = 20;
  static constexpr unsigned generation_bits = 6;
  static constexpr HandleBits tag = (1u << 30) | (static_cast<HandleBits>(kind) << 26);
  static constexpr HandleBits tag_mask = ~0u << 26;
};
template <>
struct HandleLayout<Kind::request> {
  static constexpr unsigned index_bits = 22;
  static constexpr unsigned generation_bits = 6;
  static constexpr HandleBits tag = (1u << 30) | (3u << 28);
  static constexpr HandleBits tag_mask = ~0u << 28;
};

template <Kind kind>
constexpr bool is_dynamic(std::uintptr_t handle) {
  // Compares everything above index and generation at once.
  constexpr unsigned below = HandleLayout<kind>::index_bits + HandleLayout<kind>::generation_bits;
  static_assert(HandleLayout<kind>::tag_mask == ~0u << below);
  return handle >> below == HandleLayout<kind>::tag >> below;
}
template <Kind kind>
constexpr HandleBits index_of(HandleBits handle) {
  return handle & ((1u << HandleLayout<kind>::index_bits) - 1);
}
template <Kind kind>
constexpr HandleBits make_handle(HandleBits index, HandleBits generation) {
  using Layout = HandleLayout<kind>;
  return Layout::tag | ((generation & ((1u << Layout::generation_bits) - 1)) << Layout::index_bits) | index;
}
/// The handle that the next object with the same index will get.
template <Kind kind>
constexpr HandleBits successor(HandleBits handle) {
  using Layout = HandleLayout<kind>;
  return Layout::tag | ((handle + (1u << Layout::index_bits)) & ~Layout::tag_mask);
}

} // namespace near::object
