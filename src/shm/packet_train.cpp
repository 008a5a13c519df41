// Packet trains: messages that are too long for one packet, but short enough to leave at once in several.
//
//   sender                                               receiver
//   takes packets for all parts
//   fills and sends part 0  --- train: the whole size --->  matched like an RTS, but nothing is answered
//   fills and sends part 1  --- train_part ------------->  copied into the receive, or kept with the earlier parts
//   ...
//
// So the receiver copies one part while the sender fills the next, as with fragments of a pipelined message, and nobody
// waits for an answer: for the sender it is an eager message, though it takes no credit. An unexpected train keeps its
// packets, like an unexpected eager message; a sender that has no packet left announces its messages by an RTS.
//
// While messages go one way, trains are short (longest_in_stream): a sender that gets far ahead of its receiver takes space in
// the caches from it, where the answer to an RTS would hold it back.
//
// A train leaves only if the pair's lane has slots for all of it, and nothing else is sent meanwhile. So its parts follow
// each other, and at most one train is arriving from each peer.
#include "shm/packets.h"
#include "shm/provider.h"

#include "base/checked.h"
#include "base/kill_point.h"
#include "copy/raw.h"
#include "object/object.h"

#include <algorithm>
#include <array>
#include <utility>

namespace near::shm {

namespace {

/// The length in bytes of a part: all have the same, except the last one.
std::uint64_t part_bytes_of(std::uint64_t bytes) {
  const std::uint64_t most = engine().packets.packet_bytes(), parts = (bytes + most - 1) / most;
  return base::round_up((bytes + parts - 1) / parts, base::cache_line);
}

constinit object::Immortal<Stages> stage_storage;
Stages& stages() { return stage_storage.value; }

/// Copies the next part into the receive buffer, or as much of it as there is room for; or to `staged`, from which the last part
/// brings everything into the buffer. Returns whether that is the end.
bool take_part(Transfer& transfer, std::byte* staged, const std::byte* from, std::uint64_t bytes) {
  bytes = std::min(bytes, transfer.bytes - transfer.position);
  if (staged != nullptr)
    copy::raw(staged + transfer.position, from, bytes);
  else
    datatype::unpack_arrived(transfer.buffer, static_cast<MPI_Count>(transfer.position), from,
                             static_cast<MPI_Count>(bytes));
  transfer.position += bytes;
  NEAR_KILL_POINT("train-part-copied");
  if (transfer.position != transfer.bytes) return false;
  if (staged != nullptr) datatype::unpack(transfer.buffer, 0, staged, static_cast<MPI_Count>(transfer.bytes));
  stages().give_back(staged);
  return true;
}

/// Returns the message packed into a stage, if that takes less time than packing it part by part; else the message itself.
Buffer packed_if_better(const Buffer& buffer, std::uint64_t bytes) {
  if (!datatype::loses_by_parts(buffer)) return buffer;
  std::byte* const packed = stages().take(bytes);
  if (packed == nullptr) return buffer;
  datatype::pack(buffer, 0, packed, static_cast<MPI_Count>(bytes));
  return Buffer{packed, static_cast<MPI_Count>(bytes), datatype::find_datatype(MPI_BYTE)};
}

void finish(Transfer& transfer) {
  transfer.busy = false;
  transfer.done(transfer, MPI_SUCCESS);
}

bool may_leave(const Peer& peer, const Envelope& envelope, const Buffer& buffer) {
  if (envelope.bytes > longest_in_stream && !peer.kept.are_answered()) return false;
  // Pending messages go first, and one of them may end the use of the lane.
  if (!peer.lane_open || !peer.pending.empty() || peer.row == engine().row || !may_be_pipelined())
    return false;
  // The receiver loads what is in shared memory directly.
  return !buffer.is_contiguous() || !memory::space().segment.contains(buffer.contiguous_start());
}

/// Whether the peer has sent something that we have not taken: then it hardly waits for what we send.
bool is_sending(const Peer& peer) { return peer.lane_in != nullptr && peer.lane_in->reader.has_message(); }

KeptTrain::Part part_of(Arrival& arrival) {
  KeptTrain::Part part{arrival.payload, arrival.payload_bytes, arrival.packet};
  transport::keep_packet(arrival);
  return part;
}

} // namespace

Eager send_train(Peer& peer, const Envelope& envelope, const Buffer& buffer) {
  const std::uint64_t part_bytes = part_bytes_of(envelope.bytes);
  const auto parts = static_cast<std::uint32_t>((envelope.bytes + part_bytes - 1) / part_bytes);
  if (!may_leave(peer, envelope, buffer) || !peer.send.lane.has_free(parts)) return Eager::refused;
  const bool is_waited_for = peer.sequence_at_send != peer.receive.expected_sequence;
  std::array<OutgoingPacket, most_train_parts> packets;
  if (!take_packets(peer, part_bytes, std::span(packets).first(parts))) return Eager::refused;
  NEAR_KILL_POINT("train-packets-taken");
  const Buffer message = packed_if_better(buffer, envelope.bytes);
  for (std::uint32_t i = 0; i < parts; ++i) {
    OutgoingPacket& packet = packets[i];
    const std::uint64_t position = i * part_bytes, bytes = std::min(part_bytes, envelope.bytes - position);
    packet.reference.bytes = static_cast<std::uint32_t>(bytes);
    auto claim = claim_slot(peer);
    MessageHeader& header = header_of(claim);
    header.envelope = envelope;
    header.handler = static_cast<std::uint8_t>(i == 0 ? InternalHandler::train : InternalHandler::train_part);
    header.in_packet = 1;
    *reinterpret_cast<PacketReference*>(header.payload) = packet.reference;
    pack_into(peer, peer.stores, packet, message, position, bytes);
    NEAR_KILL_POINT("train-part-filled");
    send_claimed(peer, std::move(claim));
    NEAR_KILL_POINT("train-part-sent");
    // The next copy would keep the stores that show this part waiting: 0.1 us with a cache in common. A receiver of a stream, or one
    // that is sending itself, does not wait for them.
    if (is_waited_for && i + 1 < parts && !is_sending(peer)) base::drain_stores();
  }
  stages().give_back(static_cast<const std::byte*>(message.address));
  count_sent(peer, segment::Path::packet, envelope.bytes);
  return Eager::left;
}

void handle_train(Arrival& arrival) {
  Peer& from = sender_of(arrival);
  TrainIn& train = from.train_in;
  train = {.number = train.number + 1, .head = &arrival};
  from.kept.message_came();
  NEAR_KILL_POINT("train-arrived");
  NodeRts rts{};
  rts.flags = rts_train;
  rts.prefix = train.number;
  Arrival announced{&from, arrival.envelope, reinterpret_cast<const std::byte*>(&rts), sizeof rts, 0};
  handler_of(Handler::p2p_rts)(announced);
  train.head = nullptr;
  if (!train.matched)
    from.kept_trains.push_back({.number = train.number, .parts = {part_of(arrival)}, .count = 1});
}

void handle_train_part(Arrival& arrival) {
  Peer& from = sender_of(arrival);
  TrainIn& train = from.train_in;
  if (train.bound != nullptr) {
    if (take_part(*train.bound, train.staged, arrival.payload, arrival.payload_bytes))
      finish(*std::exchange(train.bound, nullptr));
  } else if (!train.matched) {
    KeptTrain& kept = from.kept_trains.back();
    kept.parts[kept.count++] = part_of(arrival);
    NEAR_KILL_POINT("train-part-kept");
  }
}

void accept_train(Peer& peer, std::uint32_t number, Transfer& transfer) {
  TrainIn& train = peer.train_in;
  transfer.position = 0;
  transfer.busy = true;
  const bool is_last = number == train.number;
  const bool at_once = datatype::loses_by_parts(transfer.buffer) &&
                       transfer.bytes == static_cast<std::uint64_t>(transfer.buffer.bytes());
  std::byte* const staged = at_once ? stages().take(transfer.bytes) : nullptr;
  bool complete;
  if (is_last && train.head != nullptr) {
    complete = take_part(transfer, staged, train.head->payload, train.head->payload_bytes);
  } else {
    auto kept = std::find_if(peer.kept_trains.begin(), peer.kept_trains.end(),
                             [=](const KeptTrain& each) { return each.number == number; });
    complete = transfer.bytes == 0;
    for (std::size_t i = 0; i < kept->count; ++i) {
      const KeptTrain::Part& part = kept->parts[i];
      if (!complete) complete = take_part(transfer, staged, part.payload, part.bytes);
      give_back_packet(peer, part.packet);
    }
    peer.kept_trains.erase(kept);
  }
  if (is_last) {
    train.matched = true;
    train.bound = complete ? nullptr : &transfer;
    train.staged = staged;
  }
  if (complete) finish(transfer);
}

} // namespace near::shm
