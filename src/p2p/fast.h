// The fast path of small messages, inline in the calls that use it.
//
// A message of up to shm::inline_bytes to a peer whose lane is open needs only a slot of that lane. It may take
// one if there is a credit and no earlier message waits for a slot or a descriptor. LaneWriter::left() folds
// these conditions into one number: shm::allow_fast_sends() checks everything once, sets left() to the number
// of messages that may follow, and pays their credits in advance. While left() is above 0, a send needs no
// further check. Any other send to the peer first calls stop_fast_sends(), which takes back the unused credits.
//
// Receiving: if no receive is posted and there is no unexpected message, the oldest message in a peer's lane
// is the next one that a receive from that peer can match. If it matches and has arrived completely, it is
// copied out of the slot, and nothing has to be recorded about it or about the receive.
//
// If a function here cannot establish that the fast path applies, it declines, and the caller takes the slow
// path.
#pragma once

#include "copy/small.h"
#include "object/communicator.h"
#include "p2p/engine.h"
#include "shm/shm.h"
#include "transport/doorbell.h"

namespace near::p2p {

using transport::ReceiveState;
using transport::SendState;
// The bindings see a transport only through this file.
using shm::inline_bytes;
using shm::more_to_do;

/// Whether a poll of this process would do nothing.
[[gnu::always_inline]] inline bool is_quiet() { return background == 0 && shm::has_nothing_to_move(); }

/// Returns the peer that point-to-point calls name by `rank`, or transport's `unmapped` if it is not mapped.
[[gnu::always_inline]] inline transport::Peer& states_of(const object::Communicator& communicator, int rank) {
  return static_cast<transport::Peer&>(*communicator.processes[static_cast<std::size_t>(rank)]);
}

/// Sends a message by filling a slot of the lane: fill(payload) writes `bytes` bytes. Call this only if left() > 0 and
/// `bytes` is at most shm::inline_bytes.
template <class Fill>
[[gnu::always_inline]] inline void send_small_by(SendState& send_state, std::uint64_t context,
                                                 std::int32_t source, std::int32_t tag, std::uint64_t bytes,
                                                 Fill fill) {
  auto claim = send_state.lane.claim_left();
  auto& header = *reinterpret_cast<shm::MessageHeader*>(claim.body());
  header.envelope = {context, source, tag, bytes};
  header.sequence = send_state.next_sequence++;
  header.handler = static_cast<std::uint8_t>(transport::Handler::p2p_eager);
  header.in_packet = 0;
  fill(header.payload);
  claim.commit();
  auto& traffic = *send_state.traffic; // loaded once
  traffic.messages.bump_relaxed(1);
  traffic.bytes.bump_relaxed(bytes);
}
[[gnu::always_inline]] inline void send_small(SendState& send_state, std::uint64_t context,
                                              std::int32_t source, std::int32_t tag, const void* payload,
                                              std::uint64_t bytes) {
  send_small_by(send_state, context, source, tag, bytes,
                [=](std::byte* to) __attribute__((always_inline)) { copy::small(to, payload, bytes); });
}
/// To be called after send_small(). Returns true if the caller must then call shm::more_to_do(), because the
/// receiver is asleep or left() is 0.
[[gnu::always_inline]] inline bool has_more_to_do(const SendState& send_state) {
  constexpr bool fences = false; // no fast sends are allowed where senders must fence
  return transport::DoorbellCalls::is_sleeping(send_state.doorbell->sleeping, fences) ||
         send_state.lane.left() == 0;
}
/// Returns the oldest message in the peer's lane if it is eager, matches this receive and has at most `capacity`
/// bytes. `tag` may be MPI_ANY_TAG. Returns nullptr if there is no message, or a different one.
[[gnu::always_inline]] inline const shm::MessageHeader*
arrived(const ReceiveState& receive_state, std::uint64_t context, std::int32_t tag, std::uint64_t capacity) {
  const std::byte* body = receive_state.lane->front();
  if (body == nullptr) return nullptr;
  const auto& header = *reinterpret_cast<const shm::MessageHeader*>(body);
  bool mine = header.handler == static_cast<std::uint8_t>(transport::Handler::p2p_eager) &&
              header.envelope.context == context && (header.envelope.tag == tag || tag == MPI_ANY_TAG) &&
              header.envelope.bytes <= capacity && header.sequence == receive_state.expected_sequence;
  return mine ? &header : nullptr;
}

/// Like arrived(), but polls for a while if the lane is empty, because the reply to a message just sent
/// comes soon. Does not poll if the peer's last message was an RTS, because a posted receive lets a
/// rendezvous start early.
[[gnu::always_inline]] inline const shm::MessageHeader*
arrives(const ReceiveState& receive_state, std::uint64_t context, std::int32_t tag, std::uint64_t capacity) {
  // The other peers and our own sends must make progress too, so every 64th receive takes the slow path.
  if (receive_state.lane == nullptr || !receive_state.whole || receive_state.expected_sequence % 64 == 0)
    return nullptr;
  for (int poll = transport::fast_path.polls;; base::cpu_relax()) {
    if (const auto* message = arrived(receive_state, context, tag, capacity)) return message;
    if (--poll == 0 || receive_state.lane->front() != nullptr) return nullptr;
  }
}

/// Frees the slot of a message that was copied out of it.
[[gnu::always_inline]] inline void release_slot(ReceiveState& receive_state) {
  receive_state.expected_sequence++;
  receive_state.released->give_back();
  if (receive_state.lane->pop()) [[unlikely]]
    shm::wake_slot_waiters();
}
/// Receives the message that arrived() found: copies it to `buffer` and frees its slot.
[[gnu::always_inline]] inline void receive_whole(ReceiveState& receive_state,
                                                 const shm::MessageHeader& message, void* buffer) {
  if (message.in_packet != 0)
    shm::receive_from_packet(receive_state, message, buffer);
  else
    copy::small(buffer, message.payload, message.envelope.bytes);
  release_slot(receive_state);
}
/// Receives the message that arrived() found into a buffer whose elements have gaps, and frees its slot.
inline void receive_with_gaps(ReceiveState& receive_state, const shm::MessageHeader& message,
                              const datatype::Buffer& buffer) {
  if (message.in_packet != 0)
    shm::receive_from_packet(receive_state, message, buffer);
  else
    datatype::unpack_first(buffer.address, buffer.count, *buffer.type, message.payload,
                           static_cast<MPI_Count>(message.envelope.bytes));
  release_slot(receive_state);
}
/// Receives the message that arrived() found into a buffer of any datatype, and frees its slot.
inline void receive_whole(ReceiveState& receive_state, const shm::MessageHeader& message,
                          const datatype::Buffer& buffer) {
  if (buffer.type->contiguous)
    receive_whole(receive_state, message, buffer.contiguous_start());
  else
    receive_with_gaps(receive_state, message, buffer);
}

} // namespace near::p2p
