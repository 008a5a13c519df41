// Ways to move an offer's bytes to its receiver, best first. To add one: write pull() in a file of its own
// and a row in ladder() (provider.cpp).
#pragma once

#include "transport/engine.h"

namespace near::transport {

enum class Pulled : std::uint8_t {
  done,    ///< all `bytes` are in the receiver's view
  started, ///< under way: transfer.done will be called from progress
  refused, ///< nothing useful moved: the next provider takes the whole message
};

struct Provider {
  const char* name; ///< what NEAR_COPY selects
  segment::Path path;
  /// Receiver's side. `transfer` holds peer, view and bytes.
  Pulled (*pull)(Peer& peer, const OfferTicket& ticket, Transfer& transfer);
};

std::span<const Provider> ladder();

Pulled pull_self(Peer& peer, const OfferTicket& ticket, Transfer& transfer);
Pulled pull_direct(Peer& peer, const OfferTicket& ticket, Transfer& transfer);
Pulled pull_cma(Peer& peer, const OfferTicket& ticket, Transfer& transfer);
Pulled pull_ring(Peer& peer, const OfferTicket& ticket, Transfer& transfer);

} // namespace near::transport
