// Whole messages sent before the receiver asks: inline in a slot, or in a packet.
#include "transport/engine.h"

#include "base/kill_point.h"

namespace near::transport {

std::size_t eager_limit() { return engine().eager_limit; }

bool try_send_eager(Peer& peer, const Envelope& envelope, const View& view) {
  Engine& self = engine();
  std::uint64_t bytes = envelope.bytes;
  if (bytes > self.eager_limit || !peer.credit.available(self.credit_limit)) return false;
  Cells::Taken cell;
  if (bytes > inline_bytes) {
    cell = self.cells.take();
    if (!cell) return false;
    NEAR_KILL_POINT("packet-taken");
  }
  auto claim = claim_slot(peer);
  if (!claim) {
    if (cell) self.cells.put_back(cell);
    return false;
  }
  MessageHeader& header = header_of(claim);
  header.context = envelope.context;
  header.bytes = bytes;
  header.tag = envelope.tag;
  header.source = envelope.source;
  header.handler = static_cast<std::uint8_t>(Handler::p2p_eager);
  std::byte* payload = header.payload;
  if (!cell) {
    header.in_packet = 0;
    header.payload_bytes = static_cast<std::uint16_t>(bytes);
  } else {
    header.in_packet = 1;
    header.payload_bytes = sizeof(CellReference);
    *reinterpret_cast<CellReference*>(header.payload) = {cell.cell, static_cast<std::uint32_t>(bytes),
                                                         cell.lap};
    payload = self.cells.at(cell.cell);
  }
  if (bytes != 0) {
    if (view.type->dense && bytes >= Stores::worthwhile)
      peer.stores.copy(payload, view.dense_start(), bytes);
    else if (view.type->dense)
      std::memcpy(payload, view.dense_start(), bytes);
    else
      datatype::pack(view, 0, payload, static_cast<MPI_Count>(bytes));
  }
  NEAR_KILL_POINT("payload-packed");
  peer.credit.spend();
  send_claimed(peer, std::move(claim));
  count_sent(!cell ? segment::Path::inlined : segment::Path::packet, bytes);
  return true;
}

void give_back_credit(Peer& peer) {
  NEAR_KILL_POINT("credit-due");
  peer.released_by_us->give_back();
}

} // namespace near::transport
