// The matching engine; see matching.h and doc/matching.md.
#include "p2p/matching.h"

#include <new>

namespace near::p2p {

namespace {

std::size_t hash(std::uint64_t context, std::int32_t source) {
  std::uint64_t mixed = (context ^ (static_cast<std::uint64_t>(static_cast<std::uint32_t>(source)) << 40)) *
                        0x9e3779b97f4a7c15u;
  return static_cast<std::size_t>(mixed ^ (mixed >> 29));
}

void append(Bucket& bucket, Waiting& message, Waiting::Link Waiting::* link) {
  (message.*link).previous = bucket.last_waiting;
  (message.*link).next = nullptr;
  if (bucket.last_waiting != nullptr)
    (bucket.last_waiting->*link).next = &message;
  else
    bucket.first_waiting = &message;
  bucket.last_waiting = &message;
}

void unlink(Bucket& bucket, Waiting& message, Waiting::Link Waiting::* link) {
  Waiting::Link& own = message.*link;
  (own.previous != nullptr ? (own.previous->*link).next : bucket.first_waiting) = own.next;
  (own.next != nullptr ? (own.next->*link).previous : bucket.last_waiting) = own.previous;
}

} // namespace

Matching::~Matching() {
  for (std::size_t i = 0; i < table_size_; ++i) delete table_[i];
}

/// The oldest receive from any source if it is older than `receive`, else that.
Posted* Matching::earlier(Posted* receive, const transport::Envelope& envelope) const {
  Posted* wildcard = first_match(lookup(envelope.context, MPI_ANY_SOURCE), envelope.tag);
  return wildcard != nullptr && (receive == nullptr || wildcard->order < receive->order) ? wildcard : receive;
}

bool Matching::repost(Posted& receive) {
  Bucket* bucket = lookup_or_make(receive.context, receive.rank);
  if (bucket == nullptr) return false;
  PostedLink* behind = bucket->posted.previous;
  while (behind != &bucket->posted && static_cast<Posted*>(behind)->order > receive.order)
    behind = behind->previous;
  link(*behind, receive);
  return true;
}

Waiting* Matching::find(std::uint64_t context, std::int32_t source, std::int32_t tag) {
  if (waiting_ == 0) return nullptr;
  Bucket* bucket = lookup(context, source);
  if (bucket == nullptr) return nullptr;
  Waiting::Link Waiting::* link = source == MPI_ANY_SOURCE ? &Waiting::by_context : &Waiting::by_source;
  Waiting* message = bucket->first_waiting;
  while (message != nullptr && !matches(tag, message->envelope.tag)) message = (message->*link).next;
  return message;
}

bool Matching::add(Waiting& message) {
  // Each bucket gets its entry before the next one is asked for: making a bucket may discard empty ones.
  Bucket* source = lookup_or_make(message.envelope.context, message.envelope.source);
  if (source == nullptr) return false;
  append(*source, message, &Waiting::by_source);
  Bucket* context = lookup_or_make(message.envelope.context, MPI_ANY_SOURCE);
  if (context == nullptr) {
    unlink(*source, message, &Waiting::by_source);
    return false;
  }
  append(*context, message, &Waiting::by_context);
  message.source_bucket = source;
  message.context_bucket = context;
  ++waiting_;
  ++entries_;
  return true;
}

void Matching::remove(Waiting& message) {
  unlink(*message.source_bucket, message, &Waiting::by_source);
  unlink(*message.context_bucket, message, &Waiting::by_context);
  --waiting_;
  --entries_;
}

Bucket* Matching::search(std::uint64_t context, std::int32_t source) const {
  if (table_size_ == 0) return nullptr;
  std::size_t mask = table_size_ - 1;
  for (std::size_t i = hash(context, source) & mask;; i = (i + 1) & mask) {
    Bucket* bucket = table_[i];
    if (bucket == nullptr) return nullptr;
    if (bucket->context == context && bucket->source == source) {
      recent_ = bucket;
      return bucket;
    }
  }
}

Bucket* Matching::make_bucket(std::uint64_t context, std::int32_t source) {
  if (4 * (bucket_count_ + 1) > 3 * table_size_ && !make_room()) return nullptr;
  auto* bucket = new (std::nothrow) Bucket(context, source);
  if (bucket == nullptr) return nullptr;
  place(bucket);
  ++bucket_count_;
  recent_ = bucket;
  return bucket;
}

/// Contexts are never reused, so buckets of finished communicators are swept out here, and only then the
/// table grows: its size follows the pairs that have something pending.
bool Matching::make_room() {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < table_size_; ++i) kept += table_[i] != nullptr && !table_[i]->empty();
  std::size_t size = table_size_ != 0 ? table_size_ : 64;
  while (2 * (kept + 1) > size) size *= 2;
  std::unique_ptr<Bucket*[]> old(new (std::nothrow) Bucket*[size]());
  if (old == nullptr) return false;
  old.swap(table_);
  std::size_t old_size = table_size_;
  table_size_ = size;
  bucket_count_ = kept;
  recent_ = nullptr;
  for (std::size_t i = 0; i < old_size; ++i) {
    Bucket* bucket = old[i];
    if (bucket == nullptr) continue;
    if (bucket->empty())
      delete bucket;
    else
      place(bucket);
  }
  return true;
}

void Matching::place(Bucket* bucket) {
  std::size_t mask = table_size_ - 1;
  // NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): envelopes are initialised; the analyzer loses the
  // union
  std::size_t i = hash(bucket->context, bucket->source) & mask;
  while (table_[i] != nullptr) i = (i + 1) & mask;
  table_[i] = bucket;
}

} // namespace near::p2p
