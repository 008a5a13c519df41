// See matching.h and doc/matching.md.
#include "p2p/matching.h"

#include <algorithm>
#include <new>
#include <utility>

namespace near::p2p {

namespace {

std::size_t hash(std::uint64_t context, std::int32_t source) {
  // Only the high bits of a product depend on all bits of its factors. So the source is spread before it is
  // combined with the context, and the high half of the result is folded into the low half.
  std::uint64_t key = context ^ static_cast<std::uint32_t>(source) * 0xd6e8feb86659fd93u;
  std::uint64_t mixed = key * 0x9e3779b97f4a7c15u;
  return static_cast<std::size_t>(mixed ^ (mixed >> 32));
}

Posted* receive_at(Link* link) { return static_cast<Posted*>(static_cast<PostedLink*>(link)); }

template <List list>
Link& link_of(UnexpectedEntry& message) {
  return static_cast<UnexpectedLink<list>&>(message);
}
template <List list>
UnexpectedEntry* message_at(Link* link) {
  return static_cast<UnexpectedEntry*>(static_cast<UnexpectedLink<list>*>(link));
}

/// Sorts the bucket's messages by tag. Returns false if there is no memory; searches then stay slow.
template <List in_order, List by_tag>
[[gnu::cold]] bool sort_waiting(Bucket& bucket) {
  std::unique_ptr<ListByTag> sorted(new (std::nothrow) ListByTag);
  if (sorted == nullptr) return false;
  for (Link* each = bucket.unexpected.next; each != &bucket.unexpected; each = each->next) {
    UnexpectedEntry* message = message_at<in_order>(each);
    Link* list = sorted->find_or_make(message->envelope.tag);
    if (list == nullptr) return false;
    link_last(*list, link_of<by_tag>(*message));
  }
  bucket.unexpected_by_tag = std::move(sorted);
  return true;
}

template <List in_order, List by_tag>
void add_to(Bucket& bucket, UnexpectedEntry& message) {
  link_last(bucket.unexpected, link_of<in_order>(message));
  if (bucket.unexpected_by_tag == nullptr) [[likely]]
    return;
  if (Link* list = bucket.unexpected_by_tag->find_or_make(message.envelope.tag))
    link_last(*list, link_of<by_tag>(message));
  else
    bucket.unexpected_by_tag.reset();
}

template <List in_order, List by_tag>
void remove_from(Bucket& bucket, UnexpectedEntry& message) {
  unlink(link_of<in_order>(message));
  if (bucket.unexpected_by_tag == nullptr) [[likely]]
    return;
  unlink(link_of<by_tag>(message));
  if (is_empty(bucket.unexpected)) bucket.unexpected_by_tag.reset();
}

} // namespace

Matching::~Matching() {
  if (table_ == no_buckets) return;
  for (std::size_t i = 0; i <= table_mask_; ++i) delete table_[i];
  delete[] table_;
}

[[gnu::always_inline]] inline Bucket* Matching::search(std::uint64_t context, std::int32_t source) const {
  std::size_t mask = table_mask_;
  for (std::size_t i = hash(context, source) & mask;; i = (i + 1) & mask) {
    Bucket* bucket = table_[i];
    if (bucket == nullptr) return nullptr;
    if (bucket->context == context && bucket->source == source) {
      if (bucket->posted_by_tag == nullptr) recent_ = bucket;
      return bucket;
    }
  }
}

[[gnu::always_inline]] inline Bucket* Matching::lookup(std::uint64_t context, std::int32_t source) const {
  return is_recent(context, source) ? recent_ : search(context, source);
}

[[gnu::always_inline]] inline Bucket* Matching::lookup_or_make(std::uint64_t context, std::int32_t source) {
  Bucket* bucket = lookup(context, source);
  return bucket != nullptr ? bucket : make_bucket(context, source);
}

bool Matching::sort_posted(Bucket& bucket) {
  std::unique_ptr<ListByTag> sorted(new (std::nothrow) ListByTag);
  std::size_t receives = 0;
  for (Link* each = bucket.posted.next; each != &bucket.posted; each = each->next) ++receives;
  // Reserve before moving anything, so that a failure leaves the bucket unchanged.
  if (sorted == nullptr || !sorted->reserve(receives)) return false;
  for (Link *each = bucket.posted.next, *next; each != &bucket.posted; each = next) {
    next = each->next;
    if (receive_at(each)->tag == MPI_ANY_TAG) continue;
    unlink(*each);
    link_last(*sorted->find_or_make(receive_at(each)->tag), *each);
  }
  bucket.sorted_receives = receives;
  bucket.posted_by_tag = std::move(sorted);
  if (recent_ == &bucket) recent_ = nullptr;
  return true;
}

/// Returns the first receive in the bucket that matches this tag; nullptr if there is none. `bucket` may be nullptr.
[[gnu::always_inline]] inline Posted* Matching::first(Bucket* bucket, std::int32_t tag) {
  if (bucket == nullptr) return nullptr;
  if (bucket->posted_by_tag == nullptr) [[likely]] {
    Link* head = bucket->posted.next;
    if (head == &bucket->posted) return nullptr;
    if (matches(receive_at(head)->tag, tag)) return receive_at(head);
  }
  return first_behind_head(*bucket, tag);
}

Posted* Matching::first_behind_head(Bucket& bucket, std::int32_t tag) {
  if (bucket.posted_by_tag == nullptr) {
    auto* each = static_cast<PostedLink*>(bucket.posted.next);
    int left = near_entries;
    do {
      if (--left == 0 && sort_posted(bucket)) break;
      each = static_cast<PostedLink*>(each->next);
    } while (!matches(each->tag, tag));
    if (bucket.posted_by_tag == nullptr) return each != &bucket.posted ? receive_at(each) : nullptr;
  }
  Link* list = bucket.posted_by_tag->find(tag);
  Posted* exact = list == nullptr || is_empty(*list) ? nullptr : receive_at(list->next);
  Posted* any_tag = is_empty(bucket.posted) ? nullptr : receive_at(bucket.posted.next);
  if (exact == nullptr || any_tag == nullptr) return exact != nullptr ? exact : any_tag;
  return exact->order < any_tag->order ? exact : any_tag;
}

/// The slow path of match(): the bucket is not the recent one, it is or should be sorted by tag, or there are
/// receives from any source. Here and in other functions below, rare cases are tail calls, so that the compiler
/// saves no registers for them.
Posted* Matching::match_elsewhere(const transport::Envelope& envelope) {
  Bucket* bucket = search(envelope.context, envelope.source);
  if (posted_to_any_ != 0) [[unlikely]]
    return match_any_source(bucket, envelope);
  if (bucket == nullptr) return nullptr;
  Link* head = bucket->posted.next;
  if (bucket->posted_by_tag == nullptr) [[likely]] {
    if (head == &bucket->posted) return nullptr;
    if (matches(receive_at(head)->tag, envelope.tag)) {
      take_off(*receive_at(head));
      return receive_at(head);
    }
  }
  return match_behind_head(*bucket, envelope.tag);
}

Posted* Matching::match_behind_head(Bucket& bucket, std::int32_t tag) {
  Posted* receive = first_behind_head(bucket, tag);
  if (receive != nullptr) take_off(bucket, *receive);
  return receive;
}

Posted* Matching::match_any_source(Bucket* bucket, const transport::Envelope& envelope) {
  Posted* receive = first(bucket, envelope.tag);
  Bucket* any_source = lookup(envelope.context, MPI_ANY_SOURCE);
  Posted* wildcard = first(any_source, envelope.tag);
  if (wildcard != nullptr && (receive == nullptr || wildcard->order < receive->order)) {
    receive = wildcard;
    bucket = any_source;
  }
  if (receive != nullptr) take_off(*bucket, *receive);
  return receive;
}

inline void Matching::take_off(Bucket& bucket, Posted& receive) {
  take_off(receive);
  if (bucket.posted_by_tag != nullptr && --bucket.sorted_receives == 0) bucket.posted_by_tag.reset();
}

void Matching::remove(Posted& receive) { take_off(*lookup(receive.context, receive.rank), receive); }

bool Matching::post_elsewhere(Posted& receive) {
  Bucket* bucket = search(receive.context, receive.rank);
  if (bucket == nullptr || bucket->posted_by_tag != nullptr) [[unlikely]]
    return post_anywhere(receive);
  append(bucket->posted, receive);
  return true;
}

/// Returns the list for this receive, whose bucket counts it from now on; nullptr if there is no memory.
Link* Matching::list_for(const Posted& receive) {
  Bucket* bucket = lookup_or_make(receive.context, receive.rank);
  if (bucket == nullptr) return nullptr;
  if (bucket->posted_by_tag == nullptr) return &bucket->posted;
  Link* list =
      receive.tag == MPI_ANY_TAG ? &bucket->posted : bucket->posted_by_tag->find_or_make(receive.tag);
  if (list != nullptr) ++bucket->sorted_receives;
  return list;
}

bool Matching::post_anywhere(Posted& receive) {
  Link* list = list_for(receive);
  if (list == nullptr) return false;
  append(*list, receive);
  return true;
}

bool Matching::repost(Posted& receive) {
  Link* list = list_for(receive);
  if (list == nullptr) return false;
  // match() took it from near the front.
  Link* behind = list->next;
  while (behind != list && receive_at(behind)->order < receive.order) behind = behind->next;
  link_behind(*behind->previous, receive);
  count_posted(receive);
  return true;
}

template <List in_order, List by_tag>
inline UnexpectedEntry* Matching::find_in(Bucket& bucket, std::int32_t tag) {
  Link* head = bucket.unexpected.next;
  if (head == &bucket.unexpected) return nullptr;
  if (matches(tag, message_at<in_order>(head)->envelope.tag)) return message_at<in_order>(head);
  return find_behind_head<in_order, by_tag>(bucket, tag);
}

template <List in_order, List by_tag>
UnexpectedEntry* Matching::find_behind_head(Bucket& bucket, std::int32_t tag) {
  if (bucket.unexpected_by_tag == nullptr) {
    int left = near_entries;
    for (Link* each = bucket.unexpected.next; each != &bucket.unexpected; each = each->next) {
      UnexpectedEntry* message = message_at<in_order>(each);
      if (matches(tag, message->envelope.tag)) return message;
      if (--left == 0 && sort_waiting<in_order, by_tag>(bucket)) break;
    }
    if (bucket.unexpected_by_tag == nullptr) return nullptr;
  }
  Link* list = bucket.unexpected_by_tag->find(tag);
  return list == nullptr || is_empty(*list) ? nullptr : message_at<by_tag>(list->next);
}

UnexpectedEntry* Matching::find(std::uint64_t context, std::int32_t source, std::int32_t tag) {
  if (unexpected_ == 0) return nullptr;
  Bucket* bucket = lookup(context, source);
  if (bucket == nullptr) return nullptr;
  return source == MPI_ANY_SOURCE ? find_in<List::of_context, List::of_context_and_tag>(*bucket, tag)
                                  : find_in<List::of_source, List::of_source_and_tag>(*bucket, tag);
}

inline void Matching::count_unexpected(UnexpectedEntry& message, Bucket& source, Bucket& context) {
  message.source_bucket = &source;
  message.context_bucket = &context;
  ++unexpected_;
  ++entries_;
}

bool Matching::add(UnexpectedEntry& message) {
  Bucket* source = lookup(message.envelope.context, message.envelope.source);
  Bucket* context = search(message.envelope.context, MPI_ANY_SOURCE);
  if (source == nullptr || context == nullptr || source->unexpected_by_tag != nullptr ||
      context->unexpected_by_tag != nullptr) [[unlikely]]
    return add_anywhere(message);
  link_last(source->unexpected, link_of<List::of_source>(message));
  link_last(context->unexpected, link_of<List::of_context>(message));
  count_unexpected(message, *source, *context);
  return true;
}

bool Matching::add_anywhere(UnexpectedEntry& message) {
  // Each bucket gets its entry before the next bucket is requested, because making a bucket may discard empty ones.
  Bucket* source = lookup_or_make(message.envelope.context, message.envelope.source);
  if (source == nullptr) return false;
  add_to<List::of_source, List::of_source_and_tag>(*source, message);
  Bucket* context = lookup_or_make(message.envelope.context, MPI_ANY_SOURCE);
  if (context == nullptr) {
    remove_from<List::of_source, List::of_source_and_tag>(*source, message);
    return false;
  }
  add_to<List::of_context, List::of_context_and_tag>(*context, message);
  count_unexpected(message, *source, *context);
  return true;
}

void Matching::remove(UnexpectedEntry& message) {
  if (message.source_bucket->unexpected_by_tag != nullptr ||
      message.context_bucket->unexpected_by_tag != nullptr) [[unlikely]]
    return remove_anywhere(message);
  unlink(link_of<List::of_source>(message));
  unlink(link_of<List::of_context>(message));
  --unexpected_;
  --entries_;
}

void Matching::remove_anywhere(UnexpectedEntry& message) {
  remove_from<List::of_source, List::of_source_and_tag>(*message.source_bucket, message);
  remove_from<List::of_context, List::of_context_and_tag>(*message.context_bucket, message);
  --unexpected_;
  --entries_;
}

std::size_t Matching::sorting_bytes() const {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i <= table_mask_; ++i) {
    if (table_[i] == nullptr) continue;
    for (const ListByTag* sorted : {table_[i]->posted_by_tag.get(), table_[i]->unexpected_by_tag.get()})
      if (sorted != nullptr) bytes += sorted->bytes();
  }
  return bytes;
}

