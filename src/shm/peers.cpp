// The processes of the job as peers of this one: their mapping and their statistics.
#include "shm/engine.h"

namespace near::shm {

namespace {

/// Maps the process in this row of the rank table as a peer. Reading its control page costs this process a
/// page of page tables, so this is done only for processes that exchange messages with this one.
[[gnu::cold]] [[gnu::noinline]] Peer& map_peer(std::uint32_t slot) {
  Engine& self = engine();
  if (self.peers.size() == self.peers.capacity()) self.peers.reserve(2 * self.peers.size() + 8);
  Peer& peer = *new Peer; // nothing below throws
  peer.slot = slot;
  auto& control = memory::space().segment.control(slot);
  peer.control = &control;
  peer.producer = queue::Producer<>(memory::space().segment.at<queue::SlotQueue<>>(control.queue),
                                    control.queue_slots, self.slot);
  peer.lanes = memory::space().segment.at<queue::LaneRing<>>(control.lanes);
  peer.packets = memory::space().segment.at<std::byte>(control.packets);
  peer.packet_flags = memory::space().segment.at<PacketFlag>(control.packet_flags);
  peer.packet_bytes = control.packet_bytes;
  peer.operations = &operations;
  peer.send.doorbell = &control.doorbell;
  peer.send.traffic = self.traffic[static_cast<std::size_t>(segment::Path::inlined)] + slot;
  peer.send.credit =
      queue::CreditAccount<>(memory::space().segment.at<queue::CreditCounter<>>(control.credits) + self.slot);
  peer.receive.released = memory::space().segment.at<queue::CreditCounter<>>(self.control->credits) + slot;
  peer.stores.begin_with(estimates_of(peer).store_cost);
  self.peers.push_back(&peer);
  self.by_slot[slot] = &peer;
  return peer;
}

} // namespace

bool has_left(const Peer& peer) {
  // SYNC: rank-phase. Acquire: we see what the finished process gave back to us before we act on its phase.
  auto phase = memory::space().segment.entry(peer.slot).phase.load_acquire();
  return phase != static_cast<std::uint32_t>(segment::Phase::ready);
}

Peer& peer_in(std::uint32_t slot) {
  Peer* peer = engine().by_slot[slot];
  return peer != nullptr ? *peer : own(transport::peer_at({.rank = slot}));
}

transport::Peer* connect(object::ProcessId process) {
  if (process.job != 0 || process.rank >= engine().by_slot.size()) return nullptr;
  return &map_peer(process.rank);
}

void count_sent(const Peer& peer, segment::Path path, std::uint64_t bytes) {
  auto& sent = engine().traffic[static_cast<std::size_t>(path)][peer.slot];
  sent.messages.bump_relaxed(1);
  sent.bytes.bump_relaxed(bytes);
}

segment::PairStatistics* statistics_of(Peer& peer) {
  Engine& self = engine();
  if (peer.slot / 64 < std::size(self.control->with_statistics))
    self.control->with_statistics[peer.slot / 64].or_relaxed(std::uint64_t{1} << peer.slot % 64);
  return memory::space().segment.at<segment::PairStatistics>(self.control->statistics) + peer.slot;
}

const segment::PairEstimates& estimates_of(const Peer& peer) {
  const segment::Segment& job = memory::space().segment;
  // The place of an unbound process is everything that it may use, which says little about its distance.
  auto place = [&job](std::uint32_t slot) {
    const auto& entry = job.entry(slot);
    return entry.first_cpu < 0 ? segment::Place{} : entry.place;
  };
  auto distance = distance_between(place(engine().slot), place(peer.slot));
  return job.header().estimates.pair[static_cast<std::size_t>(distance)];
}

} // namespace near::shm
