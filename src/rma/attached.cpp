#include "rma/attached.h"

#include "base/kill_point.h"
#include "memory/allocate.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace near::rma {

namespace {

using Lock = base::Seqlock<>;

template <class T>
T get(const base::Atomic<T>& word) {
  return Lock::get(word);
}

template <class T>
void put(base::Atomic<T>& word, T value) {
  Lock::put(word, value);
}

void put(AttachedPiece& piece, const AttachedPiece& from) {
  put(piece.address, from.address.load_relaxed());
  put(piece.bytes, from.bytes.load_relaxed());
  put(piece.shared, from.shared.load_relaxed());
}

void put(AttachedDirectory::Entry& entry, const AttachedDirectory::Entry& from) {
  put(entry.first, from.first.load_relaxed());
  put(entry.leaf, from.leaf.load_relaxed());
}

/// Index of the last of `count` elements that begins at or before `address`; also 0 if none does.
template <class Begin>
std::size_t last_not_behind(std::size_t count, std::uint64_t address, Begin&& begin) {
  std::size_t low = 0, high = count; // those before `low` begin at or before it, those from `high` on after
  while (low < high) {
    std::size_t middle = low + (high - low) / 2;
    if (begin(middle) <= address)
      low = middle + 1;
    else
      high = middle;
  }
  return low == 0 ? 0 : low - 1;
}

AttachedLeaf& leaf_at(const segment::Segment& segment, Offset offset) {
  return *segment.at<AttachedLeaf>(offset);
}

/// One pass of find_attached(). The result is meaningless if the list has changed meanwhile.
bool try_find(const segment::Segment& segment, const Attachments& attached, std::uint64_t begin,
              std::uint64_t end, AttachedRange& found) {
  Offset offset = get(attached.directory);
  if (offset == 0) return false;
  const auto& directory = *segment.at<AttachedDirectory>(offset);
  const std::size_t leaves = get(directory.count);
  std::size_t index =
      last_not_behind(leaves, begin, [&](std::size_t i) { return get(directory.entries()[i].first); });
  found = {.begin = begin, .end = begin, .shared = true};
  bool any = false;
  for (; index < leaves; ++index) {
    const AttachedLeaf& leaf = leaf_at(segment, get(directory.entries()[index].leaf));
    const std::size_t pieces = get(leaf.count);
    std::size_t at =
        any ? 0 : last_not_behind(pieces, begin, [&](std::size_t i) { return get(leaf.pieces[i].address); });
    for (; at < pieces; ++at) {
      const std::uint64_t address = get(leaf.pieces[at].address), bytes = get(leaf.pieces[at].bytes);
      const Offset shared = get(leaf.pieces[at].shared);
      // The first piece may begin before `begin`, each further one where the previous one ends.
      if (any ? address != found.end : begin < address || begin - address >= bytes) return false;
      if (!any) found.begin = address;
      any = true;
      found.end = address + bytes;
      if (shared == 0)
        found.shared = false;
      else
        found.to_segment = shared - address; // the same for all that is in the segment
      if (found.end >= end) return true;
    }
  }
  return false;
}

} // namespace

bool find_attached(const segment::Segment& segment, const Attachments& attached, std::uint64_t begin,
                   std::uint64_t end, AttachedRange& found) {
  for (;;) {
    const std::uint64_t before = Lock::begin_read(attached.sequence);
    bool result = before % 2 == 0 && try_find(segment, attached, begin, end, found);
    if (Lock::is_consistent(attached.sequence, before)) return result;
    base::cpu_relax();
  }
}

/// A scope in which the owner changes the list.
class AttachedList::Change {
public:
  explicit Change(Attachments& shared) : shared_(shared) {
    Lock::begin_change(shared_.sequence);
    NEAR_KILL_POINT("attach-begun");
  }
  ~Change() { Lock::end_change(shared_.sequence); }
  Change(const Change&) = delete;
  Change& operator=(const Change&) = delete;

private:
  Attachments& shared_;
};

AttachedList::~AttachedList() {
  for (void* each : memory_) memory::free_shareable(each);
}

AttachedDirectory& AttachedList::directory() const {
  return *segment_.at<AttachedDirectory>(shared_.directory.load_relaxed());
}

std::uint64_t AttachedList::overlapping(std::uint64_t begin, std::uint64_t bytes) const {
  auto behind = pieces_.lower_bound(begin);
  if (behind != pieces_.end() && behind->first - begin < bytes) return behind->first;
  if (behind == pieces_.begin()) return 0;
  auto before = std::prev(behind);
  return begin - before->first < before->second ? before->first : 0;
}

Result AttachedList::take_pages(std::size_t bytes, void*& made) {
  made = memory::allocate_shareable(bytes, {});
  if (made == nullptr)
    return base::fail(MPI_ERR_NO_MEM, "no memory for the list of attached memory: {}",
                      std::string(base::failure_text()));
  memory_.push_back(made);
  std::memset(made, 0, bytes); // the memory may be reused and have old contents
  return {};
}

