// Requests and messages as the point-to-point engine sees them. Included by the files of p2p, and by the entry
// points of small messages and one-sided calls (mpi/fast.h, mpi/fast_one_sided.h).
//
//   send:     try eager; else send an RTS; if no descriptor is free, defer the send until one is
//   receive:  search the unexpected messages; else post the receive
//   arrival:  search the posted receives; else note the message as unexpected
//
// All of this runs under the engine lock if the program may use threads.
#pragma once

#include "p2p/matching.h"
#include "p2p/p2p.h"

#include <memory>

namespace near::p2p {

using transport::Envelope;
using transport::Peer;

struct EngineRequest;
class SendBuffer;

/// A transfer that refers to its request.
struct OwnedTransfer : transport::Transfer {
  EngineRequest* owner = nullptr;
};

/// The progress of a message request.
enum class Stage : std::uint8_t {
  idle,
  deferred,   ///< a send that does not have a descriptor yet
  rendezvous, ///< a send whose receiver has not finished
  posted,     ///< a receive that has not been matched yet
  moving,     ///< a receive whose data is on its way, or a send that waits only for a slot
  done
};

struct Generalized {
  MPI_Grequest_query_function* query;
  MPI_Grequest_free_function* free_function;
  MPI_Grequest_cancel_function* cancel_function;
  void* extra_state;
};

/// A request of p2p. Blocking calls keep theirs on the stack; all others are in the pool, which reuses them:
/// reset() sets the fields that must be valid in a new one, and starting an operation sets the rest. Fields
/// are in the order of use: receives of small messages touch only those before `peer`.
struct EngineRequest : Request, Posted {
  // What the program asked for, together with the base's context, rank (destination or source) and tag. A
  // persistent request is restarted from these.
  Buffer buffer;

  Stage stage = Stage::idle;
  bool shared = false;    ///< this is sent_request, which has no owner and is never destroyed
  bool scheduled = false; ///< on the list of active schedules
  bool owns_more = false; ///< owns more than a reference to a communicator, or is shared; see destroy()
  SendMode mode = SendMode::standard;
  Peer* peer = nullptr;
  Envelope envelope; ///< of the send; for a receive, set only if the message was too long
  OwnedTransfer transfer;
  std::size_t index = 0; ///< in the list of active schedules, if `scheduled`

  // What destroy() releases if `owns_more`.
  SendBuffer* store = nullptr; ///< holds the data of a buffered send, or of own_memory(), at `block`
  std::size_t block = 0;
  std::unique_ptr<Schedule> schedule;
  std::unique_ptr<Generalized> generalized;

  void reset() {
    references.store_relaxed(1);
    persistent = active = complete = freed = false;
    stage = Stage::idle;
    shared = scheduled = owns_more = false;
  }

