// The other processes of the job, as this one knows them.
#include "transport/engine.h"

namespace near::transport {

namespace {

/// Makes the peer in this slot. Reads its control page, which costs this process a page of page tables, so it is
/// done only for processes that this one exchanges messages with.
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
  peer.send.peer = peer.receive.peer = &peer;
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
  // SYNC: rank-phase. Acquire: what the finished process gave back to us is seen before we act on it.
  auto phase = memory::space().segment.entry(peer.slot).phase.load_acquire();
  return phase != static_cast<std::uint32_t>(segment::Phase::ready);
}

Peer& peer_in(std::uint32_t slot) {
  Peer* peer = engine().by_slot[slot]->send.peer;
  return peer != nullptr ? *peer : map_peer(slot);
}

Peer& peer_at(object::ProcessId process) { return peer_in(process.rank); }

Peer& peer_of(const object::Communicator& communicator, int rank) {
  object::Process*& known = communicator.processes[static_cast<std::size_t>(rank)];
  Peer* peer = static_cast<PeerStates*>(known)->send.peer;
  if (peer != nullptr) [[likely]]
    return *peer;
  peer = &peer_in(communicator.process_ids[rank].rank);
  known = peer;
  return *peer;
}

void find_peer(const object::Communicator& communicator, int rank) {
  communicator.processes[static_cast<std::size_t>(rank)] =
      engine().by_slot[communicator.process_ids[rank].rank];
}

void count_sent(const Peer& peer, segment::Path path, std::uint64_t bytes) {
  auto& sent = engine().traffic[static_cast<std::size_t>(path)][peer.slot];
  sent.messages.bump_relaxed(1);
  sent.bytes.bump_relaxed(bytes);
}

segment::Amount own_traffic(segment::Path path) {
  const Engine& self = engine();
  // Reading our own table may allocate a page of it: on the right node, and only if somebody asks.
  segment::Amount sum;
  for (std::size_t slot = 0; slot < self.by_slot.size(); ++slot) {
    const auto& sent = self.traffic[static_cast<std::size_t>(path)][slot];
    sum += {sent.messages.load_relaxed(), sent.bytes.load_relaxed()};
  }
  return sum;
}

segment::PairStatistics* statistics_of(Peer& peer) {
  Engine& self = engine();
  if (peer.slot / 64 < std::size(self.control->with_statistics))
    self.control->with_statistics[peer.slot / 64].or_relaxed(std::uint64_t{1} << peer.slot % 64);
  return memory::space().segment.at<segment::PairStatistics>(self.control->statistics) + peer.slot;
}

const segment::PairEstimates& estimates_of(const Peer& peer) {
  const segment::Segment& job = memory::space().segment;
  // The place of a process that is not bound is everything that it may use, which says little about its distance.
  auto place = [&job](std::uint32_t slot) {
    const auto& entry = job.entry(slot);
    return entry.first_cpu < 0 ? segment::Place{} : entry.place;
  };
  auto distance = distance_between(place(engine().slot), place(peer.slot));
  return job.header().estimates.pair[static_cast<std::size_t>(distance)];
}

} // namespace near::transport
