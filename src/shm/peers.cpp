// The processes of the job as peers of this one: their mapping and their statistics.
#include "shm/engine.h"

#include "memory/segments.h"
#include "os/memory.h"

#include <algorithm>

namespace near::shm {

namespace {

/// Maps the process in this row of the rank table as a peer. Reading its control page costs this process a
/// page of page tables, so this is done only for processes that exchange messages with this one.
[[gnu::cold]] [[gnu::noinline]] Peer& map_peer(std::uint32_t row) {
  Engine& self = engine();
  if (self.peers.size() == self.peers.capacity()) self.peers.reserve(2 * self.peers.size() + 8);
  Peer& peer = *new Peer; // nothing below throws
  peer.row = row;
  auto& control = memory::space().segment.control(row);
  peer.control = &control;
  peer.producer = queue::Producer<>(memory::space().segment.at<queue::SlotQueue<>>(control.queue),
                                    control.queue_slots, self.row);
  peer.lanes = memory::space().segment.at<queue::LaneRing<>>(control.lanes);
  peer.packets = memory::space().segment.at<std::byte>(control.packets);
  peer.packet_flags = memory::space().segment.at<PacketFlag>(control.packet_flags);
  peer.packet_bytes = control.packet_bytes;
  // All others together keep at most two thirds of this process's packets one by one, if they have as many, and two ninths in runs.
  if (row != self.row && self.job_size > 1) {
    const std::uint32_t most =
        (static_cast<std::uint32_t>(segment::first_packets(job_shape())) - PacketPool::reserve) * 2 / 3 /
        (self.job_size - 1);
    peer.kept.set_limit(most);
    peer.kept_runs.set_limit(most / (3 * PacketPool::run));
  }
  peer.operations = &operations;
  peer.send.doorbell = &control.doorbell;
  peer.send.traffic = self.traffic[static_cast<std::size_t>(segment::Path::inlined)] + row;
  peer.send.credit =
      queue::CreditAccount<>(memory::space().segment.at<queue::CreditCounter<>>(control.credits) + self.row);
  peer.receive.released = memory::space().segment.at<queue::CreditCounter<>>(self.control->credits) + row;
  for (copy::StorePolicy* stores : {&peer.stores, &peer.fragment_stores})
    stores->begin_with(estimates_of(peer).store_cost);
  self.peers.push_back(&peer);
  self.by_row[row] = &peer;
  return peer;
}

} // namespace

bool has_left(const Peer& peer) {
  // After this, we see what the finished process gave back to us, and may act on its end.
  return memory::space().segment.phase_of(peer.row) != segment::Phase::ready;
}

Peer& peer_in(std::uint32_t row) {
  Peer* peer = engine().by_row[row];
  return peer != nullptr ? *peer : own(transport::peer_at(memory::process_in(row)));
}

void map_peers_ahead() {
  Engine& self = engine();
  if (self.row >= self.job_size || !segment::is_small_job(job_shape())) return;
  // Of the packets of all peers together, and of what comes before them in each region: knobs may make it large.
  constexpr std::uint64_t most_packet_bytes = 1u << 20, most_front_bytes = 256u << 10;
  const segment::Segment& job = memory::space().segment;
  for (std::uint32_t row = 0; row < self.job_size; ++row) {
    if (row == self.row) continue;
    Peer& peer = peer_in(row);
    const segment::ControlPage& control = *peer.control;
    const std::uint64_t begin = job.region(row),
                        lanes = std::min<std::uint64_t>(control.lane_count, first_lanes);
    const std::uint64_t front = control.lanes + lanes * queue::LaneRing<>::bytes(lane_slots) - begin;
    os::map_pages(job.at<std::byte>(begin), std::min(front, most_front_bytes));
    const std::uint64_t packets =
        std::min(control.packet_count * control.packet_bytes, most_packet_bytes / (self.job_size - 1));
    os::map_pages(peer.packets, packets / os::page_size() * os::page_size());
    // Stores that change nothing allocate the pages of the counters.
    for (segment::Traffic* path : self.traffic) path[row].messages.bump_relaxed(0);
    statistics_of(peer)->streaming.store_relaxed(0);
    (void)tuner_of(peer);
  }
}

Tuner& tuner_of(Peer& peer) {
  if (peer.tuner == nullptr)
    peer.tuner = std::make_unique<Tuner>(statistics_of(peer), &estimates_of(peer),
                                         memory::space().segment.header().estimates.basis);
  return *peer.tuner;
}

transport::Peer* connect(object::ProcessId process) {
  if (memory::find_segment_of(process) == nullptr) return nullptr;
  const std::uint32_t row = memory::row_of(process);
  if (row >= engine().by_row.size()) return nullptr;
  // The processes with which the job began have met in start(). One that joins later may not be here yet.
  if (row >= engine().job_size && !memory::space().segment.has_region(row)) return nullptr;
  return &map_peer(row);
}

void count_sent(const Peer& peer, segment::Path path, std::uint64_t bytes) {
  auto& sent = engine().traffic[static_cast<std::size_t>(path)][peer.row];
  sent.messages.bump_relaxed(1);
  sent.bytes.bump_relaxed(bytes);
}

segment::PairStatistics* statistics_of(Peer& peer) {
  Engine& self = engine();
  if (peer.row / 64 < std::size(self.control->with_statistics))
    self.control->with_statistics[peer.row / 64].or_relaxed(std::uint64_t{1} << peer.row % 64);
  return memory::space().segment.at<segment::PairStatistics>(self.control->statistics) + peer.row;
}

void show_stores(Peer& peer, const copy::StorePolicy& stores) {
  if (!peer.lane_open) return; // few messages do not deserve a page of statistics
  segment::PairStatistics& shown = *statistics_of(peer);
  for (bool streaming : {false, true})
    shown.store_cost[streaming].store_relaxed(segment::statistic_of(stores.cost(streaming)));
  shown.streaming.store_relaxed(stores.streaming());
}

const segment::PairEstimates& estimates_of(const Peer& peer) {
  const segment::Segment& job = memory::space().segment;
  // The location of an unbound process is everything that it may use, which says little about its distance.
  auto location = [&job](std::uint32_t row) {
    const auto& entry = job.entry(row);
    return entry.first_cpu < 0 ? segment::Location{} : entry.location;
  };
  auto distance = distance_between(location(engine().row), location(peer.row));
  return job.header().estimates.pair[static_cast<std::size_t>(distance)];
}

} // namespace near::shm
