// Copies between the memory of a peer and that of this process: pieces that the network reads or writes.
#include "ofi/state.h"

#include <rdma/fi_errno.h>

namespace near::ofi {

namespace {

/// The error class of a failed piece: the network rejects accesses outside registered memory; for any other failure it has
/// lost the peer.
int class_of(int error) {
  switch (error) {
  case FI_EACCES:
  case FI_EINVAL:
  case FI_EKEYREJECTED: return MPI_ERR_RMA_RANGE;
  case FI_ENOMEM: return MPI_ERR_NO_MEM;
  default: return MPI_ERR_PROC_ABORTED;
  }
}

/// Begins a piece. Returns false if the network has no space for it now.
bool begin_piece(Copy& copy, Copy::Piece& piece) {
  Endpoint& endpoint = state().endpoint;
  piece.copy = &copy;
  piece.what = Operation::What::access;
  void* local = Endpoint::local_key(piece.local);
  // A lost peer may have no address, and providers do not check for that.
  const std::int64_t error =
      copy.peer->lost ? -FI_EHOSTUNREACH
      : copy.writes
          ? endpoint.write(piece.mine, piece.bytes, local, copy.peer->address, piece.theirs, copy.key, piece)
          : endpoint.read(piece.mine, piece.bytes, local, copy.peer->address, piece.theirs, copy.key, piece);
  if (error == -FI_EAGAIN) return false;
  if (error != 0) {
    ++copy.ended;
    copy.error = class_of(static_cast<int>(-error));
    if (copy.error == MPI_ERR_PROC_ABORTED) copy.peer->lost = state().looks_for_deaths = true;
  }
  ++copy.begun;
  return true;
}

/// Returns whether no part of the copy is left to begin.
bool begin_pieces(Copy& copy) {
  if (copy.error != MPI_SUCCESS || copy.peer->failed) {
    copy.ended += copy.pieces.size() - copy.begun; // these will not begin
    copy.begun = copy.pieces.size();
  }
  while (copy.begun < copy.pieces.size()) {
    Copy::Piece& piece = copy.pieces[copy.begun];
    if (piece.local == nullptr && !state().endpoint.prepare(piece.mine, piece.bytes, piece.local).ok()) {
      copy.error = MPI_ERR_NO_MEM;
      return begin_pieces(copy);
    }
    if (!begin_piece(copy, piece)) return false;
  }
  return true;
}

/// Once all pieces have ended, completes the copy's purpose and destroys it.
void end_if_over(Copy& copy) {
  if (copy.begun != copy.pieces.size() || copy.ended != copy.begun) return;
  State& self = state();
  const auto kept = std::move(self.copies.find(&copy)->second);
  self.copies.erase(&copy);
  for (const Copy::Piece& piece : kept->pieces) Endpoint::release(piece.local);
  if (kept->transfer != nullptr) message_was_read(*kept);
  if (kept->access != nullptr) {
    --kept->peer->accesses;
    kept->access->done(*kept->access, kept->error);
  }
}

} // namespace

void begin(std::unique_ptr<Copy> made) {
  State& self = state();
  Copy& copy = *made;
  self.copies[&copy] = std::move(made);
  if (begin_pieces(copy))
    end_if_over(copy); // all pieces may have failed
  else
    self.unbegun.push_back(&copy);
}

bool begin_waiting() {
  State& self = state();
  bool began = false;
  while (!self.unbegun.empty()) {
    Copy& copy = *self.unbegun.front();
    const std::size_t before = copy.begun;
    const bool all = begin_pieces(copy);
    began |= copy.begun != before;
    if (!all) return began;
    self.unbegun.pop_front();
    end_if_over(copy);
  }
  return began;
}

void piece_is_over(Copy::Piece& piece, int error) {
  Copy& copy = *piece.copy;
  ++copy.ended;
  if (error != 0) {
    copy.error = class_of(error);
    if (copy.error == MPI_ERR_PROC_ABORTED) settle_lost(*copy.peer);
  }
  end_if_over(copy);
}

} // namespace near::ofi
