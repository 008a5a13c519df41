// Trains: messages that are longer than a packet, and leave in several ones without being asked for.
//
//   sender                                               receiver
//   train: cookie, bytes, the first part  ----------->   a receive matches it, or it waits in its packets
//   part: cookie, position, bytes         ----------->   unpacked, or kept as well
//   done when the network has taken all parts            done when all parts are unpacked
//
// Over a stream of bytes, where the receiver has to copy in any case, that takes less time than an RTS, a request, and a fin: while one
// part is copied, the next one arrives (doc/adr/0047). Each part takes a credit, so what nobody expects is bounded as for eager messages.
#include "ofi/state.h"

#include <algorithm>

namespace near::ofi {

namespace {

/// Credits that trains leave to short messages.
constexpr std::uint32_t reserved_credits = 8;

std::uint64_t parts_of(std::uint64_t bytes) { return (bytes + longest_body() - 1) / longest_body(); }

/// Writes the head of a part, and copies its bytes unless the network takes them from `from`.
void fill_part(Packet& packet, Peer& peer, Message message, const PartBody& head, std::size_t bytes,
               const std::byte* from, const Buffer& buffer, std::uint64_t position) {
  fill(packet.frame(), peer, message, sizeof head + bytes);
  std::memcpy(packet.body(), &head, sizeof head);
  packet.head = sizeof head;
  packet.elsewhere = from;
  if (from == nullptr)
    datatype::pack(buffer, static_cast<MPI_Count>(position), packet.body() + sizeof head,
                   static_cast<MPI_Count>(bytes));
}

void unpack_part(Transfer& transfer, std::uint64_t position, const Packet& packet) {
  if (position >= transfer.bytes) return; // the receive is shorter than the message
  const std::uint64_t bytes = packet.bytes - sizeof(Frame) - sizeof(PartBody);
  datatype::unpack(transfer.buffer, static_cast<MPI_Count>(position),
                   packet.data + sizeof(Frame) + sizeof(PartBody),
                   static_cast<MPI_Count>(std::min(bytes, transfer.bytes - position)));
}

PartBody head_of(const Packet& packet) {
  PartBody head;
  std::memcpy(&head, packet.data + sizeof(Frame), sizeof head);
  return head;
}

std::uint64_t position_of(Packet& packet) {
  return packet.frame().message == Message::train ? 0 : head_of(packet).number;
}

/// Counts a part that has arrived. Returns false if the train has no such part.
bool count_part(Train& train, std::uint64_t position, std::uint64_t bytes) {
  if (bytes > train.left || position > train.bytes - bytes) return false;
  train.left -= bytes;
  state().train_bytes_under_way -= bytes;
  return true;
}

/// Ends the receive if the whole train is there.
void finish_if_whole(Peer& peer, std::unordered_map<std::uint64_t, Train>::iterator found) {
  if (found->second.left != 0) return;
  Transfer& transfer = *found->second.transfer;
  peer.trains.erase(found);
  finish(transfer, MPI_SUCCESS);
}

} // namespace

std::uint64_t longest_without_rts() {
  const bool is_stream = longest_body() > least_eager && state().endpoint.sends_parts();
  return is_stream ? longest_train * longest_body() : longest_body();
}

Eager send_train(Peer& peer, const Envelope& envelope, const Buffer& buffer, Transfer* waiter) {
  const std::uint64_t parts = parts_of(envelope.bytes);
  if (waiter == nullptr || envelope.bytes > longest_without_rts() ||
      peer.credits_left < parts + reserved_credits || peer.is_gone() || peer.lost)
    return Eager::refused;
  State& self = state();
  self.packets.reserve(parts); // a train that has begun must not fail
  const bool borrow = buffer.is_contiguous() && copy::can_copy(buffer.kind);
  waiter->peer = &peer;
  waiter->bytes = envelope.bytes;
  waiter->position = 0;
  waiter->busy = true;
  peer.credits_left -= static_cast<std::uint32_t>(parts);
  self.train_bytes_under_way += envelope.bytes;
  transport::count_sent_elsewhere(envelope.bytes);
  const std::uint64_t cookie = self.next_cookie++;
  for (std::uint64_t i = 0, position = 0; i < parts; ++i, position += longest_body()) {
    Packet& packet = *self.packets.take();
    const std::size_t bytes = std::min<std::uint64_t>(longest_body(), envelope.bytes - position);
    const std::byte* from = borrow ? buffer.contiguous_start() + position : nullptr;
    if (i == 0) {
      fill_part(packet, peer, Message::train, {cookie, envelope.bytes}, bytes, from, buffer, 0);
      packet.frame().context = envelope.context;
      packet.frame().source = envelope.source;
      packet.frame().tag = envelope.tag;
    } else {
      fill_part(packet, peer, Message::part, {cookie, position}, bytes, from, buffer, position);
    }
    packet.transfer = waiter;
    peer.awaited.insert(&packet);
    send(peer, packet, sizeof(PartBody) + bytes);
  }
  return Eager::waits;
}

bool take_train(Peer& peer, Packet& packet) {
  const std::uint64_t bytes = packet.body_bytes() - std::min(packet.body_bytes(), sizeof(PartBody));
  const PartBody head = head_of(packet);
  if (bytes == 0 || head.number < bytes || head.number > longest_train * longest_body()) return false;
  const auto [found, is_new] =
      peer.trains.try_emplace(head.cookie, Train{head.number, head.number, nullptr, {}});
  if (!is_new) return false;
  state().train_bytes_under_way += head.number;
  (void)count_part(found->second, 0, bytes);
  found->second.kept.push_back(&packet);
  const Frame& frame = packet.frame();
  announce_train(peer, {frame.context, frame.source, frame.tag, head.number}, head.cookie);
  return true; // or given back already
}

bool take_part(Peer& peer, Packet& packet) {
  const std::uint64_t bytes = packet.body_bytes() - std::min(packet.body_bytes(), sizeof(PartBody));
  const PartBody head = head_of(packet);
  const auto found = peer.trains.find(head.cookie);
  if (bytes == 0 || found == peer.trains.end() || !count_part(found->second, head.number, bytes))
    return false;
  Train& train = found->second;
  if (train.transfer == nullptr) {
    train.kept.push_back(&packet);
    return true;
  }
  unpack_part(*train.transfer, head.number, packet);
  ofi::give_back_credit(peer);
  finish_if_whole(peer, found);
  return false;
}

bool accept_train(Peer& peer, std::uint64_t cookie, Transfer& transfer) {
  const auto found = peer.trains.find(cookie);
  if (found == peer.trains.end() && peer.failed) { // it had not arrived whole
    finish(transfer, MPI_ERR_PROC_ABORTED);
    return true;
  }
  if (found == peer.trains.end() || found->second.transfer != nullptr) return false;
  found->second.transfer = &transfer;
  for (Packet* packet : std::exchange(found->second.kept, {})) {
    unpack_part(transfer, position_of(*packet), *packet);
    state().packets.give_back(packet);
    ofi::give_back_credit(peer);
  }
  finish_if_whole(peer, found);
  return true;
}

std::vector<Transfer*> abandon_trains(Peer& peer) {
  std::vector<Transfer*> ended;
  for (auto each = peer.trains.begin(); each != peer.trains.end();) {
    const auto current = each++;
    const Train& train = current->second;
    if (train.left == 0) continue; // it can still be received
    state().train_bytes_under_way -= train.left;
    for (Packet* packet : train.kept) state().packets.give_back(packet);
    if (train.transfer != nullptr) ended.push_back(train.transfer);
    peer.trains.erase(current);
  }
  return ended;
}

} // namespace near::ofi
