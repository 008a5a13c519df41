// The table of operations that every peer of this transport points to.
#include "shm/engine.h"

#include <bit>

namespace near::shm {

namespace {

NodeRts node_rts(const RtsHeader& rts) { return std::bit_cast<NodeRts>(rts); }

} // namespace

const transport::Operations operations = {
    .name = "shm",
    .send_eager = [](transport::Peer& peer, const Envelope& envelope, const Buffer& buffer,
                     Transfer* waiter) { return send_eager(own(peer), envelope, buffer, waiter); },
    .send_rts = [](transport::Peer& peer, const Envelope& envelope, const Buffer& buffer,
                   Transfer& transfer) { return send_rts(own(peer), envelope, buffer, transfer); },
    .cancel_rts = cancel_rts,
    .claim_rts =
        [](transport::Peer&, RtsHeader& rts) {
          NodeRts claimed = node_rts(rts);
          if (!claim_rts(claimed)) return false;
          rts = std::bit_cast<RtsHeader>(claimed);
          return true;
        },
    .rts_is_live = [](const transport::Peer&, const RtsHeader& rts) { return rts_is_live(node_rts(rts)); },
    .accept =
        [](transport::Peer& peer, const RtsHeader& rts, std::uint64_t announced_bytes, const Buffer& buffer,
           Transfer& transfer) {
          return accept(own(peer), node_rts(rts), announced_bytes, buffer, transfer);
        },
    .give_back_packet = [](transport::Peer& peer,
                           std::uint64_t packet) { give_back_packet(own(peer), packet); },
    .give_back_credit = nullptr, // not needed, because ReceiveState::released is set
    .hold_back = [](transport::Peer& peer, bool held) { hold_back(own(peer), held); },
    .has_ended = [](transport::Peer& peer) { return has_ended(own(peer)); },
    .abandon = nullptr, // mpiexec ends the job
    .register_memory = register_memory,
    .deregister_memory = nullptr,
    .capabilities = [](transport::Peer& peer,
                       const transport::MemoryKey& key) { return capabilities(own(peer), key); },
    .get = [](transport::Peer& peer, const transport::MemoryKey& key, std::span<os::Run> theirs,
              std::span<os::Run> mine,
              transport::Access& access) { get(own(peer), key, theirs, mine, access); },
    .put = [](transport::Peer& peer, const transport::MemoryKey& key, std::span<os::Run> theirs,
              std::span<os::Run> mine,
              transport::Access& access) { put(own(peer), key, theirs, mine, access); },
    .atomic = [](transport::Peer&, const transport::MemoryKey& key, std::uint64_t address,
                 const transport::AtomicOperation& operation,
                 transport::Access& access) { apply_atomic(key, address, operation, access); },
    .flush = nullptr, // the origin moves the bytes itself, so an access is complete when its call returns
};

} // namespace near::shm
