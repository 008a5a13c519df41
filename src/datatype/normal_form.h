// The normal form: what every constructor is turned into and what pack, unpack, copy and pieces run on.
// The picture, the invariants and the costs are in doc/datatypes.md.
//
// A form is a tree, shared between the types that are built on one another and never changed. Five kinds:
//
//   block    size bytes in a row
//   loop     count copies of child, stride bytes apart
//   blocks   entries[i]: a row of bytes at a displacement
//   runs     entries[i]: at a displacement, some copies of child, stride bytes apart
//   list     entries[i]: at a displacement, children[i]
//
// Invariants, for every node n:
//   n.size > 0                                        nothing empty is kept
//   the first packed byte of n lies at n's origin     so equal shapes at other places are equal nodes
//   n.size == n.count * n.child->size                 loop, and count >= 2
//   entries[0] == {0, 0}; entries.back().start == n.size; starts ascend; at least two entries and the end mark
//   entry i of runs has (entries[i + 1].start - entries[i].start) / child->size copies
//   no two neighbours in blocks adjoin in memory; no loop is one block
//   n.depth <= deepest
#pragma once

#include "abi/types.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace near::datatype {

/// Where an entry of a node begins: in memory (bytes from the node's origin) and in the packed bytes.
struct FormEntry {
  MPI_Count at = 0;
  MPI_Count start = 0;
};

struct NormalForm {
  enum class Kind : std::uint8_t { block, loop, blocks, runs, list };
  Kind kind = Kind::block;
  std::uint16_t depth = 1;                                 ///< nodes from here to the deepest leaf
  MPI_Count size = 0;                                      ///< packed bytes
  MPI_Count count = 0;                                     ///< loop
  MPI_Count stride = 0;                                    ///< loop and runs, in bytes
  std::shared_ptr<const NormalForm> child;                 ///< loop and runs
  std::vector<FormEntry> entries;                          ///< blocks, runs and list; the last marks the end
  std::vector<std::shared_ptr<const NormalForm>> children; ///< list
};

using FormPointer = std::shared_ptr<const NormalForm>;

/// A form with its origin moved by `at` bytes. No form: no data.
struct PlacedForm {
  FormPointer form;
  MPI_Count at = 0;
  MPI_Count size() const { return form ? form->size : 0; }
};

/// `list` nodes may chain this deep before they are flattened. Every other inner node at least doubles the
/// size of its child, so no tree is deeper than this plus twice 63, whatever a program builds.
inline constexpr int deepest_list_chain = 64;

PlacedForm block_form(MPI_Count at, MPI_Count bytes);
/// `count` copies, `stride` bytes apart. The caller has checked that the sizes and displacements fit.
PlacedForm repeat_form(const PlacedForm& child, MPI_Count count, MPI_Count stride);
inline PlacedForm move_form(PlacedForm form, MPI_Count by) {
  form.at += by;
  return form;
}

/// Collects runs of one child in packed order: `count` copies, `stride` bytes apart, from `at` on.
class RunsBuilder {
public:
  RunsBuilder(PlacedForm child, MPI_Count stride, std::size_t expected);
  void add(MPI_Count at, MPI_Count count);
  PlacedForm finish();

private:
  bool single_copies() const;
  PlacedForm child_;
  MPI_Count stride_;
  MPI_Count unit_;         ///< packed bytes of one copy
  MPI_Count end_ = 0;      ///< where one more copy of the last run would lie
  bool end_known_ = false; ///< end_ fits
  MPI_Count size_ = 0;
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
  bool all_equal() const;
  void flatten();
  std::vector<FormPointer> forms_;
  std::vector<MPI_Count> at_;
};

} // namespace near::datatype
