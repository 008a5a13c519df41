// Freed memory that keeps its pages for the next allocation of its kind: getting pages from the kernel and
// returning them costs a thousand times as much as the rest of MPI_Alloc_mem.
//
//   handed_out(block) --> released: keep(address) --> take(bytes, ...) --> handed out again
//                                   |  too large         oldest() -----> the caller gives its pages back
//                                   v
//                                   false: the caller gives its pages back
//
// At most `most_bytes` in `most_blocks` blocks are kept. This class only keeps account; the pages belong to
// the arena.
#pragma once

#include "memory/arena.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>

namespace near::memory {

class KeptBlocks {
public:
  /// A bound, since kept blocks take entries of the list of blocks (segment::most_blocks).
  static constexpr std::size_t most_blocks = 256;

  struct Block {
    std::byte* address = nullptr;
    std::uint64_t bytes = 0;
    Arena::Placing placing;
    bool promised = false; ///< its pages are allocated on first touch
    bool in_place = false; ///< its pages were found on the intended node
  };

  /// Forgets all blocks and the bound. Until set_bound(), nothing is kept.
  void build();
  bool has_bound() const { return bound_; }
  void set_bound(std::uint64_t most_bytes) {
    most_bytes_ = most_bytes;
    bound_ = true;
  }
  /// Remembers how a block was made. Only such blocks can be kept later.
  void handed_out(const Block& block) { live_[block.address] = block; }
  /// Forgets a block that was handed out, and describes it in `block`; false if there is none at `address`.
  bool returned(std::byte* address, Block& block);
  /// Whether a block of this size may be kept.
  bool admits(std::uint64_t bytes) const { return bound_ && bytes <= most_bytes_; }
  /// Keeps the block. The caller then gives the oldest blocks back until over_full() is false.
  void keep(const Block& block);
  bool over_full() const { return bytes_ > most_bytes_ || by_age_.size() > most_blocks; }
  /// Removes the block that was kept first; false if nothing is kept.
  bool take_oldest(Block& block);
  /// Hands out the smallest kept block with this placing and alignment that is at most a quarter larger than
  /// `bytes`; false if there is none. Promised blocks are considered only if `promised`.
  bool take(std::uint64_t bytes, std::size_t alignment, const Arena::Placing& placing, bool promised,
            Block& block);
  bool has(std::byte* address) const { return ages_.contains(address); }

private:
  using Key = std::tuple<int, bool, std::uint64_t, std::byte*>; ///< node, huge, bytes, address
  static Key key_of(const Block& block) {
    return {block.placing.node, block.placing.huge, block.bytes, block.address};
  }
  void drop(const Block& block);

  bool bound_ = false;
  std::uint64_t most_bytes_ = 0, bytes_ = 0, next_age_ = 0;
  std::map<std::byte*, Block> live_;
  std::map<Key, Block> kept_;
  std::map<std::uint64_t, Key> by_age_;
  std::map<std::byte*, std::uint64_t> ages_;
};

} // namespace near::memory
