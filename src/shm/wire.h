// The layout of this transport's messages in slots, and of its records in shared memory.
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

/// The body of a slot: the 120 bytes after its word. The word names the sender.
struct MessageHeader {
  Envelope envelope;
  std::uint32_t sequence; ///< counts this sender's messages to this receiver
  std::uint16_t handler;
  std::uint16_t in_packet; ///< 1: the payload is a PacketReference
  std::byte payload[inline_bytes];
};
static_assert(sizeof(MessageHeader) == queue::slot_body_bytes, "a slot is two cache lines");

/// The location of a payload that is too long for a slot: a packet of the sender's, or one of the receiver's that the
/// sender has kept (kept_packets.h).
struct PacketReference {
  std::uint32_t packet;
  std::uint32_t bytes;
  std::uint8_t generation;
  bool is_receivers;      ///< the packet is the receiver's own
  bool goes_home = false; ///< its receiver does not keep it as a packet (KeptPackets)
  /// It is the first of PacketPool::run packets side by side, which hold one fragment and have one generation. `goes_home` is set,
  /// too, but its receiver may keep it as a run (KeptRuns).
  bool is_run = false;
};

/// A part of a packet train (packet_train.cpp): some packets in the order of their bytes.
struct TrainPart {
  static constexpr std::size_t most_packets = 8;
  struct Packet {
    std::uint32_t packet;
    std::uint8_t generation;
    bool is_receivers; ///< the packet is the receiver's own
  };
  std::uint32_t bytes;        ///< of the part
  std::uint32_t packet_bytes; ///< of each packet, except the last one of the train
  std::uint16_t taken; ///< the receiver's trains that had come completely when this one began (modulo 2^16)
  bool waited;         ///< the sender had polled in vain for the receiver's last train
  std::uint8_t count;  ///< packets in use
  Packet packets[most_packets];
};
static_assert(sizeof(TrainPart) <= inline_bytes);
static_assert(offsetof(MessageHeader, payload) + offsetof(TrainPart, packets) + sizeof(TrainPart::Packet) <=
                  base::cache_line - sizeof(std::uint64_t),
              "a part with one packet needs only the first line of its slot");

/// The RTS of this transport, which the layers above see as a transport::RtsHeader.
struct NodeRts {
  segment::Offset descriptor; ///< in the sender's region: its state word says matched or cancelled
  std::uint64_t address;      ///< of the data in the sender's memory; 0: it is not contiguous
  segment::Offset shared;     ///< of the data in the segment; 0: it is elsewhere
  std::uint64_t cookie;       ///< identifies the sender's transfer
  std::uint32_t generation;   ///< of the descriptor
  std::uint32_t flags;
  std::uint32_t prefix;             ///< number of the eager prefix that follows, or of the train; 0: none
  std::uint32_t may_come_early = 0; ///< at the place of RtsHeader::may_come_early
};
static_assert(sizeof(NodeRts) == sizeof(RtsHeader) &&
              offsetof(NodeRts, may_come_early) == offsetof(RtsHeader, may_come_early));

// In NodeRts::flags, set only by the receiver.
/// The descriptor is already matched.
inline constexpr std::uint32_t rts_claimed = 1;
/// There is no descriptor: the message is a train, which has come, or is coming.
inline constexpr std::uint32_t rts_train = 2;

/// Handlers of the transport's own messages, and the type of each payload.
enum class InternalHandler : std::uint8_t {
  fin = static_cast<std::uint8_t>(Handler::count_upper), ///< the receiver has pulled the data: Fin
  cts,             ///< clear to send: the receiver wants the message pipelined: Cts
  cooperate,       ///< the receiver pulls by CMA and lets the sender push from the back: CooperationRequest
  fragment,        ///< a pipelined fragment in a packet: context = receiver's cookie, bytes = position
  prefix_fragment, ///< a fragment sent before the CTS: tag = number of the eager prefix, bytes = position
  train,           ///< the first part of a train (packet_train.cpp): TrainPart; the envelope is the message's
  train_part,      ///< a further one: TrainPart
  last_call,       ///< asks a receiver whether it will receive anything more; answered once that is certain
  closed,          ///< the answer to last_call: no, and everything sent before the question has been seen
  lane_request,    ///< the sender has sent many messages and asks for a lane
  lane_granted,    ///< the receiver's answer: LaneGrant
  lane_switch,     ///< the sender's last message in the queue; the next one is in the lane: LaneGrant
  lane_recall,     ///< the receiver needs the lane for another pair: LaneGrant
  lane_return,     ///< the sender's last message in the lane; the next one is in the queue: LaneGrant
  count,
};

struct Fin {
  std::uint64_t cookie;
  std::uint64_t bytes;
  std::uint32_t path; ///< segment::Path, for the sender's counters
};

struct Cts {
  std::uint64_t sender_cookie, receiver_cookie;
  std::uint64_t bytes;      ///< number of bytes that the receiver takes
  std::uint64_t unexpected; ///< 1: the message arrived before its receive was posted
};

struct CooperationRequest {
  std::uint64_t sender_cookie;
  std::uint64_t address; ///< of the receiver's buffer, in its memory
  std::uint64_t bytes;
  segment::Offset descriptor; ///< of the RTS
  std::uint32_t generation;
};

struct LaneGrant {
  std::uint32_t lane;     ///< index; most_lanes: none is free
  std::uint64_t position; ///< of the reader in the lane
};

/// Lies in the sender's region, followed by space for a short message.
using RtsDescriptor = queue::RtsDescriptor<>;
/// The sizes of descriptors in bytes, including that space.
inline constexpr std::array<std::size_t, 3> rts_sizes = {128, 512, 4096};
constexpr std::size_t rts_capacity(std::size_t size) { return rts_sizes[size] - sizeof(RtsDescriptor); }

} // namespace near::shm
