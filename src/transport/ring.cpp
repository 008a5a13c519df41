// Pipelined two-copy: the sender packs into its packets, the receiver unpacks from them while the next is
// filled. Works for every layout and every sandbox. Packets go in order, so the receiver only counts.
#include "transport/provider.h"

#include <algorithm>

namespace near::transport {

Pulled pull_ring(Peer& peer, const OfferTicket& ticket, Transfer& transfer) {
  transfer.position = 0;
  transfer.busy = true;
  RingRequest request{ticket.cookie, reinterpret_cast<std::uint64_t>(&transfer), transfer.bytes};
  post_control(peer, static_cast<std::uint8_t>(InternalHandler::ring_request), {}, &request, sizeof request);
  return Pulled::started;
}

void handle_ring_request(Arrival& arrival) {
  const auto& request = *reinterpret_cast<const RingRequest*>(arrival.payload);
  auto& transfer = *reinterpret_cast<Transfer*>(request.sender_cookie);
  transfer.remote_cookie = request.receiver_cookie;
  transfer.bytes = request.bytes;
  transfer.position = 0;
  engine().ring_senders.push_back(&transfer);
}

bool advance_ring_senders() {
  Engine& self = engine();
  bool moved = false;
  // Each transfer sends one fragment per round, so that none starves behind a long one.
  for (std::size_t i = 0; i < self.ring_senders.size();) {
    Transfer& transfer = *self.ring_senders[i];
    std::uint32_t packet = self.pool.take(0);
    if (packet == PacketPool::none) return moved;
    auto claim = claim_slot(*transfer.peer);
    if (!claim) {
      self.pool.put_back(packet);
      ++i;
      continue;
    }
    std::uint64_t part = std::min(transfer.bytes - transfer.position, self.pool.payload_bytes());
    datatype::pack(transfer.view, static_cast<MPI_Count>(transfer.position), self.pool.payload(packet),
                   static_cast<MPI_Count>(part));
    MessageHeader& header = header_of(claim);
    header.context = transfer.remote_cookie;
    header.bytes = transfer.position;
    header.tag = 0;
    header.source = 0;
    header.handler = static_cast<std::uint8_t>(InternalHandler::ring_fragment);
    header.in_packet = 1;
    header.payload_bytes = sizeof(PacketReference);
    *reinterpret_cast<PacketReference*>(header.payload) = {packet, static_cast<std::uint32_t>(part)};
    send_claimed(*transfer.peer, std::move(claim));
    transfer.position += part;
    moved = true;
    if (transfer.position < transfer.bytes) {
      ++i;
      continue;
    }
    // Everything is packed: the buffer is the user's again.
    self.ring_senders[i] = self.ring_senders.back();
    self.ring_senders.pop_back();
    count_sent(segment::Path::ring, transfer.bytes);
    retire_offer(transfer);
    transfer.busy = false;
    transfer.done(transfer, MPI_SUCCESS);
  }
  return moved;
}

void handle_ring_fragment(Arrival& arrival) {
  auto& transfer = *reinterpret_cast<Transfer*>(arrival.envelope.context);
  datatype::unpack(transfer.view, static_cast<MPI_Count>(arrival.envelope.bytes), arrival.payload,
                   static_cast<MPI_Count>(arrival.payload_bytes));
  transfer.position += arrival.payload_bytes;
  if (transfer.position < transfer.bytes) return;
  transfer.busy = false;
  transfer.done(transfer, MPI_SUCCESS);
}

} // namespace near::transport
