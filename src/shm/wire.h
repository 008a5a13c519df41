// What travels in a slot of the receive queue, and the shared records of this transport.
#pragma once

#include "queue/credit.h"
#include "queue/lane.h"
#include "queue/rts.h"
#include "queue/slot_queue.h"
#include "transport/transport.h"

#include <array>

namespace near::shm {

using transport::Arrival;
using transport::Buffer;
using transport::Eager;
using transport::Envelope;
using transport::Handler;
using transport::HandlerFunction;
using transport::ReceiveState;
using transport::Result;
using transport::RtsHeader;
using transport::SendState;
using transport::Transfer;

inline constexpr std::size_t inline_bytes = 88;

/// The body of a slot: 120 bytes behind its word. Who sent it stands in the word.
struct MessageHeader {
  Envelope envelope;
  std::uint32_t sequence; ///< counts this sender's messages to this receiver
  std::uint16_t handler;
  std::uint16_t in_packet; ///< 1: the payload is a PacketReference
  std::byte payload[inline_bytes];
};
static_assert(sizeof(MessageHeader) == queue::slot_body_bytes, "a slot is two cache lines");

/// Where a payload lies when it is too long for the slot: in a packet of the sender's.
struct PacketReference {
  std::uint32_t packet;
  std::uint32_t bytes;
  std::uint8_t generation;
};

/// What an RTS of this transport says of its message: the form of transport::RtsHeader here.
struct NodeRts {
  segment::Offset descriptor; ///< in the sender's region: its state word decides matched or cancelled
  std::uint64_t address;      ///< of the data in the sender's memory; 0: the data is not contiguous
  segment::Offset shared;     ///< of the data in the segment; 0: it lies elsewhere
  std::uint64_t cookie;       ///< names the sender's transfer
  std::uint32_t generation;   ///< of the descriptor's use
  std::uint32_t flags;
  std::uint32_t prefix; ///< number of the eager prefix that follows; 0: none
  std::uint32_t unused = 0;
};
static_assert(sizeof(NodeRts) == sizeof(RtsHeader));

/// Handlers of the transport itself.
enum class InternalHandler : std::uint8_t {
  fin = static_cast<std::uint8_t>(Handler::count_upper), ///< the receiver has pulled the data: Fin
  cts,       ///< clear to send: the receiver wants it pipelined: Cts
  cooperate, ///< receiver pulls it by CMA and lets the sender push from the back: CooperationRequest
  fragment,  ///< a fragment of that, in a packet: context = receiver's cookie, bytes = position
  prefix_fragment, ///< one sent before the receiver has answered: tag = number of the eager prefix, bytes = position
  last_call,    ///< will you receive anything more? Answered once that is sure
  closed,       ///< the answer: no; it has seen everything that was sent before the question
  lane_request, ///< sender talks a lot
  lane_granted, ///< receiver has a lane for it: LaneGrant
  lane_switch,  ///< the sender's last queue entry: LaneGrant; the next message is in the lane
  lane_recall,  ///< receiver needs the lane for another pair
  lane_return,  ///< the lane's last entry; the next message is in the queue
  count,
};

struct Fin {
  std::uint64_t cookie;
  std::uint64_t bytes;
  std::uint32_t path; ///< segment::Path, for the sender's counters
};

struct Cts {
  std::uint64_t sender_cookie, receiver_cookie;
  std::uint64_t bytes;      ///< how many the receiver has room for
  std::uint64_t unexpected; ///< 1: the receive came after the message
};

struct CooperationRequest {
  std::uint64_t sender_cookie;
  std::uint64_t address; ///< of the receiver's buffer, in its memory
  std::uint64_t bytes;
  segment::Offset descriptor; ///< of the RTS
  std::uint32_t generation;
};

struct LaneGrant {
  std::uint32_t lane;
  std::uint64_t position; ///< where the reader stands
};

/// In the sender's region, with room for a short message behind it.
using RtsDescriptor = queue::RtsDescriptor<>;
/// Bytes of the descriptors of each size, with that room.
inline constexpr std::array<std::size_t, 2> rts_sizes = {128, 512};
constexpr std::size_t rts_room(std::size_t size) { return rts_sizes[size] - sizeof(RtsDescriptor); }

} // namespace near::shm
