// The normal form, to which every constructor reduces its type, and on which pack, unpack, copy and pieces
// work. The picture, the invariants and the costs are in doc/datatypes.md.
//
// A form is an immutable tree, which may be shared between types that are built on one another. There are six kinds of nodes:
//
//   block    size bytes in a row
//   loop     count copies of child, stride bytes apart
//   equal    child, a block, at each of entries.positions()
//   blocks   entries[i]: a row of bytes at a displacement
//   runs     entries[i]: at a displacement, some copies of child, stride bytes apart
//   list     entries[i]: at a displacement, children[i]
//
// Invariants, for every node n:
//   n.size > 0                                        nothing empty is kept
//   the first packed byte of n lies at n's origin     so equal shapes at other places are equal nodes
//   n.size == n.count * n.child->size                 loop and equal, and count >= 2
//   entries.size() == n.count; positions()[0] == 0    equal
//   entries[0] == {0, 0}; entries.back().start == n.size; starts ascend; at least two entries and the end mark
//   entry i of runs has (entries[i + 1].start - entries[i].start) / child->size copies
//   no two neighbours in blocks adjoin in memory; no loop is one block
//   n.depth <= deepest
#pragma once

#include "abi/types.h"
#include "copy/strided.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace near::datatype {

/// Where an entry of a node begins: in memory (bytes from the node's origin) and in the packed bytes.
struct FormEntry {
  MPI_Count at = 0;
  MPI_Count start = 0;
};

/// Many numbers, stored in half the memory if each fits in 32 bits.
class CompactNumbers {
public:
  void reserve(std::size_t count) { narrow_.reserve(count); }
  /// Precondition: shorten() has not been called.
  void push_back(MPI_Count value) {
    const auto narrow = static_cast<std::int32_t>(value);
    if (wide_.empty() && narrow == value)
      narrow_.push_back(narrow);
    else
      push_back_wide(value);
  }
  /// Halves the memory of narrow numbers again if the numbers in each group lie less than 2^16 apart (copy::ShortOffsets).
  void shorten();
  std::size_t size() const {
    return is_short() ? short_.size() : wide_.empty() ? narrow_.size() : wide_.size();
  }
  bool is_short() const { return !short_.empty(); }
  bool is_narrow() const { return wide_.empty() && short_.empty(); }
  MPI_Count operator[](std::size_t i) const {
    if (is_short()) return MPI_Count{narrow_[i / copy::ShortOffsets::group]} + short_[i];
    return wide_.empty() ? narrow_[i] : wide_[i];
  }
  const std::int32_t* narrow() const { return narrow_.data(); }
  const std::int64_t* wide() const { return wide_.data(); }
  copy::ShortOffsets part(std::size_t first, std::size_t count) const {
    return {short_.data(), narrow_.data(), first, count};
  }
  /// The memory used, in bytes.
  std::size_t memory() const {
    return short_.capacity() * sizeof(std::uint16_t) + narrow_.capacity() * sizeof(std::int32_t) +
           wide_.capacity() * sizeof(std::int64_t);
  }

private:
  void push_back_wide(MPI_Count value);
  std::vector<std::int32_t> narrow_; ///< the bases, after shorten()
  std::vector<std::int64_t> wide_;   ///< all numbers, once one does not fit in 32 bits
  std::vector<std::uint16_t> short_;
};

/// The entries of a node, behind one pointer because most nodes have none.
class FormEntries {
public:
  FormEntries() = default;
  explicit FormEntries(std::span<const FormEntry> entries);
  /// Makes entries of equal length, which need neither starts nor an end mark.
  explicit FormEntries(CompactNumbers positions);
  bool empty() const { return content_ == nullptr; }
  std::size_t size() const { return empty() ? 0 : content_->at.size(); }
  FormEntry operator[](std::size_t i) const { return {content_->at[i], content_->start[i]}; }
  MPI_Count start(std::size_t i) const { return content_->start[i]; }
  FormEntry back() const { return (*this)[size() - 1]; }
  const CompactNumbers& positions() const { return content_->at; }
  /// Whether positions and starts all fit in 32 bits.
  bool is_narrow() const { return content_->at.is_narrow() && content_->start.is_narrow(); }
  const CompactNumbers& starts() const { return content_->start; }
  bool have_starts() const { return content_->start.size() != 0; }
  /// The index of the entry that holds packed byte `skip`.
  std::size_t holding(MPI_Count skip) const;
  /// The memory used, in bytes.
  std::size_t memory() const {
    return empty() ? 0 : sizeof(Content) + content_->at.memory() + content_->start.memory();
  }

private:
  struct Content {
    CompactNumbers at, start;
  };
  std::unique_ptr<const Content> content_;
};

struct NormalForm {
  enum class Kind : std::uint8_t { block, loop, equal, blocks, runs, list };
  Kind kind = Kind::block;
  std::uint16_t depth = 1;                 ///< nodes from here to the deepest leaf
  MPI_Count size = 0;                      ///< packed bytes
  MPI_Count count = 0;                     ///< loop and equal
  MPI_Count stride = 0;                    ///< loop and runs, in bytes
  std::shared_ptr<const NormalForm> child; ///< loop, equal and runs
  FormEntries entries; ///< blocks, runs and list; the last marks the end. equal: positions
  std::vector<std::shared_ptr<const NormalForm>> children; ///< list
};

using FormPointer = std::shared_ptr<const NormalForm>;

/// A form with its origin moved by `at` bytes. Without a form there is no data.
struct PlacedForm {
  FormPointer form;
  MPI_Count at = 0;
  MPI_Count size() const { return form ? form->size : 0; }
};

/// `list` nodes may be nested this deep before they are flattened. Every other inner node is at least twice
/// as large as its child, so no tree is deeper than this plus twice 63, whatever a program builds.
inline constexpr int deepest_list_chain = 64;

PlacedForm block_form(MPI_Count at, MPI_Count bytes);
/// Makes the form of `count` copies, `stride` bytes apart. The caller has checked that the sizes and displacements fit.
PlacedForm repeat_form(const PlacedForm& child, MPI_Count count, MPI_Count stride);
inline PlacedForm move_form(PlacedForm form, MPI_Count by) {
  form.at += by;
  return form;
}

/// Collects runs of one child in packed order: `count` copies, `stride` bytes apart, starting at `at`.
class RunsBuilder {
public:
  RunsBuilder(PlacedForm child, MPI_Count stride, std::size_t expected);
  void add(MPI_Count at, MPI_Count count);
  PlacedForm finish();

private:
  bool single_copies() const;
  PlacedForm unmerged(MPI_Count unit, MPI_Count step) const;
  PlacedForm child_;
  MPI_Count stride_;
  MPI_Count unit_;         ///< packed bytes of one copy
  MPI_Count children_ = 1; ///< how many make up a copy
  MPI_Count end_ = 0;      ///< where another copy of the last run would lie
  bool end_known_ = false; ///< end_ fits in its type
  MPI_Count size_ = 0;
  MPI_Count added_ = 0; ///< runs added, though they may have been merged since
  std::vector<FormEntry> entries_;
};

/// Collects forms of any shape in packed order.
class ListBuilder {
public:
  explicit ListBuilder(std::size_t expected);
  void add(const PlacedForm& form);
  PlacedForm finish();

private:
  void add_node(FormPointer form, MPI_Count at);
  void add_entries(const NormalForm& form, MPI_Count at);
  bool all_blocks() const;
  bool all_equally_spaced() const;
  void flatten();
  std::vector<FormPointer> forms_;
  std::vector<MPI_Count> at_;
};

} // namespace near::datatype
