// Copies of a few bytes, inline: a call of memcpy costs a small message more than the copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace near::copy {

/// Copies `bytes` between ranges that do not overlap. Every load and store lies within them; two of them may
/// cover the same bytes. Meant for up to some 100 bytes.
[[gnu::always_inline]] inline void small(void* to, const void* from, std::size_t bytes) {
  auto* out = static_cast<std::byte*>(to);
  const auto* in = static_cast<const std::byte*>(from);
  // The first and the last word of a width overlap where `bytes` is no multiple of it.
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
    // What is left is 1 to 16 bytes, of which the block that ends with them is within the ranges.
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
