#include "transport/provider.h"

#include "base/knob.h"

#include <array>

namespace near::transport {

namespace {

constexpr std::array<Provider, 4> all = {{
    {"self", segment::Path::direct, pull_self},
    {"direct", segment::Path::direct, pull_direct},
    {"cma", segment::Path::cma, pull_cma},
    {"ring", segment::Path::ring, pull_ring},
}};

} // namespace

std::span<const Provider> ladder() { return all; }

/// Sender and receiver are one process: one typed copy.
Pulled pull_self(Peer& peer, const OfferTicket& ticket, Transfer& transfer) {
  if (peer.slot != engine().slot) return Pulled::refused;
  const auto& sender = *reinterpret_cast<const Transfer*>(ticket.cookie);
  datatype::copy(sender.view, transfer.view, static_cast<MPI_Count>(transfer.bytes));
  return Pulled::done;
}

/// The data lies in the segment: plain loads.
Pulled pull_direct(Peer&, const OfferTicket& ticket, Transfer& transfer) {
  if (ticket.shared == 0) return Pulled::refused;
  datatype::unpack(transfer.view, 0, engine().segment.at<std::byte>(ticket.shared),
                   static_cast<MPI_Count>(transfer.bytes));
  return Pulled::done;
}

} // namespace near::transport
