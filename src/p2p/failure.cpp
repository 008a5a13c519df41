// Peers that have failed while the job goes on: whatever waits for one of them ends with MPI_ERR_PROC_ABORTED.
//
// Sends need nothing here: the transport refuses them with that error, and completes those that are under way. A search
// in the background finds the receives that name a failed peer, whether they were posted before or after the failure, so
// that posting needs no extra check. Receives from MPI_ANY_SOURCE wait for the other peers.
#include "p2p/engine.h"

#include <algorithm>
#include <vector>

namespace near::p2p {

namespace {

auto& failed_peers = *new std::vector<object::ProcessId>; // never destroyed
void (*watcher)(const object::ProcessId&) = nullptr;

bool names_failed_peer(const EngineRequest& receive) {
  const object::ProcessId source = receive.communicator->process_ids[receive.rank];
  return std::find(failed_peers.begin(), failed_peers.end(), source) != failed_peers.end();
}

} // namespace

void peer_failed(Peer& peer) {
  if (failed_peers.empty()) ++background;
  failed_peers.push_back(peer.process);
  if (watcher != nullptr) watcher(peer.process);
}

void watch_failures(void (*function)(const object::ProcessId& process)) {
  watcher = function;
  for (const object::ProcessId& process : failed_peers) watcher(process);
}

bool has_failed_peers() { return !failed_peers.empty(); }

bool fail_receives() {
  bool moved = false;
  matching().each_posted_to_one([&](Posted& posted) {
    auto& receive = static_cast<EngineRequest&>(posted);
    if (!names_failed_peer(receive)) return;
    matching().remove(receive);
    receive.completion = Completion{receive.rank, receive.tag, MPI_ERR_PROC_ABORTED, false, 0};
    complete(receive);
    moved = true;
  });
  return moved;
}

void forget_failed_peers() {
  if (!failed_peers.empty()) --background;
  failed_peers.clear();
  watcher = nullptr;
}

} // namespace near::p2p
