// Inline copies of a few bytes: for a small message, a call of memcpy costs more than the copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace near::copy {

/// Copies `bytes` bytes between ranges that do not overlap. All loads and stores are within the ranges; two
/// of them may cover the same bytes. Intended for up to about 100 bytes.
[[gnu::always_inline]] inline void small(void* to, const void* from, std::size_t bytes) {
  auto* out = static_cast<std::byte*>(to);
  const auto* in = static_cast<const std::byte*>(from);
  // The first and the last word overlap if `bytes` is not a multiple of their width.
  auto ends = [&]<class Word>(Word) {
    Word first, last;
    std::memcpy(&first, in, sizeof first);
    std::memcpy(&last, in + bytes - sizeof last, sizeof last);
    std::memcpy(out, &first, sizeof first);
    std::memcpy(out + bytes - sizeof last, &last, sizeof last);
  };
  struct Block {
    std::uint64_t words[2];
  };
  if (bytes > 16) {
    for (std::size_t at = 16; at < bytes; at += 16, in += 16, out += 16) std::memcpy(out, in, 16);
    // 1 to 16 bytes are left; the 16-byte block that ends with them lies within the ranges.
    bytes = (bytes - 1) % 16 + 1;
    Block last;
    std::memcpy(&last, in + bytes - 16, 16);
    std::memcpy(out + bytes - 16, &last, 16);
  } else if (bytes >= 8) {
    ends(std::uint64_t());
  } else if (bytes >= 4) {
    ends(std::uint32_t());
  } else if (bytes >= 2) {
    ends(std::uint16_t());
  } else if (bytes == 1) {
    *out = *in;
  }
}

} // namespace near::copy
