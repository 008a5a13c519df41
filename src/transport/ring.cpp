// The ring: the sender copies pieces into its cells, the receiver copies them out while the next are filled.
// Works for every layout and every sandbox. Pieces go in order, so the receiver only counts.
//
//   receiver                                      sender
//   pull_ring: ring_request(bytes) ------------>  handle_ring_request: on the list of ring senders
//                                                 advance_ring_senders: pack into a cell, ring_fragment, ...
//   handle_ring_fragment: unpack  <-------------
//
// The sender chooses the stores (stores.h).
#include "transport/provider.h"

#include "copy/copy.h"

#include <algorithm>

namespace near::transport {

namespace {

/// Small pieces let the two copies of a short message overlap; large ones cost fewer headers.
std::uint64_t piece_of(std::uint64_t bytes) {
  return std::min<std::uint64_t>(bytes <= 64u << 10 ? 8u << 10 : 16u << 10, engine().cells.cell_bytes());
}

/// One piece of the transfer; false when there is no cell or no slot now.
bool send_piece(Transfer& transfer) {
  Engine& self = engine();
  Peer& peer = *transfer.peer;
  Cells::Taken cell = self.cells.take_for_piece();
  if (!cell) return false;
  auto claim = claim_slot(peer);
  if (!claim) {
    self.cells.put_back(cell);
    return false;
  }
  std::uint64_t bytes = std::min(transfer.bytes - transfer.position, transfer.piece);
  std::byte* at = self.cells.at(cell.cell);
  if (transfer.view.is_dense() && bytes >= Stores::worthwhile)
    peer.stores.copy(at, static_cast<const std::byte*>(transfer.view.dense_start()) + transfer.position,
                     bytes);
  else
    datatype::pack(transfer.view, static_cast<MPI_Count>(transfer.position), at,
                   static_cast<MPI_Count>(bytes));
  MessageHeader& header = header_of(claim);
  header.context = transfer.remote_cookie;
  header.bytes = transfer.position;
  header.tag = 0;
  header.source = 0;
  header.handler = static_cast<std::uint8_t>(InternalHandler::ring_fragment);
  header.in_packet = 1;
  header.payload_bytes = sizeof(CellReference);
  *reinterpret_cast<CellReference*>(header.payload) = {cell.cell, static_cast<std::uint32_t>(bytes),
                                                       cell.lap};
  send_claimed(peer, std::move(claim));
  transfer.position += bytes;
  return true;
}

} // namespace

Pulled pull_ring(Peer& peer, const OfferTicket& ticket, Transfer& transfer) {
  transfer.position = 0;
  transfer.busy = true;
  RingRequest message{ticket.cookie, reinterpret_cast<std::uint64_t>(&transfer), transfer.bytes};
  post_control(peer, static_cast<std::uint8_t>(InternalHandler::ring_request), {}, &message, sizeof message);
  return Pulled::started;
}

void handle_ring_request(Arrival& arrival) {
  const auto& request = *reinterpret_cast<const RingRequest*>(arrival.payload);
  auto& transfer = *reinterpret_cast<Transfer*>(request.sender_cookie);
  transfer.remote_cookie = request.receiver_cookie;
  transfer.bytes = request.bytes;
  transfer.piece = piece_of(transfer.bytes);
  transfer.position = 0;
  engine().ring_senders.push_back(&transfer);
}

bool advance_ring_senders() {
  Engine& self = engine();
  bool moved = false;
  // Each transfer sends a few pieces per round, so that none starves behind a long one.
  constexpr int per_round = 4;
  for (std::size_t i = 0; i < self.ring_senders.size();) {
    Transfer& transfer = *self.ring_senders[i];
    for (int piece = 0; piece < per_round && transfer.position < transfer.bytes; ++piece) {
      if (!send_piece(transfer)) break;
      moved = true;
    }
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
  if (transfer.view.is_dense())
    copy::copy(static_cast<std::byte*>(transfer.view.dense_start()) + arrival.envelope.bytes, arrival.payload,
               arrival.payload_bytes, copy::Store::cached);
  else
    datatype::unpack(transfer.view, static_cast<MPI_Count>(arrival.envelope.bytes), arrival.payload,
                     static_cast<MPI_Count>(arrival.payload_bytes));
  transfer.position += arrival.payload_bytes;
  if (transfer.position < transfer.bytes) return;
  transfer_arrived(transfer);
  transfer.busy = false;
  transfer.done(transfer, MPI_SUCCESS);
}

} // namespace near::transport
