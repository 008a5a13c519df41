// The short ways of small messages, inline in the calls that use them.
//
// A message of up to inline_bytes to a peer whose lane is open needs no more than a slot of that lane.
// Whether it may take one depends on much else: a credit, no earlier message that waits for a slot or for a
// descriptor. All of it is folded into one number, LaneWriter::left(): allow_fast_sends() looks at everything once
// and lowers it to what may go by itself from there, with credits that are paid in advance. While it is above
// 0 nobody has to ask again. Whoever sends on the slow path stops fast sends first, which takes what is left of
// those credits back.
//
// Receiving: while nothing is posted and nothing waits, the oldest message of a peer's lane is the next
// receive's from that peer, if it matches and came whole; nothing need be noted about either.
//
// Whatever these functions cannot see to be right they decline, and the slow path takes it up.
#pragma once

#include "copy/small.h"
#include "object/communicator.h"
#include "queue/doorbell.h"
#include "transport/wire.h"

namespace near::transport {

struct DoorbellSystem {
  static void wait(std::uint32_t* word, std::uint32_t expected, std::uint64_t timeout_ns);
  static void wake(std::uint32_t* word);
  static void barrier_all();
};
using DoorbellCalls = queue::DoorbellProtocol<base::Hardware, DoorbellSystem>;

/// What sending to one peer needs. The first line holds all that a small message touches. Invariant: credits
/// are paid for lane.left() messages that are not sent yet.
struct alignas(64) SendState {
  queue::LaneWriter<> lane;        ///< left() is 0 unless small messages may go by themselves
  std::uint32_t next_sequence = 0; ///< of our next message to it
  segment::Doorbell* doorbell = nullptr;
  segment::Traffic* traffic = nullptr; ///< how much has gone to it inline
  queue::CreditAccount<> credit;       ///< for eager messages under way to it
  Peer* peer = nullptr;                ///< nullptr: not mapped yet
};

static_assert(offsetof(SendState, credit) == 64, "a small message touches one line of it");

/// What receiving from one peer needs.
struct ReceiveState {
  queue::LaneReader<>* lane = nullptr;        ///< ours from it, while it is open
  queue::CreditCounter<>* released = nullptr; ///< in our region: how many of its messages we released
  std::uint32_t expected_sequence = 0;        ///< of its next message to us
  bool whole = true;                          ///< its last message was a whole one, no RTS
  Peer* peer = nullptr;                       ///< nullptr: not mapped yet
};

/// What the fast path needs of one peer. A communicator points to those of its processes; all peers that are
/// not mapped yet share one, with which nothing goes by the fast path.
struct PeerStates : object::Process {
  ReceiveState receive; // first: a receive then needs no address of its own for it
  SendState send;
};

/// Lets small messages to this peer go by themselves if they may now: then left() is not 0.
void allow_fast_sends(SendState& send_state);

/// By rank, as point-to-point calls name processes; perhaps those that stand for an unmapped peer.
[[gnu::always_inline]] inline PeerStates& states_of(const object::Communicator& communicator, int rank) {
  return static_cast<PeerStates&>(*communicator.processes[static_cast<std::size_t>(rank)]);
}

/// Lets the communicator point to the peer if it was mapped meanwhile, by its messages to us.
[[gnu::cold]] void find_peer(const object::Communicator& communicator, int rank);

/// Set when the transport starts.
struct FastPath {
  std::uint64_t eager_limit = 0;
  int polls = 32; ///< for a message that is probably on its way; a few when processors are shared
};
inline constinit FastPath fast_path;

/// Fills a slot of the lane. Only if left() > 0 and `bytes` is at most inline_bytes.
[[gnu::always_inline]] inline void send_small(SendState& send_state, std::uint64_t context,
                                              std::int32_t source, std::int32_t tag, const void* payload,
                                              std::uint64_t bytes) {
  auto claim = send_state.lane.claim_left();
  auto& header = *reinterpret_cast<MessageHeader*>(claim.body());
  header.envelope = {context, source, tag, bytes};
  header.sequence = send_state.next_sequence++;
  header.handler = static_cast<std::uint8_t>(Handler::p2p_eager);
  header.in_packet = 0;
  copy::small(header.payload, payload, bytes);
  claim.commit();
  auto& traffic = *send_state.traffic; // loaded once
  traffic.messages.bump_relaxed(1);
  traffic.bytes.bump_relaxed(bytes);
}
/// After that: true when more_to_do() must follow, since the receiver sleeps or no more fast sends are allowed.
[[gnu::always_inline]] inline bool has_more_to_do(const SendState& send_state) {
  constexpr bool fences = false; // no fast sends are allowed where senders must fence
  return DoorbellCalls::is_sleeping(send_state.doorbell->sleeping, fences) || send_state.lane.left() == 0;
}
void more_to_do(SendState& send_state);

/// The oldest message of the peer's lane, if it is a whole one that this receive matches and that fits into
/// `room` bytes; `tag` may be MPI_ANY_TAG. nullptr: nothing, or another message.
[[gnu::always_inline]] inline const MessageHeader*
arrived(const ReceiveState& receive_state, std::uint64_t context, std::int32_t tag, std::uint64_t room) {
  const std::byte* body = receive_state.lane->front();
  if (body == nullptr) return nullptr;
  const auto& header = *reinterpret_cast<const MessageHeader*>(body);
  bool mine = header.handler == static_cast<std::uint8_t>(Handler::p2p_eager) &&
              header.envelope.context == context && (header.envelope.tag == tag || tag == MPI_ANY_TAG) &&
              header.envelope.bytes <= room && header.sequence == receive_state.expected_sequence;
  return mine ? &header : nullptr;
}

/// The same, after some looks if nothing is there: the reply to a message that was just sent comes soon. Not
/// where rendezvous messages come: what a receive can do before its message is there would be done after it.
[[gnu::always_inline]] inline const MessageHeader*
arrives(const ReceiveState& receive_state, std::uint64_t context, std::int32_t tag, std::uint64_t room) {
  // The other peers and our own sends must not wait for ever: one poll in 64 is the slow path's.
  if (receive_state.lane == nullptr || !receive_state.whole || receive_state.expected_sequence % 64 == 0)
    return nullptr;
  for (int poll = fast_path.polls;; base::cpu_relax()) {
    if (const auto* message = arrived(receive_state, context, tag, room)) return message;
    if (--poll == 0 || receive_state.lane->front() != nullptr) return nullptr;
  }
}

/// Tells those who sleep until this process's queue or lanes have room.
void wake_slot_waiters();
/// Copies a payload that lies in a packet of the sender's, and gives the packet back.
void receive_from_packet(const ReceiveState& receive_state, const MessageHeader& message, void* buffer);

/// Takes the message that arrived() found.
[[gnu::always_inline]] inline void receive_whole(ReceiveState& receive_state, const MessageHeader& message,
                                                 void* buffer) {
  if (message.in_packet != 0)
    receive_from_packet(receive_state, message, buffer);
  else
    copy::small(buffer, message.payload, message.envelope.bytes);
  receive_state.expected_sequence++;
  receive_state.released->give_back();
  if (receive_state.lane->pop()) [[unlikely]]
    wake_slot_waiters();
}

} // namespace near::transport
