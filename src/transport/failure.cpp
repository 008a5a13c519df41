// Peers that fail although this process's job goes on.
//
// A failed peer gets a separate table of operations, none of which succeeds. So no call needs to check whether its peer
// has failed, and the fast path stays short.
#include "transport/registry.h"

#include <list>

namespace near::transport {

namespace {

FailureHandler failure_handler = nullptr;

constexpr int failed = MPI_ERR_PROC_ABORTED;

Result has_failed_already(const Peer& peer) {
  return base::fail(failed, "process {} of job {} has failed", peer.process.rank, peer.process.job);
}
void refuse_copy(Peer& peer, const MemoryKey&, std::span<os::Run>, std::span<os::Run>, Access& access) {
  access.done(access, has_failed_already(peer).code());
}

const Operations operations_of_failed_peers = {
    .name = "failed",
    .send_eager = [](Peer&, const Envelope&, const Buffer&, Transfer*) { return Eager::refused; },
    .send_rts = [](Peer& peer, const Envelope&, const Buffer&, Transfer&) -> Result {
      return has_failed_already(peer);
    },
    .cancel_rts = [](Transfer&) { return false; },
    .claim_rts = nullptr, // fail() keeps its transport's, which knows what has arrived
    .rts_is_live = nullptr,
    .accept = nullptr,
    .give_back_packet = nullptr,
    .give_back_credit = nullptr,
    .hold_back = [](Peer&, bool) {},
    .has_ended = [](Peer&) { return true; },
    .abandon = nullptr,
    .register_memory = nullptr, // fail() keeps its transport's, whose other peers may access the memory
    .deregister_memory = nullptr,
    .capabilities = nullptr,
    .get = refuse_copy,
    .put = refuse_copy,
    .atomic = [](Peer& peer, const MemoryKey&, std::uint64_t, const AtomicOperation&,
                 Access& access) { access.done(access, has_failed_already(peer).code()); },
    .flush =
        [](Peer&, int& error) {
          error = failed;
          return true;
        },
};

/// Returns the operations of failed peers. There is one table for each transport, because the transport owns the messages
/// that have arrived, their packets and credits, and registered memory.
const Operations& failed_operations(const Operations& before) {
  struct Table {
    const Operations* of;
    Operations operations;
  };
  static auto& tables = *new std::list<Table>; // never destroyed
  for (const Table& table : tables)
    if (table.of == &before) return table.operations;
  Table& made = tables.emplace_back(Table{&before, operations_of_failed_peers});
  made.operations.claim_rts = before.claim_rts;
  made.operations.rts_is_live = before.rts_is_live;
  made.operations.accept = before.accept;
  made.operations.give_back_packet = before.give_back_packet;
  made.operations.give_back_credit = before.give_back_credit;
  made.operations.register_memory = before.register_memory;
  made.operations.deregister_memory = before.deregister_memory;
  return made.operations;
}

} // namespace

bool has_failed(const Peer& peer) {
  return peer.operations != nullptr && peer.operations->send_rts == operations_of_failed_peers.send_rts;
}

void set_failure_handler(FailureHandler function) { failure_handler = function; }

void fail(Peer& peer) {
  if (has_failed(peer)) return;
  const Operations& before = *peer.operations;
  before.hold_back(peer, true); // ends the fast path
  peer.operations = &failed_operations(before);
  if (before.abandon != nullptr) before.abandon(peer);
  if (failure_handler != nullptr) failure_handler(peer);
  wake_waiting_threads();
}

} // namespace near::transport
