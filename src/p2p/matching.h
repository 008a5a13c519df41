// Matching: which receive gets which message. This is bookkeeping only; nothing here moves data or waits.
// doc/matching.md has pictures and explains the ordering. Source: MPI 5.0, section 3.5.
//
// Invariants:
//   no posted receive matches an unexpected message
//   the receives in each posted list are in ascending `order`
//   the messages in each unexpected list are in order of arrival
//   a bucket with `posted_by_tag` has at least one receive and is not `recent_`
#pragma once

#include "object/object.h"
#include "p2p/list_by_tag.h"
#include "transport/transport.h"

#include <cstddef>
#include <memory>
#include <vector>

namespace near::p2p {

struct Bucket;

/// Links a receive into a list of posted receives. The bucket's own link marks both ends of the list.
struct PostedLink : Link {
  std::int32_t tag = MPI_ANY_TAG; ///< of the receive; in the bucket's own link, it ends every search
};

/// A receive that waits for its message; a base of the engine's requests.
struct Posted : PostedLink {
  std::int32_t rank = MPI_PROC_NULL; ///< the source; may be MPI_ANY_SOURCE
  std::uint64_t order = 0;           ///< position in the order of posting, among all receives
  std::uint64_t context = 0;
};
static_assert(sizeof(Posted) == 40, "the fields fill the gap behind the tag");

/// The lists that an unexpected message may be in.
enum class List : std::uint8_t { of_source, of_context, of_source_and_tag, of_context_and_tag };
template <List>
struct UnexpectedLink : Link {};

/// A message that arrived before its receive. It is in the list of its source and in the list of its context
/// and, if their buckets sort messages by tag, in the lists of its tag.
struct UnexpectedEntry : UnexpectedLink<List::of_source>,
                         UnexpectedLink<List::of_context>,
                         UnexpectedLink<List::of_source_and_tag>,
                         UnexpectedLink<List::of_context_and_tag> {
  Bucket* source_bucket = nullptr;
  Bucket* context_bucket = nullptr;
  transport::Envelope envelope;
};

class Matching {
public:
  constexpr Matching() = default;
  ~Matching();
  Matching(const Matching&) = delete;
  Matching& operator=(const Matching&) = delete;

  /// Removes and returns the receive that this message belongs to; nullptr if none is posted.
  Posted* match(const transport::Envelope& envelope);
  /// Posts a receive after all others. Returns false if there is no memory.
  [[nodiscard]] bool post(Posted& receive);
  /// Restores the receive that match() has just returned to its position, because the sender has withdrawn the
  /// message. Returns false if there is no memory.
  [[nodiscard]] bool repost(Posted& receive);
  void remove(Posted& receive);

  /// Returns the oldest unexpected message that matches this context, source and tag; wildcards are allowed. The
  /// message stays in the queue. Returns nullptr if there is none.
  UnexpectedEntry* find(std::uint64_t context, std::int32_t source, std::int32_t tag);
  /// Adds a message for which match() found no receive. Returns false if there is no memory.
  [[nodiscard]] bool add(UnexpectedEntry& message);
  void remove(UnexpectedEntry& message);

  /// Calls visit(UnexpectedEntry&) for each unexpected message; visit may remove the message that it is
  /// passed.
  template <class F>
  void each_unexpected(F visit);

  /// Calls visit(Posted&) for each posted receive that names its source; visit may remove the receive that it is
  /// passed, but no other.
  template <class F>
  void each_posted_to_one(F visit);

  std::size_t unexpected() const { return unexpected_; }
  /// Whether there are no unexpected messages and no posted receives, so that the next message belongs to
  /// the next receive.
  bool idle() const { return entries_ == 0; }
  std::size_t buckets() const { return bucket_count_; }
  /// The number of bytes that the tables by tag occupy now.
  std::size_t sorting_bytes() const;

private:
  static bool matches(std::int32_t wanted, std::int32_t tag) {
    return wanted == tag || wanted == MPI_ANY_TAG;
  }
  bool is_recent(std::uint64_t context, std::int32_t source) const;
  Bucket* lookup(std::uint64_t context, std::int32_t source) const;
  Bucket* lookup_or_make(std::uint64_t context, std::int32_t source);
  Bucket* search(std::uint64_t context, std::int32_t source) const;
  Bucket* make_bucket(std::uint64_t context, std::int32_t source);
  bool make_room();
  void enter(Bucket* bucket);
  void append(Link& list, Posted& receive);
  void count_posted(const Posted& receive);
  void count_unexpected(UnexpectedEntry& message, Bucket& source, Bucket& context);
  Link* list_for(const Posted& receive);
  void take_off(Posted& receive);
  void take_off(Bucket& bucket, Posted& receive);
  [[gnu::noinline]] Posted* match_elsewhere(const transport::Envelope& envelope);
  [[gnu::noinline]] Posted* match_any_source(Bucket* bucket, const transport::Envelope& envelope);
  [[gnu::noinline]] Posted* match_behind_head(Bucket& bucket, std::int32_t tag);
  [[gnu::noinline]] bool post_elsewhere(Posted& receive);
  [[gnu::noinline]] bool post_anywhere(Posted& receive);
  Posted* first(Bucket* bucket, std::int32_t tag);
  [[gnu::noinline]] Posted* first_behind_head(Bucket& bucket, std::int32_t tag);
  bool sort_posted(Bucket& bucket);
  template <List in_order, List by_tag>
  static UnexpectedEntry* find_in(Bucket& bucket, std::int32_t tag);
  template <List in_order, List by_tag>
  [[gnu::noinline]] static UnexpectedEntry* find_behind_head(Bucket& bucket, std::int32_t tag);
  [[gnu::noinline]] bool add_anywhere(UnexpectedEntry& message);
  [[gnu::noinline]] void remove_anywhere(UnexpectedEntry& message);

