// Matching: which receive gets which message. Pure bookkeeping; nothing here moves data or waits.
// doc/matching.md has the picture and the ordering argument. Source: MPI 5.0, section 3.5.
//
// Invariants:
//   no posted receive matches a waiting message
//   each bucket's ring of posted receives ascends in `order`
//   each list of waiting messages is in order of arrival
#pragma once

#include "object/object.h"
#include "transport/transport.h"

#include <cstddef>
#include <memory>

namespace near::p2p {

struct Bucket;

/// In a ring of posted receives, whose first and last element is the bucket's own.
struct PostedLink {
  PostedLink* previous = nullptr;
  PostedLink* next = nullptr;
};

/// A receive that waits for its message; base of the engine's requests.
struct Posted : PostedLink {
  std::uint64_t order = 0; ///< rank in posting order among all receives
  std::uint64_t context = 0;
  std::int32_t rank = MPI_PROC_NULL; ///< the source; may be MPI_ANY_SOURCE
  std::int32_t tag = 0;              ///< may be MPI_ANY_TAG
};

/// A message that arrived before its receive: on the list of its source and on the list of its context.
struct Waiting {
  struct Link {
    Waiting* previous = nullptr;
    Waiting* next = nullptr;
  };
  Link by_source, by_context;
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
  /// Puts a receive that match() gave back to its old place: its message was withdrawn by the sender.
  [[nodiscard]] bool repost(Posted& receive);
  void remove(Posted& receive);

  /// The oldest waiting message for a receive of (context, source, tag), wildcards allowed; it stays.
  Waiting* find(std::uint64_t context, std::int32_t source, std::int32_t tag);
  /// Adds a message that match() found no receive for. False: no memory.
  [[nodiscard]] bool add(Waiting& message);
  void remove(Waiting& message);

  /// Calls visit(Waiting&) for each waiting message; visit may remove the one it is given.
  template <class F>
  void each_waiting(F visit);

  std::size_t waiting() const { return waiting_; }
  /// No message waits and no receive is posted, so the next message is the next receive's.
  bool idle() const { return entries_ == 0; }
  std::size_t buckets() const { return bucket_count_; }

private:
  static bool matches(std::int32_t wanted, std::int32_t tag) {
    return wanted == tag || wanted == MPI_ANY_TAG;
  }
  static Posted* first_match(Bucket* bucket, std::int32_t tag);
  Bucket* lookup(std::uint64_t context, std::int32_t source) const;
  Bucket* lookup_or_make(std::uint64_t context, std::int32_t source);
  Bucket* search(std::uint64_t context, std::int32_t source) const;
  Bucket* make_bucket(std::uint64_t context, std::int32_t source);
  bool make_room();
  void place(Bucket* bucket);
  void link(PostedLink& behind, Posted& receive);
  Posted* earlier(Posted* receive, const transport::Envelope& envelope) const;

  std::unique_ptr<Bucket*[]> table_; ///< open addressing; nullptr: free
  std::size_t table_size_ = 0;       ///< a power of two
  std::size_t bucket_count_ = 0;
  std::size_t waiting_ = 0;
  std::size_t entries_ = 0;       ///< waiting messages and posted receives
  std::size_t posted_to_any_ = 0; ///< receives from MPI_ANY_SOURCE: 0 spares arrivals the second look
  std::uint64_t next_order_ = 0;
  mutable Bucket* recent_ = nullptr; ///< that was asked for last
};

/// What is posted to, or waits from, one source of one context. With source MPI_ANY_SOURCE: the wildcard
/// receives of the context, and all of its waiting messages.
struct Bucket {
  Bucket(std::uint64_t its_context, std::int32_t its_source) : context(its_context), source(its_source) {}
  std::uint64_t context;
  std::int32_t source;
  PostedLink posted{&posted, &posted}; ///< a ring: posted.next is the oldest receive
  Waiting* first_waiting = nullptr;
  Waiting* last_waiting = nullptr;
  bool empty() const { return posted.next == &posted && first_waiting == nullptr; }
};

inline Posted* Matching::first_match(Bucket* bucket, std::int32_t tag) {
  if (bucket == nullptr) return nullptr;
  for (PostedLink* each = bucket->posted.next; each != &bucket->posted; each = each->next)
    if (matches(static_cast<Posted*>(each)->tag, tag)) return static_cast<Posted*>(each);
  return nullptr;
}

inline Bucket* Matching::lookup(std::uint64_t context, std::int32_t source) const {
  Bucket* recent = recent_;
  if (recent != nullptr && recent->context == context && recent->source == source) [[likely]]
    return recent;
  return search(context, source);
}

inline Bucket* Matching::lookup_or_make(std::uint64_t context, std::int32_t source) {
  Bucket* bucket = lookup(context, source);
  return bucket != nullptr ? bucket : make_bucket(context, source);
}

inline Posted* Matching::match(const transport::Envelope& envelope) {
  Posted* receive = first_match(lookup(envelope.context, envelope.source), envelope.tag);
  if (posted_to_any_ != 0) [[unlikely]]
    receive = earlier(receive, envelope);
  if (receive != nullptr) [[likely]]
    remove(*receive);
  return receive;
}

inline void Matching::remove(Posted& receive) {
  receive.previous->next = receive.next;
  receive.next->previous = receive.previous;
  --entries_;
  if (receive.rank == MPI_ANY_SOURCE) --posted_to_any_;
}

inline bool Matching::post(Posted& receive) {
  Bucket* bucket = lookup_or_make(receive.context, receive.rank);
  if (bucket == nullptr) [[unlikely]]
    return false;
  receive.order = next_order_++;
  link(*bucket->posted.previous, receive);
  return true;
}

inline void Matching::link(PostedLink& behind, Posted& receive) {
  receive.previous = &behind;
  receive.next = behind.next;
  receive.next->previous = &receive;
  behind.next = &receive;
  ++entries_;
  if (receive.rank == MPI_ANY_SOURCE) ++posted_to_any_;
}

/// The engine's own objects live until the process is gone: MPI may be called from static destructors.
extern constinit object::Immortal<Matching> matching_storage;
inline Matching& matching() { return matching_storage.value; }

template <class F>
void Matching::each_waiting(F visit) {
  for (std::size_t i = 0; i < table_size_; ++i) {
    Bucket* bucket = table_[i];
    if (bucket == nullptr || bucket->source != MPI_ANY_SOURCE) continue;
    for (Waiting* message = bucket->first_waiting; message != nullptr;) {
      Waiting* next = message->by_context.next;
      visit(*message);
      message = next;
    }
  }
}

} // namespace near::p2p
