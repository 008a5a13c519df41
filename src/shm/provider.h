// The protocols that transfer the bytes of a rendezvous message, best first. To add one, write pull() in a
// file of its own and a row in ladder() (provider.cpp). The tuner (tuner.h) chooses among those that are
// possible for a message, from the times of earlier transfers.
#pragma once

#include "shm/engine.h"

namespace near::shm {

enum class Pulled : std::uint8_t {
  done,    ///< all `bytes` are in the receiver's buffer
  started, ///< in progress: transfer.done will be called later
  refused, ///< the transfer failed: another provider must transfer the whole message
};

struct Provider {
  const char* name; ///< what NEAR_COPY selects
  segment::Path path;
  Protocol protocol; ///< its index in the tuner; Protocol::count: used whenever it is possible
  /// Receiver: returns true if the provider may be able to transfer this message.
  bool (*possible)(Peer& peer, const NodeRts& rts);
  /// Receiver: transfers the message. `transfer` contains the peer, the buffer and the number of bytes.
  Pulled (*pull)(Peer& peer, const NodeRts& rts, Transfer& transfer);
};

/// Returns all providers, best first.
std::span<const Provider> ladder();

/// Returns true if the data is in private memory of the peer that the kernel lets us read; the first call
/// probes that.
bool cma_is_possible(Peer& peer, const NodeRts& rts);
/// Call when a doubtful peer turns out to be alive, so that the kernel does not let us copy. Warns once per
/// job.
void confirm_refusal(Peer& peer);

Pulled pull_self(Peer& peer, const NodeRts& rts, Transfer& transfer);
Pulled pull_direct(Peer& peer, const NodeRts& rts, Transfer& transfer);
Pulled pull_cma(Peer& peer, const NodeRts& rts, Transfer& transfer);
Pulled pull_pipelined(Peer& peer, const NodeRts& rts, Transfer& transfer);

} // namespace near::shm
