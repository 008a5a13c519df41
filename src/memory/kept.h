// Freed memory that keeps its pages for the next allocation of its kind: getting pages from the kernel and
// returning them costs a thousand times as much as the rest of MPI_Alloc_mem.
//
//   handed_out(block) --> freed: keep(block) --> take(bytes, ...) --> allocated again
//                           |        |
//                           |        +-- over_full(): take_oldest() --> the caller returns its pages
//                           +-- !admits(bytes) -----------------------> the caller returns its pages
//
// At most `most_bytes` in `most_blocks` blocks are kept. This class only does the bookkeeping; the pages
// belong to the arena.
#pragma once

#include "memory/arena.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>

namespace near::memory {

class KeptBlocks {
public:
  /// The number of kept blocks is limited, because they use entries of the list of blocks
  /// (segment::most_blocks).
  static constexpr std::size_t most_blocks = 256;

  struct Block {
    std::byte* address = nullptr;
    std::uint64_t bytes = 0;
    Arena::Placing placing;
    bool promised = false; ///< its pages are allocated on first touch
    bool in_place = false; ///< its pages were found on the intended node
  };

  /// Forgets all blocks and the bound. Nothing is kept until set_bound() is called.
  void build();
  bool has_bound() const { return bound_; }
  void set_bound(std::uint64_t most_bytes) {
    most_bytes_ = most_bytes;
    bound_ = true;
  }
  /// Records how an allocated block was made. Only blocks that were recorded can be kept later.
  void handed_out(const Block& block) { live_[block.address] = block; }
  /// Forgets an allocated block and copies its record to `block`. Returns false if none is recorded at
  /// `address`.
  bool returned(std::byte* address, Block& block);
  /// Whether a block of this size may be kept.
  bool admits(std::uint64_t bytes) const { return bound_ && bytes <= most_bytes_; }
  /// Keeps the block. The caller must then return the pages of the oldest blocks until over_full() is false.
  void keep(const Block& block);
  bool over_full() const { return bytes_ > most_bytes_ || by_age_.size() > most_blocks; }
  /// Stops keeping the block that has been kept longest, and copies its record to `block`. Returns false if
  /// nothing is kept.
  bool take_oldest(Block& block);
  /// Takes the smallest kept block with this placing and alignment that has at least `bytes` bytes and at
  /// most a quarter more. Returns false if there is none. Blocks whose pages are allocated on first touch are
  /// considered only if `promised`.
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
