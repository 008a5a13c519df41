// The list of what this process's arenas have handed out, in its region, for tools: near place.
#pragma once

#include "segment/segment.h"

#include <cstdint>
#include <map>
#include <vector>

namespace near::memory {

class Blocks {
public:
  static constexpr std::uint32_t most = segment::most_blocks;
  static constexpr std::uint64_t bytes() { return most * sizeof(segment::Block); }

  /// `list`: `most` entries that read as zeros. None is touched before it is used; `count` says how many
  /// were.
  void build(segment::Block* list, base::Atomic<std::uint32_t>* count);
  /// `promised`: see segment::Block. False if the list is full; then only this process knows the block.
  bool add(segment::Offset begin, std::uint64_t bytes, int node, segment::BlockUse use,
           std::uint64_t promised = 0);
  bool is_full() const { return free_.empty() && next_ == most; }
  /// Notes that all pages of a listed block exist.
  void populated(segment::Offset begin);
  void remove(segment::Offset begin);
  /// Changes what a block is for, and its node.
  void change(segment::Offset begin, int node, segment::BlockUse use);
  /// Whether the block that begins there, listed or not, is for something else. A block that is not known
  /// here is a window's: its pages may all belong to other processes.
  bool is_not(segment::Offset begin, segment::BlockUse use) const;

private:
  /// A block as this process knows it.
  struct Own {
    std::uint32_t index; ///< in the list, or `most`: it was full
    segment::BlockUse use;
  };
  segment::Block* listed(segment::Offset begin) const;

  segment::Block* list_ = nullptr;
  base::Atomic<std::uint32_t>* count_ = nullptr;
  std::uint32_t next_ = 0;          ///< the first that was never used
  std::vector<std::uint32_t> free_; ///< used ones that are free again
  std::map<segment::Offset, Own> used_;
};

} // namespace near::memory
