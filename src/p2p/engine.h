// The point-to-point engine's own view of requests and messages; for the files of p2p, and for the entry
// points of small messages (mpi/fast.h).
//
//   send:     try eager -> else RTS -> else (no descriptor left) deferred until one is free
//   receive:  look among the unexpected messages -> else posted
//   arrival:  look among the posted receives -> else unexpected
//
// Everything here runs under the engine lock when threads are allowed.
#pragma once

#include "p2p/matching.h"
#include "p2p/p2p.h"

#include <memory>

namespace near::p2p {

using transport::Envelope;
using transport::Peer;

struct EngineRequest;
class SendBuffer;

/// A transfer that knows its request.
struct OwnedTransfer : transport::Transfer {
  EngineRequest* owner = nullptr;
};

/// How far a message request has come.
enum class Stage : std::uint8_t {
  idle,
  deferred,   ///< a send without a descriptor yet
  rendezvous, ///< a send whose receiver has not finished
  posted,     ///< a receive without a message yet
  moving,     ///< a receive whose data is on its way, or a send that only waits for a slot
  done
};

struct Generalized {
  MPI_Grequest_query_function* query;
  MPI_Grequest_free_function* free_function;
  MPI_Grequest_cancel_function* cancel_function;
  void* extra_state;
};

/// Every request of p2p. Blocking calls keep theirs on the stack; the others live in the pool, which uses
/// them again: reset() says what a new one relies on. Whoever starts an operation sets all else. In order of
/// use: receives of small messages touch what comes before `peer`.
struct EngineRequest : Request, Posted {
  // What was asked for, with the base's context, rank (destination or source) and tag; persistent requests
  // start again from it.
  Buffer view;

  Stage stage = Stage::idle;
  bool shared = false;    ///< sent_request: nobody's, never destroyed
  bool scheduled = false; ///< on the list of active schedules
  bool owns_more = false; ///< than a communicator; or it is shared. See destroy()
  SendMode mode = SendMode::standard;
  Peer* peer = nullptr;
  Envelope envelope; ///< of the send; of a message that was too long for its receive
  OwnedTransfer transfer;
  std::size_t place = 0; ///< on the list of active schedules, if scheduled

  // What destroy() looks at, and empties, if owns_more.
  SendBuffer* buffer = nullptr; ///< holds the data of a buffered send, or own_memory(), at `block`
  std::size_t block = 0;
  std::unique_ptr<Schedule> schedule;
  std::unique_ptr<Generalized> generalized;

  void reset() {
    references.store_relaxed(1);
    persistent = active = complete = freed = false;
    stage = Stage::idle;
    shared = scheduled = owns_more = false;
  }

