// The protocols that move the bytes of a rendezvous, best first. To add one, write pull() in a file of its own
// and a row in ladder() (provider.cpp). Among those that are possible for a message, the tuner (tuner.h) decides
// by what earlier transfers took.
#pragma once

#include "shm/engine.h"

namespace near::shm {

enum class Pulled : std::uint8_t {
  done,    ///< all `bytes` are in the receiver's view
  started, ///< under way: transfer.done will be called from progress
  refused, ///< nothing useful moved: the next provider takes the whole message
};

struct Provider {
  const char* name; ///< what NEAR_COPY selects
  segment::Path path;
  Protocol protocol; ///< its place in the tuner; Protocol::count: taken whenever it can be
  /// Receiver's side: whether it is worth a try for this RTS.
  bool (*possible)(Peer& peer, const NodeRts& rts);
  /// Receiver's side. `transfer` holds peer, view and bytes.
  Pulled (*pull)(Peer& peer, const NodeRts& rts, Transfer& transfer);
};

std::span<const Provider> ladder();

/// Whether the kernel copies between us and this peer; tried at the first question.
bool cma_is_possible(Peer& peer, const NodeRts& rts);
/// The probe of a doubtful peer failed, and it lives: the kernel does not let us copy. Says so, once per job.
void confirm_refusal(Peer& peer);

Pulled pull_self(Peer& peer, const NodeRts& rts, Transfer& transfer);
Pulled pull_direct(Peer& peer, const NodeRts& rts, Transfer& transfer);
Pulled pull_cma(Peer& peer, const NodeRts& rts, Transfer& transfer);
Pulled pull_pipelined(Peer& peer, const NodeRts& rts, Transfer& transfer);

} // namespace near::shm
