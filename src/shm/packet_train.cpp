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
// If the receiver probably waits for the train (is_needed_early), each part is one packet, so that it can begin early. If it is
// sending itself, or is busy with earlier trains, a part is up to eight packets: each part costs a hand-over (doc/adr/0028).
//
// While messages go one way, trains are short (longest_in_stream): a sender that gets far ahead of its receiver takes space in
// the caches from it, where the answer to an RTS would hold it back. Where ranks share processors, that answer takes a turn of the
// other rank, so all trains have the same limit (longest_in_turns), and packets are added for several of them.
//
// A train leaves only if the pair's lane has slots for all of it, and nothing else is sent meanwhile. So its parts follow
// each other, and at most one train is arriving from each peer.
#include "shm/packets.h"
#include "shm/provider.h"

#include "base/checked.h"
#include "base/kill_point.h"
#include "copy/raw.h"
#include "object/object.h"
#include "os/clock.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

namespace near::shm {

namespace {

/// How many bytes each packet holds: all hold the same, except the last one.
std::uint64_t packet_bytes_of(std::uint64_t bytes) {
  const std::uint64_t most = engine().packets.packet_bytes(), packets = (bytes + most - 1) / most;
  return base::round_up((bytes + packets - 1) / packets, base::cache_line);
}

/// In bytes per nanosecond: a sender whose trains follow each other at this rate or faster does nothing but send.
constexpr std::uint64_t slowest_stream = 8;

constinit object::Immortal<Stages> stage_storage;
Stages& stages() { return stage_storage.value; }

/// Copies the next bytes into the receive buffer, up to its end. With `staged`, it collects them there instead, and unpacks all of them
/// once the last have come. Returns whether the receive is complete.
bool take_bytes(Transfer& transfer, std::byte* staged, const std::byte* from, std::uint64_t bytes) {
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

const std::byte* start_of(const Peer& from, const TrainPart::Packet& packet) {
  return packet_at(from, packet.packet, packet.is_receivers);
}

/// Like take_part(), for a part that lies in several packets: those that are side by side are copied at once.
[[gnu::noinline]] bool take_packets_of(const Peer& from, Transfer& transfer, std::byte* staged,
                                       const TrainPart& part) {
  std::uint64_t left = part.bytes;
  for (std::uint32_t i = 0; i < part.count;) {
    const std::byte* const first = start_of(from, part.packets[i]);
    std::uint64_t bytes = part.packet_bytes;
    for (++i; i < part.count && start_of(from, part.packets[i]) == first + bytes; ++i)
      bytes += part.packet_bytes;
    bytes = std::min(bytes, left);
    left -= bytes;
    if (take_bytes(transfer, staged, first, bytes)) return true;
  }
  return false;
}

/// Copies a part into the receive buffer, or to `staged` (take_bytes()). Returns whether the receive is complete.
bool take_part(const Peer& from, Transfer& transfer, std::byte* staged, const TrainPart& part) {
  if (part.count != 1) return take_packets_of(from, transfer, staged, part);
  return take_bytes(transfer, staged, start_of(from, part.packets[0]), part.bytes);
}

PacketReference reference_of(const TrainPart::Packet& packet) {
  return {packet.packet, 0, packet.generation, packet.is_receivers};
}

/// Call once a part has been read.
void done_with(Peer& from, const TrainPart& part) {
  std::uint32_t i = 0;
  do done_with_packet(from, reference_of(part.packets[i]));
  while (++i < part.count);
}

/// Adds the packets of a part to an unexpected train.
void keep(const Peer& from, KeptTrain& kept, const TrainPart& part) {
  std::uint64_t left = part.bytes;
  for (const TrainPart::Packet& packet : std::span(part.packets).first(part.count)) {
    const std::uint64_t bytes = std::min<std::uint64_t>(left, part.packet_bytes);
    left -= bytes;
    kept.packets[kept.count++] = {start_of(from, packet), bytes, packet_of(reference_of(packet))};
  }
}

void note_bytes(TrainIn& train, const TrainPart& part) {
  train.missing -= part.bytes;
  if (train.missing == 0) ++train.whole;
}

const TrainPart& part_in(const Arrival& arrival) {
  return *reinterpret_cast<const TrainPart*>(arrival.payload);
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

std::uint64_t longest_to(const Peer& peer) {
  if (engine().oversubscribed)
    return std::clamp(longest_of_all / engine().job_size, longest_in_stream, longest_in_turns);
  return peer.kept.are_answered() ? longest_train : longest_in_stream;
}

bool may_leave(const Peer& peer, const Envelope& envelope, const Buffer& buffer) {
  if (envelope.bytes > longest_to(peer)) return false;
  // Pending messages go first, and one of them may end the use of the lane.
  if (!peer.lane_open || !peer.pending.empty() || peer.row == engine().row || !may_be_pipelined())
    return false;
  // The receiver loads what is in shared memory directly.
  return !buffer.is_contiguous() || !memory::space().segment.contains(buffer.contiguous_start());
}

/// Whether the peer has sent something that we have not taken: then it hardly waits for what we send.
bool is_sending(const Peer& peer) { return peer.lane_in != nullptr && peer.lane_in->reader.has_message(); }

/// Whether the oldest message from the peer that we have not taken belongs to a train.
bool is_sending_train(Peer& peer) {
  const std::byte* const body = peer.lane_in != nullptr ? peer.lane_in->reader.front() : nullptr;
  if (body == nullptr) return false;
  const auto handler = static_cast<InternalHandler>(reinterpret_cast<const MessageHeader*>(body)->handler);
  return handler == InternalHandler::train || handler == InternalHandler::train_part;
}

/// Whether the receiver probably waits for this train of `packets` packets, so that it should get the first bytes as soon as possible.
/// `is_answer`: something has come from it since our last message in packets.
bool is_needed_early(Peer& peer, bool is_answer, std::uint64_t bytes, std::uint32_t packets) {
  TrainsOut& out = peer.trains_out;
  const TrainIn& in = peer.train_in;
  const std::uint32_t taken = in.number - std::exchange(out.taken, in.number);
  if (taken != 0 || is_answer || peer.kept.are_answered()) {
    out.began_ns = 0;
    if (out.number == 0 || packets <= 2) return true;
    if (taken > 1 || is_sending_train(peer)) return false;
    // Processes that take turns take one train for each that they send. What answers a short message is waited for, too.
    return taken == 1 ? !in.overlaps : is_answer;
  }
  // In a stream the receiver is still busy with the last train if the sender has hardly done anything else since.
  const std::uint64_t now = os::monotonic_ns(), began = std::exchange(out.began_ns, now),
                      before = std::exchange(out.bytes, bytes);
  return began == 0 || now - began > before / slowest_stream;
}

TrainPart::Packet name_of(const OutgoingPacket& packet) {
  return {packet.reference.packet, packet.reference.generation, packet.reference.is_receivers};
}

/// Whether one copy with one kind of stores may fill `first`, `bytes` bytes, and the next packet.
bool adjoins(const OutgoingPacket& first, std::uint64_t bytes, const OutgoingPacket& next) {
  return next.at == first.at + bytes && next.was_kept == first.was_kept && next.is_new() == first.is_new();
}

/// Names the packets of a part, and fills them with bytes of the message from `position` on, those that are side by side at once.
[[gnu::noinline]] void fill_several(Peer& peer, TrainPart& part, std::span<const OutgoingPacket> packets,
                                    const Buffer& message, std::uint64_t position) {
  for (std::size_t i = 1; i < packets.size(); ++i) part.packets[i] = name_of(packets[i]);
  std::uint64_t left = part.bytes;
  for (std::size_t begin = 0, end = 1; begin < packets.size(); begin = end++) {
    const OutgoingPacket& first = packets[begin];
    std::uint64_t bytes = part.packet_bytes;
    for (; end < packets.size() && adjoins(first, bytes, packets[end]); ++end) bytes += part.packet_bytes;
    bytes = std::min(bytes, left);
    const auto count = static_cast<std::uint32_t>(end - begin);
    pack_into(peer, peer.stores, first, message, position, bytes, count);
    position += bytes;
    left -= bytes;
  }
}

} // namespace

Eager send_train(Peer& peer, const Envelope& envelope, const Buffer& buffer) {
  const std::uint64_t packet_bytes = packet_bytes_of(envelope.bytes);
  const auto count = static_cast<std::uint32_t>((envelope.bytes + packet_bytes - 1) / packet_bytes);
  if (!may_leave(peer, envelope, buffer) || !peer.send.lane.has_free(count)) return Eager::refused;
  const bool is_answer = peer.sequence_at_send != peer.receive.expected_sequence;
  std::array<OutgoingPacket, most_train_packets> packets;
  if (!take_packets(peer, packet_bytes, std::span(packets).first(count))) return Eager::refused;
  NEAR_KILL_POINT("train-packets-taken");
  const Buffer message = packed_if_better(buffer, envelope.bytes);
  const std::uint32_t most_in_part =
      is_needed_early(peer, is_answer, envelope.bytes, count) ? 1 : TrainPart::most_packets;
  ++peer.trains_out.number;
  if (peer.lane_in != nullptr) peer.lane_in->polled_in_vain = false;
  std::uint64_t position = 0;
  for (std::uint32_t begin = 0; begin < count;) {
    const std::uint32_t end = std::min(begin + most_in_part, count);
    auto claim = claim_slot(peer);
    MessageHeader& header = header_of(claim);
    header.envelope = envelope;
    header.handler =
        static_cast<std::uint8_t>(begin == 0 ? InternalHandler::train : InternalHandler::train_part);
    header.in_packet = 0;
    const std::uint64_t bytes = std::min((end - begin) * packet_bytes, envelope.bytes - position);
    TrainPart& part = *reinterpret_cast<TrainPart*>(header.payload);
    part.bytes = static_cast<std::uint32_t>(bytes);
    part.packet_bytes = static_cast<std::uint32_t>(packet_bytes);
    part.taken = peer.train_in.whole;
    part.waited = peer.train_in.waited;
    part.count = static_cast<std::uint8_t>(end - begin);
    part.packets[0] = name_of(packets[begin]);
    if (end - begin == 1)
      pack_into(peer, peer.stores, packets[begin], message, position, bytes);
    else
      fill_several(peer, part, std::span(packets).subspan(begin, end - begin), message, position);
    position += bytes;
    begin = end;
    NEAR_KILL_POINT("train-part-filled");
    send_claimed(peer, std::move(claim));
    NEAR_KILL_POINT("train-part-sent");
    // The next copy would keep the stores that show this part waiting: 0.1 us with a cache in common. A receiver of a stream, or one
    // that is sending itself, does not wait for them.
    if (is_answer && begin < count && !is_sending(peer)) base::drain_stores();
  }
  stages().give_back(static_cast<const std::byte*>(message.address));
  count_sent(peer, segment::Path::packet, envelope.bytes);
  return Eager::left;
}

void handle_train(Arrival& arrival) {
  Peer& from = sender_of(arrival);
  TrainIn& train = from.train_in;
  const TrainPart& part = part_in(arrival);
  const bool waited = from.lane_in != nullptr && from.lane_in->polled_in_vain;
  train = {.number = train.number + 1,
           .whole = train.whole,
           .missing = arrival.envelope.bytes,
           .waited = waited,
           .overlaps = part.taken != from.trains_out.number || !waited || !part.waited,
           .head = &arrival};
  note_bytes(train, part);
  from.kept.message_came();
  NEAR_KILL_POINT("train-arrived");
  NodeRts rts{};
  rts.flags = rts_train;
  rts.prefix = train.number;
  Arrival announced{&from, arrival.envelope, reinterpret_cast<const std::byte*>(&rts), sizeof rts, 0};
  handler_of(Handler::p2p_rts)(announced);
  train.head = nullptr;
  if (train.matched) return done_with(from, part);
  from.kept_trains.push_back({.number = train.number});
  keep(from, from.kept_trains.back(), part);
}

void handle_train_part(Arrival& arrival) {
  Peer& from = sender_of(arrival);
  TrainIn& train = from.train_in;
  const TrainPart& part = part_in(arrival);
  note_bytes(train, part);
  if (!train.matched) {
    keep(from, from.kept_trains.back(), part);
    NEAR_KILL_POINT("train-part-kept");
    return;
  }
  const bool is_last = train.bound != nullptr && take_part(from, *train.bound, train.staged, part);
  done_with(from, part); // before the receiver can answer, which takes the packets that are kept
  if (is_last) finish(*std::exchange(train.bound, nullptr));
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
    complete = take_part(peer, transfer, staged, part_in(*train.head));
  } else {
    auto kept = std::find_if(peer.kept_trains.begin(), peer.kept_trains.end(),
                             [=](const KeptTrain& each) { return each.number == number; });
    complete = transfer.bytes == 0;
    for (std::size_t i = 0; i < kept->count; ++i) {
      const KeptTrain::Packet& packet = kept->packets[i];
      if (!complete) complete = take_bytes(transfer, staged, packet.payload, packet.bytes);
      give_back_packet(peer, packet.packet);
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