Bucket* Matching::make_bucket(std::uint64_t context, std::int32_t source) {
  if (4 * (bucket_count_ + 1) > 3 * (table_mask_ + 1) && !make_room()) return nullptr;
  auto* bucket = new (std::nothrow) Bucket(context, source);
  if (bucket == nullptr) return nullptr;
  enter(bucket);
  ++bucket_count_;
  recent_ = bucket;
  return bucket;
}

/// Contexts are never reused, so buckets of freed communicators are removed here before the table grows: its
/// size follows the number of pairs that have something pending.
bool Matching::make_room() {
  std::size_t kept = 0, old_size = table_mask_ + 1;
  for (std::size_t i = 0; i < old_size; ++i) kept += table_[i] != nullptr && !table_[i]->empty();
  std::size_t size = std::max<std::size_t>(old_size, 64);
  while (2 * (kept + 1) > size) size *= 2;
  Bucket** old = table_;
  auto** made = new (std::nothrow) Bucket*[size]();
  if (made == nullptr) return false;
  table_ = made;
  table_mask_ = size - 1;
  bucket_count_ = kept;
  recent_ = nullptr;
  for (std::size_t i = 0; i < old_size; ++i) {
    Bucket* bucket = old[i];
    if (bucket == nullptr) continue;
    if (bucket->empty())
      delete bucket;
    else
      enter(bucket);
  }
  if (old != no_buckets) delete[] old;
  return true;
}

void Matching::enter(Bucket* bucket) {
  std::size_t mask = table_mask_;
  // NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): envelopes are initialised; the analyzer loses the
  // union
  std::size_t i = hash(bucket->context, bucket->source) & mask;
  while (table_[i] != nullptr) i = (i + 1) & mask;
  table_[i] = bucket;
}

} // namespace near::p2p
