// The list of the blocks that this process's arenas have allocated. It lies in this process's region, and
// tools such as near place read it.
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

  /// `list` has `most` entries, which read as zeros; none is touched before it is first used. `count` tells
  /// tools how many entries have ever been used.
  void build(segment::Block* list, base::Atomic<std::uint32_t>* count);
  /// Adds a block to the list. `node` and `promised`: see segment::Block. Returns false if the list is full;
  /// then only this process knows the block.
  bool add(segment::Offset begin, std::uint64_t bytes, int node, segment::BlockUse use,
           std::uint64_t promised = 0);
  bool is_full() const { return free_.empty() && next_ == most; }
  /// Records that all pages of a listed block have been allocated.
  void populated(segment::Offset begin);
  void remove(segment::Offset begin);
  /// Changes the use and the node of a block.
  void change(segment::Offset begin, int node, segment::BlockUse use);
  /// Returns true if the block at `begin`, listed or not, has a different use. A block that this process has
  /// not added counts as a window, because all pages of a window may belong to other processes.
  bool is_not(segment::Offset begin, segment::BlockUse use) const;

private:
  /// What this process knows about a block.
  struct Own {
    std::uint32_t index; ///< position in the list; `most` if the list was full
    segment::BlockUse use;
  };
  segment::Block* listed(segment::Offset begin) const;

  segment::Block* list_ = nullptr;
  base::Atomic<std::uint32_t>* count_ = nullptr;
  std::uint32_t next_ = 0;          ///< the first entry that was never used
  std::vector<std::uint32_t> free_; ///< used entries that are free again
  std::map<segment::Offset, Own> used_;
};

} // namespace near::memory