  static inline constinit Bucket* no_buckets[1] = {nullptr};
  Bucket** table_ = no_buckets; ///< open addressing; nullptr marks a free entry, and there is always one
  std::size_t table_mask_ = 0;  ///< the size of the table, a power of two, minus 1
  std::size_t bucket_count_ = 0;
  std::size_t unexpected_ = 0;
  std::size_t entries_ = 0;       ///< unexpected messages and posted receives
  std::size_t posted_to_any_ = 0; ///< receives from MPI_ANY_SOURCE; while 0, an arrival needs only one search
  std::uint64_t next_order_ = 0;
  mutable Bucket* recent_ = nullptr; ///< the bucket of the last search
};

/// The receives posted for one source of one context, and its unexpected messages. With source
/// MPI_ANY_SOURCE: the wildcard receives of the context, and all of its unexpected messages.
///
/// All receives are in `posted` until a search takes long. After that, and until no receive is left, only those
/// with MPI_ANY_TAG are in `posted`, and the others are in `posted_by_tag`. Messages are always in `unexpected`.
/// After a long search they are in `unexpected_by_tag` as well, until none is left.
struct Bucket {
  Bucket(std::uint64_t its_context, std::int32_t its_source) : context(its_context), source(its_source) {
    posted.previous = posted.next = &posted;
  }
  std::uint64_t context;
  std::int32_t source;
  PostedLink posted;
  Link unexpected{&unexpected, &unexpected};
  std::unique_ptr<ListByTag> posted_by_tag;
  std::unique_ptr<ListByTag> unexpected_by_tag;
  std::size_t sorted_receives = 0; ///< in `posted` and `posted_by_tag`; used only with the latter

  bool empty() const { return is_empty(posted) && posted_by_tag == nullptr && is_empty(unexpected); }
};

/// A search that passes this many entries sorts the bucket by tag.
inline constexpr int near_entries = 32;

[[gnu::always_inline]] inline bool Matching::is_recent(std::uint64_t context, std::int32_t source) const {
  const Bucket* recent = recent_;
  return recent != nullptr && recent->context == context && recent->source == source;
}

[[gnu::always_inline]] inline Posted* Matching::match(const transport::Envelope& envelope) {
  if (!is_recent(envelope.context, envelope.source) || posted_to_any_ != 0) [[unlikely]]
    return match_elsewhere(envelope);
  PostedLink* end = &recent_->posted;
  auto* each = static_cast<PostedLink*>(end->next);
  if (each == end) return nullptr;
  if (!matches(each->tag, envelope.tag)) {
    int left = near_entries;
    do {
      if (--left == 0) [[unlikely]]
        return match_elsewhere(envelope);
      each = static_cast<PostedLink*>(each->next);
    } while (!matches(each->tag, envelope.tag));
    if (each == end) return nullptr;
  }
  auto* receive = static_cast<Posted*>(each);
  take_off(*receive);
  return receive;
}

/// For buckets without `posted_by_tag`.
inline void Matching::take_off(Posted& receive) {
  unlink(receive);
  --entries_;
  if (receive.rank == MPI_ANY_SOURCE) --posted_to_any_;
}

[[gnu::always_inline]] inline bool Matching::post(Posted& receive) {
  if (!is_recent(receive.context, receive.rank)) [[unlikely]]
    return post_elsewhere(receive);
  append(recent_->posted, receive);
  return true;
}

[[gnu::always_inline]] inline void Matching::append(Link& list, Posted& receive) {
  receive.order = next_order_++;
  link_last(list, receive);
  count_posted(receive);
}

[[gnu::always_inline]] inline void Matching::count_posted(const Posted& receive) {
  ++entries_;
  if (receive.rank == MPI_ANY_SOURCE) ++posted_to_any_;
}

/// Lives until the process ends, because MPI may be called from static destructors.
extern constinit object::Immortal<Matching> matching_storage;
inline Matching& matching() { return matching_storage.value; }

template <class F>
void Matching::each_unexpected(F visit) {
  for (std::size_t i = 0; i <= table_mask_; ++i) {
    Bucket* bucket = table_[i];
    if (bucket == nullptr || bucket->source != MPI_ANY_SOURCE) continue;
    for (Link *each = bucket->unexpected.next, *next; each != &bucket->unexpected; each = next) {
      next = each->next;
      visit(static_cast<UnexpectedEntry&>(*static_cast<UnexpectedLink<List::of_context>*>(each)));
    }
  }
}

template <class F>
void Matching::each_posted_to_one(F visit) {
  std::vector<Posted*> found; // visit() may sort a bucket, or remove its table by tag
  auto add = [&](Link& list) {
    for (Link* each = list.next; each != &list; each = each->next)
      found.push_back(static_cast<Posted*>(static_cast<PostedLink*>(each)));
  };
  for (std::size_t i = 0; i <= table_mask_; ++i) {
    Bucket* bucket = table_[i];
    if (bucket == nullptr || bucket->source == MPI_ANY_SOURCE) continue;
    add(bucket->posted);
    if (bucket->posted_by_tag != nullptr) bucket->posted_by_tag->each(add);
  }
  for (Posted* receive : found) visit(*receive);
}

} // namespace near::p2p
