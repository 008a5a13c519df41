// Lists of entries by tag: a bucket with many entries finds those of one tag in one step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace near::p2p {

/// A node of a doubly linked list. The head of the list is a Link too, but not an entry: its `next` is the
/// first entry, its `previous` the last.
struct Link {
  Link* previous = nullptr;
  Link* next = nullptr;
};
inline bool is_empty(const Link& list) { return list.next == &list; }
inline void link_behind(Link& before, Link& entry) {
  entry.previous = &before;
  entry.next = before.next;
  entry.next->previous = &entry;
  before.next = &entry;
}
inline void link_last(Link& list, Link& entry) { link_behind(*list.previous, entry); }
inline void unlink(Link& entry) {
  entry.previous->next = entry.next;
  entry.next->previous = entry.previous;
}

/// A hash table of lists. Entries are removed by unlink(). Empty lists are removed when the table grows.
/// Invariant: all entries of a list have the same tag.
class ListByTag {
public:
  /// Returns the list of this tag, which may be empty; nullptr if there is none. Valid until the next find_or_make().
  Link* find(std::int32_t tag) const;
  /// Returns the list of this tag, making it if there is none. Returns nullptr if there is no memory.
  [[nodiscard]] Link* find_or_make(std::int32_t tag);
  /// Makes room for `more` lists in addition to those that have entries. Returns false if there is no memory.
  [[nodiscard]] bool reserve(std::size_t more);
  std::size_t bytes() const { return sizeof *this + size_ * sizeof(TaggedList); }
  /// Calls visit(Link&) for each list.
  template <class F>
  void each(F visit) {
    for (std::size_t i = 0; i < size_; ++i)
      if (table_[i].used()) visit(table_[i].list);
  }

private:
  struct TaggedList {
    Link list;
    std::int32_t tag = 0;
    bool used() const { return list.next != nullptr; }
  };
  std::size_t index_of(std::int32_t tag) const;

  std::unique_ptr<TaggedList[]> table_; ///< open addressing
  std::size_t size_ = 0;                ///< a power of two
  std::size_t used_ = 0;
};

} // namespace near::p2p