/// Makes sure that there is a free leaf, and space for it in the directory.
Result AttachedList::prepare() {
  constexpr std::size_t page = 4096, first_leaves = 4, most_leaves = 256;
  if (free_leaves_.empty()) {
    const std::size_t count =
        std::min(std::max(first_leaves, pieces_.size() / AttachedLeaf::most), most_leaves);
    void* made = nullptr;
    NEAR_TRY(take_pages(count * page, made));
    for (std::size_t i = count; i-- > 0;)
      free_leaves_.push_back(new (static_cast<std::byte*>(made) + i * page) AttachedLeaf);
  }
  const std::size_t used = most_leaves_ == 0 ? 0 : directory().count.load_relaxed();
  if (used < most_leaves_) return {};
  const std::size_t bytes = std::max(page, 2 * (most_leaves_ + 1) * sizeof(AttachedDirectory::Entry));
  void* made = nullptr;
  NEAR_TRY(take_pages(bytes, made));
  auto& larger = *new (made) AttachedDirectory;
  if (used != 0) {
    const AttachedDirectory& old = directory();
    for (std::size_t i = 0; i < used; ++i) put(larger.entries()[i], old.entries()[i]);
    put(larger.count, used);
  }
  most_leaves_ = (bytes - sizeof(AttachedDirectory)) / sizeof(AttachedDirectory::Entry);
  Change change(shared_);
  put(shared_.directory, segment_.offset_of(made));
  return {};
}

/// Puts a free leaf into the directory. Called within a change.
AttachedLeaf& AttachedList::new_leaf(std::size_t index, std::uint64_t first) {
  AttachedDirectory& all = directory();
  AttachedLeaf& leaf = *free_leaves_.back();
  free_leaves_.pop_back();
  put(leaf.count, std::uint64_t{0});
  const std::size_t used = all.count.load_relaxed();
  for (std::size_t i = used; i > index; --i) put(all.entries()[i], all.entries()[i - 1]);
  put(all.entries()[index].first, first);
  put(all.entries()[index].leaf, segment_.offset_of(&leaf));
  put(all.count, used + 1);
  return leaf;
}

void AttachedList::drop_leaf(std::size_t index) {
  AttachedDirectory& all = directory();
  free_leaves_.push_back(&leaf_at(segment_, all.entries()[index].leaf.load_relaxed()));
  const std::size_t used = all.count.load_relaxed();
  for (std::size_t i = index + 1; i < used; ++i) put(all.entries()[i - 1], all.entries()[i]);
  put(all.count, used - 1);
}

std::size_t AttachedList::leaf_of(std::uint64_t address) const {
  const AttachedDirectory& all = directory();
  return last_not_behind(all.count.load_relaxed(), address,
                         [&](std::size_t i) { return all.entries()[i].first.load_relaxed(); });
}

Result AttachedList::add(std::uint64_t begin, std::uint64_t bytes, Offset shared) {
  NEAR_TRY(prepare());
  pieces_.emplace(begin, bytes);
  Change change(shared_);
  AttachedDirectory& all = directory();
  if (all.count.load_relaxed() == 0) new_leaf(0, begin);
  std::size_t index = leaf_of(begin);
  AttachedLeaf* leaf = &leaf_at(segment_, all.entries()[index].leaf.load_relaxed());
  std::size_t count = leaf->count.load_relaxed();
  auto find_index = [&] {
    std::size_t at =
        last_not_behind(count, begin, [&](std::size_t i) { return leaf->pieces[i].address.load_relaxed(); });
    return at < count && leaf->pieces[at].address.load_relaxed() < begin ? at + 1 : at;
  };
  std::size_t at = find_index();
  if (count == AttachedLeaf::most) {
    // A piece after all others gets a new leaf, so that attaching in order fills leaves. Otherwise the leaf
    // is halved.
    const bool behind_all = at == count && index + 1 == all.count.load_relaxed();
    const std::size_t stay = behind_all ? count : count / 2;
    AttachedLeaf& next = new_leaf(index + 1, behind_all ? begin : leaf->pieces[stay].address.load_relaxed());
    for (std::size_t i = stay; i < count; ++i) put(next.pieces[i - stay], leaf->pieces[i]);
    put(next.count, std::uint64_t{count - stay});
    put(leaf->count, std::uint64_t{stay});
    if (at > stay || behind_all) {
      leaf = &next;
      ++index;
    }
    count = leaf->count.load_relaxed();
    at = find_index();
  }
  for (std::size_t i = count; i > at; --i) put(leaf->pieces[i], leaf->pieces[i - 1]);
  put(leaf->pieces[at].address, begin);
  put(leaf->pieces[at].bytes, bytes);
  put(leaf->pieces[at].shared, shared);
  put(leaf->count, std::uint64_t{count + 1});
  if (at == 0) put(all.entries()[index].first, begin);
  return {};
}

bool AttachedList::remove(std::uint64_t begin) {
  if (pieces_.erase(begin) == 0) return false;
  Change change(shared_);
  AttachedDirectory& all = directory();
  const std::size_t index = leaf_of(begin);
  AttachedLeaf& leaf = leaf_at(segment_, all.entries()[index].leaf.load_relaxed());
  const std::size_t count = leaf.count.load_relaxed();
  const std::size_t at =
      last_not_behind(count, begin, [&](std::size_t i) { return leaf.pieces[i].address.load_relaxed(); });
  for (std::size_t i = at + 1; i < count; ++i) put(leaf.pieces[i - 1], leaf.pieces[i]);
  put(leaf.count, std::uint64_t{count - 1});
  if (count == 1)
    drop_leaf(index);
  else if (at == 0)
    put(all.entries()[index].first, leaf.pieces[0].address.load_relaxed());
  return true;
}

} // namespace near::rma
