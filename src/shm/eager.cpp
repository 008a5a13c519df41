// Eager messages: inline in a slot, or in a packet.
#include "shm/packets.h"

#include "base/kill_point.h"
#include "copy/raw.h"

namespace near::shm {

Eager send_eager(Peer& peer, const Envelope& envelope, const Buffer& buffer, Transfer* waiter) {
  Engine& self = engine();
  std::uint64_t bytes = envelope.bytes;
  stop_fast_sends(peer); // returns the credits of unused fast sends
  if (bytes > self.eager_limit)
    return bytes <= self.train_limit ? send_train(peer, envelope, buffer) : Eager::refused;
  if (!peer.send.credit.available(self.credit_limit)) return Eager::refused;
  OutgoingPacket packet;
  if (bytes > inline_bytes) {
    packet = take_packet(peer, bytes);
    if (!packet) return Eager::refused;
    NEAR_KILL_POINT("packet-taken");
  }
  // If the channel is full, the message remains eager, because the receiver is reading. Its header waits for
  // a slot.
  MessageHeader waiting;
  auto claim = claim_slot(peer);
  if (!claim && waiter == nullptr) {
    if (packet) put_back(peer, packet);
    return Eager::refused;
  }
  MessageHeader& header = claim ? header_of(claim) : waiting;
  header.envelope = envelope;
  header.handler = static_cast<std::uint8_t>(Handler::p2p_eager);
  std::byte* payload = header.payload;
  if (!packet) {
    header.in_packet = 0;
  } else {
    header.in_packet = 1;
    *reinterpret_cast<PacketReference*>(header.payload) = packet.reference;
    payload = packet.at;
  }
  if (bytes != 0) {
    if (packet && buffer.type->contiguous && bytes >= copy::StorePolicy::worthwhile)
      fill_packet(peer, peer.stores, packet, buffer.contiguous_start(), bytes);
    else if (buffer.type->contiguous)
      copy::raw(payload, buffer.contiguous_start(), bytes);
    else
      datatype::pack(buffer, 0, payload, static_cast<MPI_Count>(bytes));
  }
  NEAR_KILL_POINT("payload-packed");
  peer.send.credit.spend();
  count_sent(peer, !packet ? segment::Path::inlined : segment::Path::packet, bytes);
  if (!claim) {
    wait_for_slot(peer, waiting, waiter);
    return Eager::waits;
  }
  send_claimed(peer, std::move(claim));
  // Another message of this length is likely to follow.
  if (!packet)
    allow_fast_sends(peer.send);
  else if (!packet.was_kept && (bytes < copy::StorePolicy::worthwhile || !peer.stores.streaming()))
    self.packets.fetch_next(bytes);
  return Eager::left;
}

/// take(data, bytes) reads the packet of the message.
template <class Take>
static void take_packet(const ReceiveState& receive_state, const MessageHeader& message, Take take) {
  Peer& from = own(*receive_state.peer);
  from.kept.message_came();
  const auto& reference = *reinterpret_cast<const PacketReference*>(message.payload);
  take(packet_at(from, reference.packet, reference.is_receivers), reference.bytes);
  done_with_packet(from, reference);
}

void receive_from_packet(const ReceiveState& receive_state, const MessageHeader& message, void* buffer) {
  take_packet(receive_state, message,
              [=](const std::byte* data, std::uint64_t bytes) { copy::raw(buffer, data, bytes); });
}

void receive_from_packet(const ReceiveState& receive_state, const MessageHeader& message,
                         const Buffer& buffer) {
  take_packet(receive_state, message, [&](const std::byte* data, std::uint64_t bytes) {
    datatype::unpack_arrived(buffer, 0, data, static_cast<MPI_Count>(bytes));
  });
}

} // namespace near::shm
