// The list of memory that a process has attached to a dynamic window. It lies in the process's region, sorted
// by address, and other processes search it without the owner's help.
//
//   Attachments                 directory                         leaf, one page
//   +----------+-----------+    +-------+-------------+--------   +-------+------------------------+-----
//   | sequence | directory |--->| count | first, leaf | ...   --->| count | address, bytes, shared | ...
//   +----------+-----------+    +-------+-------------+--------   +-------+------------------------+-----
//
// A seqlock with one writer: `sequence` is odd while the owner changes the list. A reader that notices a
// change starts again. Before it notices, it may combine words from before and after the change. That is
// harmless: a directory or leaf remains one until the window ends, and its count never exceeds its capacity.
#pragma once

#include "base/seqlock.h"
#include "memory/space.h"
#include "rma/rma.h"

#include <cstdint>
#include <map>
#include <vector>

namespace near::rma {

using segment::Offset;

struct AttachedPiece {
  base::Atomic<std::uint64_t> address; ///< in the owner's address space
  base::Atomic<std::uint64_t> bytes;
  base::Atomic<Offset> shared; ///< the same memory in the segment; 0: private
};

/// A page of neighbouring pieces.
struct AttachedLeaf {
  static constexpr std::size_t most = 170;
  base::Atomic<std::uint64_t> count;
  AttachedPiece pieces[most];
};
static_assert(sizeof(AttachedLeaf) <= 4096);

/// The leaves in order of their pieces. None is empty.
struct alignas(16) AttachedDirectory {
  struct Entry {
    base::Atomic<std::uint64_t> first; ///< address of the leaf's first piece
    base::Atomic<Offset> leaf;
  };
  base::Atomic<std::uint64_t> count;
  /// The entries follow this header, as many as fit.
  Entry* entries() { return reinterpret_cast<Entry*>(this + 1); }
  const Entry* entries() const { return reinterpret_cast<const Entry*>(this + 1); }
};

struct Attachments {
  base::Atomic<std::uint64_t> sequence;
  base::Atomic<Offset> directory; ///< 0: nothing was ever attached
};

/// Attached memory without a gap.
struct AttachedRange {
  std::uint64_t begin = 0, end = 0; ///< of the pieces that were examined
  bool shared = false;              ///< all of it is in the segment
  std::uint64_t to_segment = 0;     ///< offset in the segment minus address, modulo 2^64; if `shared`
};

/// Finds [begin, end) of the owner's address space; `begin` < `end`. Returns false unless every byte is
/// attached. Any process may call this. `segment` is the segment of the owner's job.
bool find_attached(const segment::Segment& segment, const Attachments& attached, std::uint64_t begin,
                   std::uint64_t end, AttachedRange& found);

/// The owner's side of the list; only the owner changes the list.
class AttachedList {
public:
  explicit AttachedList(Attachments& shared) : shared_(shared), segment_(memory::space().segment) {}
  AttachedList(const AttachedList&) = delete;
  AttachedList& operator=(const AttachedList&) = delete;
  /// Precondition: no process searches the list any more.
  ~AttachedList();

  /// The attach address of memory that overlaps [begin, begin + bytes); 0 if none does.
  std::uint64_t overlapping(std::uint64_t begin, std::uint64_t bytes) const;
  /// Attaches memory. Precondition: it overlaps no attached memory, and `bytes` > 0. Fails with MPI_ERR_NO_MEM if there
  /// is no memory for the list.
  Result add(std::uint64_t begin, std::uint64_t bytes, Offset shared);
  /// Detaches the memory that was attached at this address. Returns false if there is none.
  bool remove(std::uint64_t begin);

private:
  class Change;
  AttachedDirectory& directory() const;
  std::size_t leaf_of(std::uint64_t address) const;
  Result take_pages(std::size_t bytes, void*& made);
  Result prepare();
  AttachedLeaf& new_leaf(std::size_t index, std::uint64_t first);
  void drop_leaf(std::size_t index);

  Attachments& shared_;
  const segment::Segment& segment_;               ///< of this process's job
  std::map<std::uint64_t, std::uint64_t> pieces_; ///< address -> bytes
  std::size_t most_leaves_ = 0;                   ///< how many the directory has space for
  std::vector<AttachedLeaf*> free_leaves_;
  std::vector<void*> memory_; ///< everything that was allocated, outgrown directories included
};

} // namespace near::rma