  /// Says whom the operation is with. `other` is its destination or source.
  void aim(int other, int its_tag, Communicator& its_communicator, Channel channel) {
    rank = other;
    tag = its_tag;
    communicator = &its_communicator;
    context = its_communicator.context | static_cast<std::uint64_t>(channel);
  }
};

/// An unexpected message. An eager one owns a credit, and a packet of the sender's or a copy.
struct Unexpected : UnexpectedEntry {
  static constexpr std::size_t inline_bytes = 112;
  Peer* from = nullptr;
  const std::byte* payload = nullptr; ///< of an eager message
  std::uint64_t packet = 0;           ///< nonzero: payload lies in it
  bool is_rts = false;
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
/// A request of the pool with references to communicator and datatype (either may be null); MPI_ERR_NO_MEM.
[[gnu::always_inline]] inline Result make_request(RequestKind what, Communicator* communicator,
                                                  const Buffer& view, EngineRequest*& made) {
  NEAR_TRY(datatype::check_copyable(view));
  made = requests().make();
  if (made == nullptr) [[unlikely]]
    return no_request();
  made->what = what;
  made->view = view;
  made->communicator = communicator;
  if (communicator != nullptr) object::keep(communicator);
  if (view.type != nullptr && !view.type->predefined) {
    object::keep(view.type);
    made->owns_more = true;
  }
  return {};
}
/// Makes sent_request, once.
void make_sent_request();
void destroy_with_more(EngineRequest& request);
/// Gives a request of the pool back, with everything that it holds.
inline void destroy(EngineRequest& request) {
  if (request.owns_more || request.communicator == nullptr) [[unlikely]] {
    destroy_with_more(request);
    return;
  }
  object::release(request.communicator);
  requests().destroy(&request);
}
/// The handle is stale from now on; complete() destroys the request.
void retire(EngineRequest& request);
/// The operation is finished, its completion is final. The request may be gone afterwards.
inline void complete(EngineRequest& request) {
  request.stage = Stage::done;
  request.complete = true;
  if (request.freed) [[unlikely]]
    destroy(request);
}
[[gnu::cold]] Result failure_of(const EngineRequest& request);
/// The Result of a complete operation: its error class, with a sentence.
inline Result outcome(const EngineRequest& request) {
  if (request.completion.error == MPI_SUCCESS) [[likely]]
    return {};
  return failure_of(request);
}

// Arrivals (arrival.cpp)

/// Receives the unexpected message into the request; the message is used up. False: its sender withdrew it.
bool consume(Unexpected& message, EngineRequest& receive);
/// Takes the message off the lists of waiting ones.
void take(Unexpected& message);
/// Gives memory, packet and credit back.
void discard(Unexpected& message);
/// The oldest unexpected message that matches and is not withdrawn; nullptr: none.
Unexpected* find_waiting(std::uint64_t context, int source, int tag);

// Sends (send.cpp)

/// Puts the request's message on its way. Blocking sends on the stack may use it too.
Result begin_send(EngineRequest& send);
/// The same for a request of the pool that nobody waits for: it destroys itself when the message has left.
Result begin_detached_send(EngineRequest& send, Peer& peer, const Envelope& envelope);
/// Moves deferred sends; true when one has left.
bool move_deferred();
bool has_deferred();
/// Takes a deferred send off; it never left.
void withdraw_deferred(EngineRequest& send);
/// Withdraws an RTS; false when its receiver has matched it.
bool withdraw_rts(EngineRequest& send);
/// True when no earlier send to this peer waits.
bool may_overtake_nothing(Peer& peer);

// Receives (receive.cpp)

/// Receives a message that waits, if there is one for this receive.
bool receive_unexpected(EngineRequest& receive);
/// begin_receive() when there is nothing to wait for, or no memory.
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
/// start_receive(), for the entry points that have it within themselves.
[[gnu::always_inline]] inline Result start_receive_inline(const Buffer& view, int source, int tag,
                                                          Communicator& communicator, Request*& made,
                                                          Channel channel) {
  EngineRequest* receive = nullptr;
  NEAR_TRY(make_request(RequestKind::receive, &communicator, view, receive));
  receive->aim(source, tag, communicator, channel);
  if (Result begun = begin_receive(*receive); !begun.ok()) [[unlikely]] {
    destroy(*receive);
    return begun;
  }
  made = receive;
  return {};
}
/// Takes a posted receive back; true when it had no message.
bool withdraw(EngineRequest& receive);

// Generalized requests (generalized.cpp)

/// Asks for the status, as every completion call must, also with MPI_STATUS_IGNORE. MPI_ERROR stays.
Result query_generalized(const Generalized& generalized, MPI_Status* status);
Result free_generalized(const Generalized& generalized);
Result cancel_generalized(const Generalized& generalized, bool is_complete);

// Schedules (schedule.cpp)

/// The number of active schedules and of peers with deferred sends, plus one if polls yield. While it is 0, a
/// poll is the transport's progress and nothing else.
inline std::size_t background = 0;

Result begin_schedule(EngineRequest& request);
void discard_schedule(EngineRequest& request);

// Buffered sends (buffered.cpp)

/// Copies the message into the attached buffer if it cannot leave at once, and sends it from there.
Result send_buffered(const Buffer& view, Peer& peer, const Envelope& envelope, Communicator& communicator);
/// Memory for the message of a request of the pool, which lives as long as the request; nullptr: none is
/// left.
std::byte* own_memory(EngineRequest& request, std::size_t bytes);
/// The buffered send in `block` has left.
void release_block(SendBuffer& buffer, std::size_t block);

} // namespace near::p2p
