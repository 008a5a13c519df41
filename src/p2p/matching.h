// Matching: which receive gets which message. Pure bookkeeping; nothing here moves data or waits.
// doc/matching.md has the picture and the ordering argument. Source: MPI 5.0, section 3.5.
//
// Invariants:
//   no posted receive matches a waiting message
//   each bucket's list of posted receives ascends in `order`
//   each list of waiting messages is in order of arrival
#pragma once

#include "object/object.h"
#include "transport/transport.h"

#include <cstddef>
#include <memory>

namespace near::p2p {

struct Bucket;

/// A receive that waits for its message; base of the engine's receive requests.
struct Posted {
  Posted* previous = nullptr;
  Posted* next = nullptr;
  Bucket* bucket = nullptr; ///< where it is linked; nullptr: not posted
  std::uint64_t order = 0;  ///< rank in posting order among all receives
  std::uint64_t context = 0;
  std::int32_t source = 0;     ///< may be MPI_ANY_SOURCE
  std::int32_t wanted_tag = 0; ///< may be MPI_ANY_TAG
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
  Bucket* lookup(std::uint64_t context, std::int32_t source) const;
  Bucket* lookup_or_make(std::uint64_t context, std::int32_t source);
  bool make_room();
  void place(Bucket* bucket);
  void link_in_order(Bucket& bucket, Posted& receive);

  std::unique_ptr<Bucket*[]> table_; ///< open addressing; nullptr: free
  std::size_t table_size_ = 0;       ///< a power of two
  std::size_t bucket_count_ = 0;
  std::size_t waiting_ = 0;
  std::size_t entries_ = 0;       ///< waiting messages and posted receives
  std::size_t posted_to_any_ = 0; ///< receives from MPI_ANY_SOURCE: 0 spares arrivals the second look
  std::uint64_t next_order_ = 0;
  mutable Bucket* recent_ = nullptr;
};

/// What is posted to, or waits from, one source of one context. With source MPI_ANY_SOURCE: the wildcard
/// receives of the context, and all of its waiting messages.
struct Bucket {
  std::uint64_t context;
  std::int32_t source;
  Posted* first_posted = nullptr;
  Posted* last_posted = nullptr;
  Waiting* first_waiting = nullptr;
  Waiting* last_waiting = nullptr;
  bool empty() const { return first_posted == nullptr && first_waiting == nullptr; }
};

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
