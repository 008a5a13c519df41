// Keeps track of the free parts of a range of addresses (or of other numbers).
#pragma once

#include "base/checked.h"

#include <cstdint>
#include <iterator>
#include <map>

namespace near::base {

/// Free ranges; adjacent ones are merged. give() and take() cost at most O(number of free ranges).
class FreeRanges {
public:
  void clear() { ranges_.clear(); }

  /// Adds a range, which must not overlap a free one.
  void give(std::uint64_t begin, std::uint64_t bytes) {
    auto after = ranges_.lower_bound(begin);
    if (after != ranges_.end() && begin + bytes == after->first) {
      bytes += after->second;
      after = ranges_.erase(after);
    }
    if (after != ranges_.begin()) {
      auto before = std::prev(after);
      if (before->first + before->second == begin) {
        before->second += bytes;
        return;
      }
    }
    ranges_.emplace(begin, bytes);
  }

  /// Takes the first `bytes` that begin at a multiple of `alignment`, a power of two. Returns false if there
  /// are none.
  [[nodiscard]] bool take(std::uint64_t bytes, std::uint64_t alignment, std::uint64_t& taken) {
    for (auto at = ranges_.begin(); at != ranges_.end(); ++at) {
      auto [begin, length] = *at;
      const std::uint64_t skip = round_up(begin, alignment) - begin;
      if (length < skip || length - skip < bytes) continue;
      ranges_.erase(at);
      if (skip != 0) ranges_.emplace(begin, skip);
      if (length - skip > bytes) ranges_.emplace(begin + skip + bytes, length - skip - bytes);
      taken = begin + skip;
      return true;
    }
    return false;
  }

private:
  std::map<std::uint64_t, std::uint64_t> ranges_; ///< begin -> bytes
};

} // namespace near::base