  /// Sets the peer of the operation: `other` is its destination or source.
  void aim(int other, int its_tag, Communicator& its_communicator, Channel channel) {
    rank = other;
    tag = its_tag;
    communicator = &its_communicator;
    context = its_communicator.context | static_cast<std::uint64_t>(channel);
  }
};

struct Fetch; // early.h
/// Why an unexpected message waits to be taken early: which list it is in.
enum class WaitingAs : std::uint8_t { credited, announced_short, announced_long, none };
/// Links an unexpected message into the list of its WaitingAs.
struct EarlyLink : Link {};

/// An unexpected message. An eager one owns credits and either a packet of the sender's or a copy of the payload. One that was taken
/// early owns only its payload, in this process's memory.
struct Unexpected : UnexpectedEntry, EarlyLink {
  static constexpr std::size_t inline_bytes = 112;
  Peer* from = nullptr;
  const std::byte* payload = nullptr; ///< of an eager message
  std::uint64_t packet = 0;           ///< nonzero: the packet that holds the payload
  bool is_rts = false;
  bool has_credit = false;
  bool is_taken = false; ///< its memory is charged to this process (early.h)
  WaitingAs waiting_as = WaitingAs::none;
  int error = MPI_SUCCESS; ///< of its fetch
  Fetch* fetch = nullptr;  ///< of an announced message whose data is on its way here
  union {
    transport::RtsHeader rts;
    std::byte copy[inline_bytes];
    Unexpected* next_free;
  };
  Unexpected() : next_free(nullptr) {}
};

inline EngineRequest& engine(Request& request) { return static_cast<EngineRequest&>(request); }
inline std::uint64_t context_of(const Communicator& communicator, Channel channel) {
  return communicator.context | static_cast<std::uint64_t>(channel);
}

// Requests (request.cpp)

using RequestPool = object::Pool<EngineRequest, object::Kind::request>;
extern constinit object::Immortal<RequestPool> request_storage;
inline RequestPool& requests() { return request_storage.value; }

[[gnu::cold]] Result no_request();
/// Makes a request in the pool, with references to the communicator and datatype (either may be null). Fails
/// with MPI_ERR_NO_MEM.
[[gnu::always_inline]] inline Result make_request(RequestKind what, Communicator* communicator,
                                                  const Buffer& buffer, EngineRequest*& made) {
  NEAR_TRY(datatype::check_copyable(buffer));
  made = requests().make();
  if (made == nullptr) [[unlikely]]
    return no_request();
  made->what = what;
  made->buffer = buffer;
  made->communicator = communicator;
  if (communicator != nullptr) object::keep(communicator);
  if (buffer.type != nullptr && !buffer.type->predefined) {
    object::keep(buffer.type);
    made->owns_more = true;
  }
  return {};
}
/// Makes sent_request if it does not exist yet.
void make_sent_request();
void destroy_with_more(EngineRequest& request);
/// Returns a request to the pool and releases everything that it holds.
inline void destroy(EngineRequest& request) {
  if (request.owns_more || request.communicator == nullptr) [[unlikely]] {
    destroy_with_more(request);
    return;
  }
  object::release(request.communicator);
  requests().destroy(&request);
}
/// Invalidates the request's handle; complete() will destroy the request.
void retire(EngineRequest& request);
/// Marks the operation as finished; its completion is final. Destroys the request if it has been freed.
inline void complete(EngineRequest& request) {
  request.stage = Stage::done;
  request.complete = true;
  if (request.freed) [[unlikely]]
    destroy(request);
}
[[gnu::cold]] Result failure_of(const EngineRequest& request);
/// Returns the Result of a complete operation: its error class and message.
inline Result outcome(const EngineRequest& request) {
  if (request.completion.error == MPI_SUCCESS) [[likely]]
    return {};
  return failure_of(request);
}

// Arrivals (arrival.cpp)

/// Receives an unexpected message into the request and frees its record. If its data is still on its way here, both happen later.
/// Returns false if the sender has withdrawn the message.
bool consume(Unexpected& message, EngineRequest& receive);
/// Removes the message from the unexpected queue.
void take(Unexpected& message);
/// Frees the message's record, and returns its packet and credit.
void discard(Unexpected& message);
/// Returns the oldest unexpected message that matches and has not been withdrawn; nullptr if there is none.
Unexpected* find_unexpected(std::uint64_t context, int source, int tag);

// Sends (send.cpp)

/// Starts sending the request's message. The request may be on the stack of a blocking send.
Result begin_send(EngineRequest& send);
/// Like begin_send(), but for a request in the pool that has no owner: it is destroyed when its message has left.
Result begin_detached_send(EngineRequest& send, Peer& peer, const Envelope& envelope);
/// Tries to send deferred messages. Returns true if any left.
bool move_deferred();
bool has_deferred();
/// Removes a deferred send, no part of whose message has left.
void withdraw_deferred(EngineRequest& send);
/// Withdraws an RTS. Returns false if the receiver has matched it.
bool withdraw_rts(EngineRequest& send);
/// Whether a message to this peer may leave now: true if no earlier send to it is deferred.
bool may_overtake_nothing(Peer& peer);

// Receives (receive.cpp)

/// Receives an unexpected message if one matches this receive.
bool receive_unexpected(EngineRequest& receive);
/// The rare cases of begin_receive(): the source is MPI_PROC_NULL, or there is no memory to post the receive.
[[gnu::cold]] Result begin_from_nobody(EngineRequest& receive);
[[gnu::cold]] Result begin_without_memory(EngineRequest& receive);
[[gnu::always_inline]] inline Result begin_receive(EngineRequest& receive) {
  receive.active = true;
  receive.complete = false;
  if (receive.rank == MPI_PROC_NULL) [[unlikely]]
    return begin_from_nobody(receive);
  if (matching().unexpected() != 0 && receive_unexpected(receive)) return {};
  if (!matching().post(receive)) [[unlikely]]
    return begin_without_memory(receive);
  receive.stage = Stage::posted;
  return {};
}
/// Like start_receive(), but inline, for entry points.
[[gnu::always_inline]] inline Result start_receive_inline(const Buffer& buffer, int source, int tag,
                                                          Communicator& communicator, Request*& made,
                                                          Channel channel) {
  EngineRequest* receive = nullptr;
  NEAR_TRY(make_request(RequestKind::receive, &communicator, buffer, receive));
  receive->aim(source, tag, communicator, channel);
  if (Result begun = begin_receive(*receive); !begun.ok()) [[unlikely]] {
    destroy(*receive);
    return begun;
  }
  made = receive;
  return {};
}
/// Removes a posted receive. Returns false if it has already been matched.
bool withdraw(EngineRequest& receive);

// Failed peers (failure.cpp)

/// From now on, receives that name this peer end with MPI_ERR_PROC_ABORTED; see transport::fail().
void peer_failed(Peer& peer);
bool has_failed_peers();
/// Completes the posted receives that name a failed peer. Returns true if there were any.
bool fail_receives();
/// For tests: forgets which peers have failed.
void forget_failed_peers();

// Generalized requests (generalized.cpp)

/// Calls the query function, as every completion call must, even with MPI_STATUS_IGNORE. Leaves MPI_ERROR
/// unchanged.
Result query_generalized(const Generalized& generalized, MPI_Status* status);
Result free_generalized(const Generalized& generalized);
Result cancel_generalized(const Generalized& generalized, bool is_complete);

// Schedules (schedule.cpp)

/// The number of active schedules plus the number of peers with deferred sends, plus one each if polls yield, if peers have failed
/// and if messages may be taken early. While it is 0, a poll only runs the transport's progress.
inline std::size_t background = 0;

Result begin_schedule(EngineRequest& request);
void discard_schedule(EngineRequest& request);

// Buffered sends (buffered.cpp)

/// Sends the message at once if it can leave; otherwise copies it into the attached buffer and sends it from
/// there.
Result send_buffered(const Buffer& buffer, Peer& peer, const Envelope& envelope, Communicator& communicator);
/// Allocates memory for the message of a request in the pool. It lives as long as the request. Returns
/// nullptr if there is none.
std::byte* own_memory(EngineRequest& request, std::size_t bytes);
/// Frees `block` of the buffer, after the message in it has left.
void release_block(SendBuffer& buffer, std::size_t block);

} // namespace near::p2p
