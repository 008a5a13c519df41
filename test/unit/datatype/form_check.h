// Checks the invariants of normal_form.h, for the random tests and the fuzzer.
#pragma once

#include "datatype/normal_form.h"

#include <unordered_set>

namespace near::datatype::test {

/// The first invariant that a node breaks, or nullptr. Shared nodes are checked once.
class FormCheck {
public:
  const char* broken(const NormalForm& form) {
    if (!seen_.insert(&form).second) return nullptr;
    using Kind = NormalForm::Kind;
    if (form.size <= 0) return "size > 0";
    if (form.depth > deepest_list_chain + 2 * 63) return "depth is bounded";
    bool entries = form.kind == Kind::equal || form.kind == Kind::blocks || form.kind == Kind::runs ||
                   form.kind == Kind::list;
    bool child = form.kind == Kind::loop || form.kind == Kind::equal || form.kind == Kind::runs;
    if (entries == form.entries.empty()) return "entries belong to equal, blocks, runs and list";
    if (child != (form.child != nullptr)) return "child belongs to loop, equal and runs";
    if ((form.kind == Kind::list) == form.children.empty()) return "children belong to list";
    if (child) {
      if (const char* why = broken(*form.child)) return why;
      if (form.depth <= form.child->depth) return "depth grows";
    }
    if (form.kind == Kind::loop) return broken_loop(form);
    if (form.kind == Kind::equal) return broken_equal(form);
    return entries ? broken_entries(form) : nullptr;
  }

private:
  const char* broken_loop(const NormalForm& form) {
    const NormalForm& child = *form.child;
    if (form.count < 2) return "count >= 2";
    if (form.size != form.count * child.size) return "size == count * child->size";
    if (child.kind == NormalForm::Kind::block && child.size == form.stride) return "no loop is one block";
    return nullptr;
  }
  const char* broken_equal(const NormalForm& form) {
    if (form.child->kind != NormalForm::Kind::block) return "equal holds blocks";
    if (form.count < 2) return "count >= 2";
    if (form.size != form.count * form.child->size) return "size == count * child->size";
    if (form.entries.have_starts()) return "equal has no starts";
    const CompactNumbers& positions = form.entries.positions();
    if (static_cast<MPI_Count>(positions.size()) != form.count || positions[0] != 0)
      return "a position for each block";
    return nullptr;
  }
  const char* broken_entries(const NormalForm& form) {
    using Kind = NormalForm::Kind;
    const FormEntries& entries = form.entries;
    if (!entries.have_starts()) return "blocks, runs and list have starts";
    if (entries.size() < 3) return "at least two entries and the end mark";
    if (entries[0].at != 0 || entries[0].start != 0) return "entries[0] == {0, 0}";
    if (entries.back().start != form.size) return "entries.back().start == size";
    if (form.kind == Kind::list && form.children.size() + 1 != entries.size())
      return "a child for each entry";
    for (std::size_t i = 0; i + 1 < entries.size(); ++i) {
      MPI_Count bytes = entries[i + 1].start - entries[i].start;
      if (bytes <= 0) return "starts ascend";
      if (form.kind == Kind::runs && bytes % form.child->size != 0) return "runs hold whole copies";
      if (form.kind == Kind::blocks && i + 2 < entries.size() && entries[i].at + bytes == entries[i + 1].at)
        return "no two neighbours in blocks adjoin";
      if (form.kind != Kind::list) continue;
      if (form.children[i]->size != bytes) return "a child has the bytes of its entry";
      if (form.children[i]->depth >= form.depth) return "depth grows";
      if (const char* why = broken(*form.children[i])) return why;
    }
    return nullptr;
  }
  std::unordered_set<const NormalForm*> seen_;
};

} // namespace near::datatype::test
