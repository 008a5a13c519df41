// Memory that was freed and is kept, with its pages, for the next allocation of its kind: to get pages from
// the kernel and give them back costs a thousand times as much as anything else in MPI_Alloc_mem.
//
//   handed_out(block) --> released: keep(address) --> take(bytes, ...) --> handed out again
//                                   |  too large         oldest() -----> the caller gives its pages back
//                                   v
//                                   false: the caller gives its pages back
//
// What is kept is at most `most_bytes` in `most_blocks`. This is bookkeeping alone: pages are the arena's.
#pragma once

#include "transport/arena.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>

namespace near::transport {

class KeptBlocks {
public:
  /// Listed blocks are few (segment::most_blocks), and those in use come first.
  static constexpr std::size_t most_blocks = 256;

  struct Block {
    std::byte* address = nullptr;
    std::uint64_t bytes = 0;
    Arena::Placing placing;
    bool promised = false; ///< its pages come into being when they are touched
    bool in_place = false; ///< its pages were found on the node that was meant
  };

  /// Forgets everything. Nothing is kept before a bound is set.
  void build();
  bool has_bound() const { return bound_; }
  void set_bound(std::uint64_t most_bytes) {
    most_bytes_ = most_bytes;
    bound_ = true;
  }
  /// Remembers how a block was made. Blocks that this class has not been told of are never kept.
  void handed_out(const Block& block) { live_[block.address] = block; }
  /// Forgets such a block, of which `block` tells; false when there is none.
  bool returned(std::byte* address, Block& block);
  /// Whether a block of so many bytes could be kept at all.
  bool admits(std::uint64_t bytes) const { return bound_ && bytes <= most_bytes_; }
  /// Keeps it. As long as over_full() the caller gives the oldest ones back.
  void keep(const Block& block);
  bool over_full() const { return bytes_ > most_bytes_ || by_age_.size() > most_blocks; }
  /// Takes out the block that was kept first; false when nothing is kept.
  bool take_oldest(Block& block);
  /// Takes out the smallest block that was placed alike, begins at such an address, and is no more than a
  /// quarter larger than what is needed; a promised one only if `promised`. It counts as handed out.
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

} // namespace near::transport
