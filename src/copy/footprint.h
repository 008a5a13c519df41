// Whether copies fill the last-level cache.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace near::copy {

/// The size of the last-level cache in bytes, or a usual size if it is unknown.
std::uint64_t last_level_cache();

/// The memory that a number of copies fill together. Benchmarks receive a whole window of messages in one buffer, which fits into
/// the cache although the window does not.
class Footprint {
public:
  /// Starts again with other copies.
  void clear() { *this = {}; }
  /// Counts a copy to this buffer. Returns how many bytes it adds: those beyond what the last few buffers already count at
  /// this address.
  std::uint64_t add(const void* buffer, std::uint64_t bytes) {
    for (Part& part : last_)
      if (part.buffer == buffer && part.bytes != 0) return grow(part, bytes);
    Part& oldest = last_[at_++ % last_.size()];
    oldest = {buffer, 0};
    return grow(oldest, bytes);
  }
  /// A copy that added this many bytes no longer belongs to the others.
  void remove(std::uint64_t added) { now_ -= added; }
  /// The high-water mark since clear().
  std::uint64_t most() const { return most_; }

private:
  struct Part {
    const void* buffer = nullptr;
    std::uint64_t bytes = 0;
  };
  std::uint64_t grow(Part& part, std::uint64_t bytes) {
    const std::uint64_t added = bytes - std::min(bytes, part.bytes);
    part.bytes += added;
    now_ += added;
    most_ = std::max(most_, now_);
    return added;
  }

  std::array<Part, 4> last_{};
  std::uint64_t now_ = 0, most_ = 0;
  std::uint32_t at_ = 0;
};

} // namespace near::copy
