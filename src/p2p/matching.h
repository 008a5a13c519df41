// Matching: which receive gets which message. Pure bookkeeping; nothing here moves data or waits.
// doc/matching.md has the picture and the ordering argument. Source: MPI 5.0, section 3.5.
//
// Invariants:
//   no posted receive matches an unexpected message
//   each ring of posted receives ascends in `order`
//   each ring of unexpected messages is in order of arrival
//   a bucket that sorts its receives by tag has one, and is not `recent_`
#pragma once

#include "object/object.h"
#include "p2p/ring_by_tag.h"
#include "transport/transport.h"

#include <cstddef>
#include <memory>

namespace near::p2p {

struct Bucket;

/// In a ring of posted receives, whose first and last element is the bucket's own.
struct PostedLink : Link {
  std::int32_t tag = MPI_ANY_TAG; ///< of the receive; the bucket's own element ends every search
};

/// A receive that waits for its message; base of the engine's requests.
struct Posted : PostedLink {
  std::int32_t rank = MPI_PROC_NULL; ///< the source; may be MPI_ANY_SOURCE
  std::uint64_t order = 0;           ///< rank in posting order among all receives
  std::uint64_t context = 0;
};
static_assert(sizeof(Posted) == 40, "the fields fill the gap behind the tag");

/// The rings that an unexpected message may be in.
enum class Ring : std::uint8_t { of_source, of_context, of_source_and_tag, of_context_and_tag };
template <Ring>
struct UnexpectedLink : Link {};

/// A message that arrived before its receive: in the ring of its source and in the ring of its context; and,
/// in a bucket that sorts its messages by tag, in the ring of its tag.
struct UnexpectedEntry : UnexpectedLink<Ring::of_source>,
                         UnexpectedLink<Ring::of_context>,
                         UnexpectedLink<Ring::of_source_and_tag>,
                         UnexpectedLink<Ring::of_context_and_tag> {
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

  /// Takes off the receive that this message belongs to; nullptr: none is posted.
  Posted* match(const transport::Envelope& envelope);
  /// Adds a receive behind all others. False: no memory.
  [[nodiscard]] bool post(Posted& receive);
  /// Puts the receive that match() just gave back to its old place: its message was withdrawn by the sender.
  [[nodiscard]] bool repost(Posted& receive);
  void remove(Posted& receive);

  /// The oldest unexpected message for a receive of (context, source, tag), wildcards allowed; it stays.
  UnexpectedEntry* find(std::uint64_t context, std::int32_t source, std::int32_t tag);
  /// Adds a message that match() found no receive for. False: no memory.
  [[nodiscard]] bool add(UnexpectedEntry& message);
  void remove(UnexpectedEntry& message);

  /// Calls visit(UnexpectedEntry&) for each unexpected message; visit may remove the one it is given.
  template <class F>
  void each_unexpected(F visit);

  std::size_t unexpected() const { return unexpected_; }
  /// No message waits and no receive is posted, so the next message is the next receive's.
  bool idle() const { return entries_ == 0; }
  std::size_t buckets() const { return bucket_count_; }
  /// Bytes that sorting by tag takes now.
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
  void place(Bucket* bucket);
  void append(Link& ring, Posted& receive);
  void count_posted(const Posted& receive);
  void count_unexpected(UnexpectedEntry& message, Bucket& source, Bucket& context);
  Link* ring_for(const Posted& receive);
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
  template <Ring in_order, Ring by_tag>
  static UnexpectedEntry* find_in(Bucket& bucket, std::int32_t tag);
  template <Ring in_order, Ring by_tag>
  [[gnu::noinline]] static UnexpectedEntry* find_behind_head(Bucket& bucket, std::int32_t tag);
  [[gnu::noinline]] bool add_anywhere(UnexpectedEntry& message);
  [[gnu::noinline]] void remove_anywhere(UnexpectedEntry& message);

  static inline constinit Bucket* no_buckets[1] = {nullptr};
  Bucket** table_ = no_buckets; ///< open addressing; nullptr: free, and at least one is
  std::size_t table_mask_ = 0;  ///< its size, a power of two, less 1
  std::size_t bucket_count_ = 0;
  std::size_t unexpected_ = 0;
  std::size_t entries_ = 0;       ///< unexpected messages and posted receives
  std::size_t posted_to_any_ = 0; ///< receives from MPI_ANY_SOURCE: 0 spares arrivals the second look
  std::uint64_t next_order_ = 0;
  mutable Bucket* recent_ = nullptr; ///< that was asked for last
};

/// What is posted to, or waits from, one source of one context. With source MPI_ANY_SOURCE: the wildcard
/// receives of the context, and all of its unexpected messages.
///
/// Receives are all in `posted`; once a search has been long, only those with MPI_ANY_TAG are, and the others
/// are in `posted_by_tag`, until no receive is left. Messages are always in `unexpected`; after a long search
/// they are in `unexpected_by_tag` as well, until none is left.
struct Bucket {
  Bucket(std::uint64_t its_context, std::int32_t its_source) : context(its_context), source(its_source) {
    posted.previous = posted.next = &posted;
  }
  std::uint64_t context;
  std::int32_t source;
  PostedLink posted;
  Link unexpected{&unexpected, &unexpected};
  std::unique_ptr<RingByTag> posted_by_tag;
  std::unique_ptr<RingByTag> unexpected_by_tag;
  std::size_t sorted_receives = 0; ///< in `posted` and `posted_by_tag`; unused without the latter

  bool empty() const { return is_empty(posted) && posted_by_tag == nullptr && is_empty(unexpected); }
};

/// Entries that a search looks at before its bucket is sorted by tag.
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

/// For a bucket that does not sort its receives.
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

[[gnu::always_inline]] inline void Matching::append(Link& ring, Posted& receive) {
  receive.order = next_order_++;
  link_last(ring, receive);
  count_posted(receive);
}

[[gnu::always_inline]] inline void Matching::count_posted(const Posted& receive) {
  ++entries_;
  if (receive.rank == MPI_ANY_SOURCE) ++posted_to_any_;
}

/// The engine's own objects live until the process is gone: MPI may be called from static destructors.
extern constinit object::Immortal<Matching> matching_storage;
inline Matching& matching() { return matching_storage.value; }

template <class F>
void Matching::each_unexpected(F visit) {
  for (std::size_t i = 0; i <= table_mask_; ++i) {
    Bucket* bucket = table_[i];
    if (bucket == nullptr || bucket->source != MPI_ANY_SOURCE) continue;
    for (Link *each = bucket->unexpected.next, *next; each != &bucket->unexpected; each = next) {
      next = each->next;
      visit(static_cast<UnexpectedEntry&>(*static_cast<UnexpectedLink<Ring::of_context>*>(each)));
    }
  }
}

} // namespace near::p2p
