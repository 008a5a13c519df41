// The end of a process's messages: no process finishes while one of its messages may still be received, and
// none waits for a receive that will never be posted.
//
// A process in MPI_Finalize whose rendezvous messages have not all been received asks their receivers whether
// they will receive anything more (last_call). The question follows those messages in the same channel, so a
// receiver that reads it has already matched all of them that it can match. It answers (closed) once it is in
// MPI_Finalize itself. The sender then withdraws every RTS that is still unmatched. The phase of a process
// shows when it has finished altogether.
#include "shm/engine.h"

#include "base/kill_point.h"

#include <utility>

namespace near::shm {

namespace {

void tell(Peer& peer, InternalHandler what) {
  post_control(peer, static_cast<std::uint8_t>(what), {}, "", 0);
}

/// Returns true if this process need not wait for this peer any longer.
bool settle(Peer& peer) {
  if (peer.rts_out == nullptr) return true;
  if (!has_ended(peer)) return false;
  // The peer matches nothing more, so an RTS that cannot be withdrawn now is being received. One attempt is
  // enough.
  if (std::exchange(peer.may_withdraw, false)) {
    for (Transfer *out = peer.rts_out, *next; out != nullptr; out = next) {
      next = out->next;
      shm::cancel_rts(*out);
    }
  }
  return peer.rts_out == nullptr || has_left(peer);
}

} // namespace

void receive_no_more() {
  Engine& self = engine();
  if (self.receives_no_more) return;
  self.receives_no_more = true;
  for (Peer* peer : self.peers)
    if (peer->asks) tell(*peer, InternalHandler::closed);
  NEAR_KILL_POINT("receives-no-more");
}

void handle_last_call(Arrival& arrival) {
  NEAR_KILL_POINT("last-call-read");
  if (engine().receives_no_more)
    tell(sender_of(arrival), InternalHandler::closed);
  else
    sender_of(arrival).asks = true;
}

void handle_closed(Arrival& arrival) {
  NEAR_KILL_POINT("closed-read");
  sender_of(arrival).closed = true;
}

bool has_ended(Peer& peer) {
  if (peer.closed || has_left(peer)) return true;
  if (!peer.asked) {
    peer.asked = true;
    tell(peer, InternalHandler::last_call);
    NEAR_KILL_POINT("last-call-sent");
  }
  return false;
}

bool sends_settled() {
  Engine& self = engine();
  bool settled = true;
  // Called at every poll while this process waits, so it must not try each RTS every time.
  if (self.rts_out != 0)
    for (Peer* peer : self.peers) settled &= settle(*peer);
  return settled;
}

} // namespace near::shm
