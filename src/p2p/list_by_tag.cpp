#include "p2p/list_by_tag.h"

#include <new>

namespace near::p2p {

/// Returns the index of this tag's list in the table, or of the free entry where it belongs.
std::size_t ListByTag::index_of(std::int32_t tag) const {
  std::uint64_t mixed = static_cast<std::uint32_t>(tag) * 0x9e3779b97f4a7c15u;
  std::size_t mask = size_ - 1;
  std::size_t i = static_cast<std::size_t>(mixed >> 32) & mask;
  while (table_[i].used() && table_[i].tag != tag) i = (i + 1) & mask;
  return i;
}

Link* ListByTag::find(std::int32_t tag) const {
  if (size_ == 0) return nullptr;
  TaggedList& tagged = table_[index_of(tag)];
  return tagged.used() ? &tagged.list : nullptr;
}

Link* ListByTag::find_or_make(std::int32_t tag) {
  if (Link* list = find(tag)) return list;
  if (4 * (used_ + 1) > 3 * size_ && !reserve(1)) return nullptr;
  TaggedList& tagged = table_[index_of(tag)];
  tagged.list = {&tagged.list, &tagged.list};
  tagged.tag = tag;
  ++used_;
  return &tagged.list;
}

/// Drops empty lists, so that the size follows the number of tags that have entries.
bool ListByTag::reserve(std::size_t more) {
  std::size_t kept = 0;
  each([&](const Link& list) { kept += !is_empty(list); });
  std::size_t size = 64;
  while (size < 2 * (kept + more)) size *= 2;
  std::unique_ptr<TaggedList[]> old(new (std::nothrow) TaggedList[size]());
  if (old == nullptr) return false;
  old.swap(table_);
  std::size_t old_size = size_;
  size_ = size;
  used_ = kept;
  for (std::size_t i = 0; i < old_size; ++i) {
    const TaggedList& from = old[i];
    if (!from.used() || is_empty(from.list)) continue;
    TaggedList& to = table_[index_of(from.tag)];
    to = from;
    to.list.next->previous = to.list.previous->next = &to.list;
  }
  return true;
}

} // namespace near::p2p
