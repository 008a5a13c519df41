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
        [](transport::Peer& peer, const RtsHeader& rts, std::uint64_t offered_bytes, const Buffer& buffer,
           Transfer& transfer) { return accept(own(peer), node_rts(rts), offered_bytes, buffer, transfer); },
    .give_back_packet = [](transport::Peer& peer,
                           std::uint64_t packet) { give_back_packet(own(peer), packet); },
    .give_back_credit = nullptr, // not needed, because ReceiveState::released is set
    .hold_back = [](transport::Peer& peer, bool held) { hold_back(own(peer), held); },
    .has_ended = [](transport::Peer& peer) { return has_ended(own(peer)); },
    .abandon = nullptr, // mpiexec ends the job
    .reaches_memory = [](transport::Peer& peer) { return reaches_memory_of(own(peer)); },
    .get = [](transport::Peer& peer, std::span<os::Run> theirs,
              std::span<os::Run> mine) { return copy_from_peer(own(peer), theirs, mine); },
    .put = [](transport::Peer& peer, std::span<os::Run> theirs,
              std::span<os::Run> mine) { return copy_to_peer(own(peer), theirs, mine); },
};

} // namespace near::shm
