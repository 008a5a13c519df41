#include "transport/provider.h"

#include "base/checked.h"
#include "base/kill_point.h"
#include "base/knob.h"
#include "base/log.h"
#include "base/text.h"
#include "copy/raw.h"
#include "os/clock.h"
#include "os/futex.h"
#include "os/limits.h"
#include "os/memory.h"
#include "os/peer_memory.h"
#include "transport/polling.h"

#include <algorithm>
#include <bit>
#include <new>
#include <pthread.h>
#include <unistd.h>

namespace near::transport {

using base::Code;
using base::fail;
using base::Level;

namespace {

HandlerFunction handlers[static_cast<int>(InternalHandler::count)] = {};

/// Read through CMA by peers, to learn whether the kernel lets them: in private memory on purpose.
std::uint64_t probe_word;

/// A sleep without a wake-up ends after this time, so that an event without one (a peer that calls
/// MPI_Finalize) is noticed.
constexpr std::uint64_t sleep_limit_ns = 10'000'000;
/// Each further sleep of one wait may take twice as long, up to this: where a thousand ranks share two
/// processors, looking around every 10 ms would use up both.
std::uint64_t longest_sleep_ns() {
  const Engine& self = engine();
  constexpr std::uint64_t ranks_per_core = 8;
  return sleep_limit_ns *
         std::max<std::uint64_t>(1, self.job_size / (ranks_per_core * std::max(1u, self.segment.cores())));
}

std::uint64_t align_to_page(std::uint64_t bytes) { return base::round_up(bytes, os::page_size()); }

void in_forked_child() {
  // The segment is not mapped here (MADV_DONTFORK): MPI is not usable, and nothing of it may be touched.
  engine().running = false;
}

/// Its process is ready, and `needed_reach` was checked. Reads the peer's control page, which costs this
/// process a page of page tables: so only for peers that this process talks to.
[[gnu::cold]] [[gnu::noinline]] Peer& map_peer(std::uint32_t slot) {
  Engine& self = engine();
  if (self.peers.size() == self.peers.capacity()) self.peers.reserve(2 * self.peers.size() + 8);
  Peer& peer = *new Peer; // nothing throws after this
  peer.slot = slot;
  auto& control = self.segment.control(slot);
  peer.control = &control;
  peer.producer =
      queue::Producer<>(self.segment.at<queue::SlotQueue<>>(control.queue), control.queue_slots, self.slot);
  peer.lanes = self.segment.at<queue::LaneRing<>>(control.lanes);
  peer.packets = self.segment.at<std::byte>(control.packets);
  peer.packet_flags = self.segment.at<PacketFlag>(control.packet_flags);
  peer.packet_bytes = control.packet_bytes;
  peer.send.peer = peer.receive.peer = &peer;
  peer.send.doorbell = &control.doorbell;
  peer.send.traffic = self.traffic[static_cast<std::size_t>(segment::Path::inlined)] + slot;
  peer.send.credit =
      queue::CreditAccount<>(self.segment.at<queue::CreditCounter<>>(control.credits) + self.slot);
  peer.receive.released = self.segment.at<queue::CreditCounter<>>(self.control->credits) + slot;
  peer.stores.begin_with(estimates_of(peer).store_cost);
  self.peers.push_back(&peer);
  self.by_slot[slot] = &peer;
  return peer;
}

/// "raise the limit on file sizes (ulimit -f), ", of the limits that make segments small; "" without any.
std::string raise_limits() {
  const bool addresses = os::address_space_limit() != UINT64_MAX, files = os::file_sizes_are_limited();
  if (!addresses && !files) return {};
  return base::format("raise the limit on {}{}{}, ", addresses ? "address space (ulimit -v)" : "",
                      addresses && files ? " and that on " : "", files ? "file sizes (ulimit -f)" : "");
}

/// Lays out, places and reserves this process's region. Nothing of it is visible to others before `ready`.
Result build_region() {
  Engine& self = engine();
  const auto& knobs = base::knobs();
  auto& head = self.segment.header();
  std::uint64_t slots = std::bit_ceil(knobs.queue_slots.number);
  std::uint64_t packet_bytes = segment::packet_bytes();
  auto packets = static_cast<std::uint32_t>(knobs.packets.number);
  if (packets < 2 * PacketPool::reserve || knobs.lanes.number > most_lanes)
    return fail(Code::internal, "the table of knobs allows what the transport cannot do");
  // A segment that a limit made small (ulimit -v, -f) has room for fewer packets, and still for an arena.
  std::uint64_t pipeline_bytes = std::min<std::uint64_t>(knobs.pipeline.number, head.stride / 2);
  auto most_packets =
      static_cast<std::uint32_t>(std::clamp<std::uint64_t>(pipeline_bytes / packet_bytes, packets, 1u << 20));

  segment::Offset begin = self.segment.region(self.slot);
  segment::Offset queue_at = begin + align_to_page(sizeof(segment::ControlPage));
  auto lanes = static_cast<std::uint32_t>(knobs.lanes.number);
  segment::Offset lanes_at = queue_at + align_to_page(queue::SlotQueue<>::bytes(slots));
  segment::Offset credits_at = lanes_at + align_to_page(lanes * queue::LaneRing<>::bytes(lane_slots));
  segment::Offset flags_at =
      credits_at + align_to_page(std::uint64_t{head.slots} * sizeof(queue::CreditCounter<>));
  segment::Offset packets_at = flags_at + align_to_page(most_packets * sizeof(PacketFlag));
  segment::Offset statistics_at = packets_at + most_packets * packet_bytes;
  segment::Offset traffic_at = statistics_at + align_to_page(head.slots * sizeof(segment::PairStatistics));
  segment::Offset blocks_at = traffic_at + align_to_page(segment::traffic_bytes(head.slots));
  segment::Offset arena_at = blocks_at + align_to_page(Blocks::bytes());
  if (arena_at - begin > head.stride)
    return fail(Code::limit,
                "this process's part of the segment is {} KiB of addresses, its queue and packets need {} "
                "KiB; {}lower "
                "NEAR_PACKETS, NEAR_EAGER_LIMIT or NEAR_QUEUE_SLOTS, or give them to mpiexec, which makes "
                "the segment",
                head.stride >> 10, (arena_at - begin) >> 10, raise_limits());

  std::byte* base = self.segment.base();
  int node = os::current_node();
  Result policy = os::prefer_node(base + begin, arena_at - begin, node);
  // Not even where the administrator wants huge pages everywhere: what is reserved here is less than one.
  os::advise_huge_pages(base + begin, head.stride, os::HugePages::never);
  if (!policy.ok()) base::log(Level::debug, "{}", base::failure_text());
  segment::Offset populated_end =
      packets_at + packets * packet_bytes; // the other packets when there is traffic
  NEAR_TRY(os::check_memory(populated_end - begin));
  NEAR_TRY(os::populate(base + begin, populated_end - begin));

  NEAR_KILL_POINT("region-reserved");
  auto* queue = new (base + queue_at) queue::SlotQueue<>;
  for (std::uint64_t i = 1; i < slots; ++i) new (&queue->slots[i]) queue::Slot<>;
  self.lane_count = lanes;
  for (std::uint32_t i = 0; i < lanes; ++i) {
    auto* ring = new (base + lanes_at + i * queue::LaneRing<>::bytes(lane_slots)) queue::LaneRing<>;
    for (std::uint64_t slot = 1; slot < lane_slots; ++slot) new (&ring->slots[slot]) queue::Slot<>;
    self.lanes[i].index = i;
    self.lanes[i].reader.attach(ring, lane_slots);
  }
  auto* credits = self.segment.at<queue::CreditCounter<>>(credits_at);
  for (std::uint32_t i = 0; i < head.slots; ++i) new (credits + i) queue::CreditCounter<>;
  auto* flags = self.segment.at<PacketFlag>(flags_at);
  for (std::uint32_t i = 0; i < most_packets; ++i) new (flags + i) PacketFlag;
  // Nothing to build: pages of zeros, made by the first message that is counted there.
  for (std::size_t path = 0; path < segment::paths; ++path)
    self.traffic[path] = self.segment.at<segment::Traffic>(traffic_at) + path * head.slots;
  self.packets.build(base + packets_at, flags, packets, most_packets, packet_bytes);
  self.eager_limit = std::max<std::uint64_t>(knobs.eager_limit.number, inline_bytes);
  fast_path.eager_limit = self.eager_limit;
  self.kept.build();
  auto* control = new (base + begin) segment::ControlPage{};
  control->version = segment::layout_version;
  control->pid = static_cast<std::uint32_t>(getpid());
  control->queue = queue_at;
  control->lanes = lanes_at;
  control->credits = credits_at;
  control->packet_flags = flags_at;
  control->packets = packets_at;
  control->statistics = statistics_at;
  control->traffic = traffic_at;
  control->blocks = blocks_at;
  control->arena = arena_at;
  control->queue_slots = slots;
  control->lane_count = lanes;
  control->packet_count = most_packets;
  control->packet_bytes = packet_bytes;
  control->arena_bytes = begin + head.stride - arena_at;
  probe_word = static_cast<std::uint64_t>(getpid()) * 0x9e3779b97f4a7c15u ^ os::monotonic_ns();
  control->probe_address = reinterpret_cast<std::uint64_t>(&probe_word);
  control->probe_value = probe_word;
  NEAR_KILL_POINT("region-filled");
  control->magic = segment::magic;
  self.control = control;
  self.blocks.build(self.segment.at<segment::Block>(blocks_at), &control->block_count);
  self.queue.attach(queue, slots);
  return {};
}

/// NEAR_COPY must name a way of large messages.
Result check_choice_of_copy() {
  std::vector<std::string_view> ways = {"auto"};
  for (const Provider& provider : ladder())
    if (provider.protocol != Protocol::count) ways.emplace_back(provider.name);
  const std::string& choice = base::knobs().copy.text;
  if (std::find(ways.begin(), ways.end(), choice) != ways.end()) return {};
  std::string list;
  for (auto way : ways) list += (list.empty() ? "" : way == ways.back() ? " or " : ", ") + std::string(way);
  return fail(Code::invalid, "NEAR_COPY={}: expected {}{}", choice, list, base::did_you_mean(choice, ways));
}

/// NEAR_STATS: one line of what this process sent, and how it received.
void report_traffic() {
  const auto& counters = engine().control->counters;
  std::string text = "sent";
  for (std::size_t path = 0; path < segment::paths; ++path) {
    auto sent = own_traffic(static_cast<segment::Path>(path));
    text += base::format("{} {}: {} messages, {} bytes", path == 0 ? "" : ";",
                         segment::path_name(static_cast<segment::Path>(path)), sent.messages, sent.bytes);
  }
  text += base::format("; received {} unexpected; slept {} times", counters.unexpected.load_relaxed(),
                       counters.sleeps.load_relaxed());
  base::write_line(Level::note, text);
}

/// The arenas, once every process has said how much of the segment it has mapped.
void open_arenas() {
  Engine& self = engine();
  segment::Offset region = self.segment.region(self.slot), begin = self.control->arena;
  std::uint64_t reach = self.segment.header().reach.load_relaxed();
  segment::Offset end = region + std::min<std::uint64_t>(reach, self.segment.stride());
  self.arena.build(self.segment.base() + begin, end > begin ? end - begin : 0, os::page_size(), false);
  if (reach != segment::everything) return;
  if (self.segment.far_stride() != 0) {
    std::byte* far = self.segment.base() + self.segment.far_region(self.slot);
    os::advise_huge_pages(far, self.segment.far_stride(), os::HugePages::never); // as in build_region
    self.far_arena.build(far, self.segment.far_stride(), os::page_size(), false);
  }
  if (self.segment.huge_page_bytes() != 0)
    self.reserved_arena.build(self.segment.base() + self.segment.huge_region(self.slot),
                              self.segment.huge_stride(), self.segment.huge_page_bytes(), true);
}

/// Publishes this process and waits for the others of the job.
Result meet() {
  Engine& self = engine();
  auto& head = self.segment.header();
  if (!os::register_for_barrier()) head.fences.store_relaxed(1);
  const std::uint64_t front = self.control->arena - self.segment.region(self.slot);
  std::uint64_t largest = head.largest_front.load_relaxed();
  while (largest < front && !head.largest_front.cas_relaxed(largest, front)) {}
  NEAR_KILL_POINT("init-unready");
  // SYNC: rank-phase. Whoever sees `ready` sees the region's layout.
  self.segment.entry(self.slot).phase.store_release(static_cast<std::uint32_t>(segment::Phase::ready));
  NEAR_KILL_POINT("init-uncounted");
  // SYNC: all-ready. Release: our region is laid out before we are counted.
  const std::uint32_t before = head.ready.add_acq_rel(1);
  NEAR_KILL_POINT("init-counted");
  // The last one wakes all others. Had each of them done so, a job of a thousand would begin with a million
  // wake-ups.
  if (before + 1 >= self.job_size) os::futex_wake_all(head.ready.address());
  for (;;) {
    // SYNC: all-ready. Acquire: the regions of all that are counted are laid out, for map_peer().
    std::uint32_t ready = head.ready.load_acquire();
    // Nothing wakes us when `held` is cleared: the sleep's limit ends the wait.
    if (ready >= self.job_size && head.held.load_relaxed() == 0) break;
    os::futex_wait(head.ready.address(), ready, sleep_limit_ns * (1 + self.job_size / 64));
  }
  NEAR_KILL_POINT("init-met");
  self.fences = head.fences.load_relaxed() != 0;
  open_arenas();
  NEAR_TRY(reserve_rts());
  // What map_peer() will find, of all processes of the job.
  const std::uint64_t all_fronts = head.largest_front.load_relaxed();
  if (all_fronts > self.segment.reach())
    return fail(
        Code::limit,
        "a process of this job has {} KiB of queue and packets, of which this process can map {} KiB: "
        "lower NEAR_PACKETS, NEAR_EAGER_LIMIT or NEAR_QUEUE_SLOTS, and give them to all ranks alike",
        all_fronts >> 10, self.segment.reach() >> 10);
  return {};
}

[[gnu::always_inline]] inline void dispatch(Peer& from, const MessageHeader& header) {
  if (header.sequence != from.receive.expected_sequence) [[unlikely]]
    base::log(Level::error,
              "message {} of process {} arrived where message {} was expected: this is a defect of NearMPI",
              header.sequence, from.slot, from.receive.expected_sequence);
  from.receive.expected_sequence = header.sequence + 1;
  from.receive.whole = header.handler == static_cast<std::uint8_t>(Handler::p2p_eager);
  Arrival arrival{&from, header.envelope, header.payload,
                  std::min<std::uint64_t>(header.envelope.bytes, inline_bytes), 0};
  if (header.in_packet != 0) {
    const auto& reference = *reinterpret_cast<const PacketReference*>(header.payload);
    arrival.payload = from.packets + reference.packet * from.packet_bytes;
    arrival.payload_bytes = reference.bytes;
    arrival.packet = packet_of(reference);
    handlers[header.handler](arrival);
    if (arrival.packet != 0) give_back_packet(from, arrival.packet);
    return;
  }
  handlers[header.handler](arrival);
}

[[gnu::always_inline]] inline bool take_from_lane(LaneIn& lane) {
  const std::byte* body = lane.reader.front();
  if (body == nullptr) return false;
  dispatch(*lane.from, *reinterpret_cast<const MessageHeader*>(body));
  lane.reader.pop();
  if (lane.from == nullptr) [[unlikely]]
    lane_is_free(lane);
  return true;
}

/// `from` came back from its lane to the queue, and what it left there comes first.
[[gnu::cold]] [[gnu::noinline]] void drain_lane(const Peer& from) {
  while (from.lane_in != nullptr && take_from_lane(*from.lane_in)) {}
}

bool take_from_queue() {
  Engine& self = engine();
  // SYNC: rank-phase. Acquire: a slot that the dead process committed is seen as committed from here on.
  auto is_dead = [&self](std::uint32_t slot) {
    return self.segment.entry(slot).phase.load_acquire() == static_cast<std::uint32_t>(segment::Phase::dead);
  };
  auto entry = self.queue.front(is_dead);
  if (entry.body == nullptr) return false;
  Peer& from = peer_in(entry.claimer);
  const auto& header = *reinterpret_cast<const MessageHeader*>(entry.body);
  if (from.lane_in != nullptr && header.sequence != from.receive.expected_sequence) [[unlikely]]
    drain_lane(from);
  dispatch(from, header);
  self.queue.pop();
  return true;
}

queue::Claim<> claim_channel(Peer& peer) {
  if (!peer.lane_open) return peer.producer.claim();
  stop_fast_sends(peer);
  return peer.send.lane.claim();
}

void commit(Peer& peer, queue::Claim<>&& claim) {
  header_of(claim).sequence = peer.send.next_sequence++;
  claim.commit();
  auto& bell = peer.control->doorbell;
  DoorbellCalls::ring_if_sleeping(bell.sleeping, bell.bell, engine().fences);
}

void send_header(Peer& peer, queue::Claim<>&& claim, const MessageHeader& header) {
  header_of(claim) = header;
  commit(peer, std::move(claim));
  // Before anything else is sent: it belongs into the other channel.
  if (header.handler >= static_cast<std::uint8_t>(InternalHandler::lane_switch)) marker_sent(peer, header);
  if (!peer.lane_open) count_queued(peer);
}

/// Sends what waits for this peer's slots, as far as there are any.
bool flush(Peer& peer) {
  bool moved = false;
  while (!peer.pending.empty()) {
    auto claim = claim_channel(peer);
    if (!claim) break;
    // Off the list first: sending it may send more, and come here again.
    PendingMessage message = peer.pending.front();
    peer.pending.pop_front();
    send_header(peer, std::move(claim), message.header);
    NEAR_KILL_POINT("waiting-sent");
    if (message.waiter != nullptr) message.waiter->done(*message.waiter, MPI_SUCCESS);
    moved = true;
  }
  return moved;
}

/// What waits for a slot of a process that has finished waits for ever; whoever sent it may go on.
[[gnu::cold]] bool give_up_waiting(Peer& peer) {
  std::list<PendingMessage> dropped;
  dropped.swap(peer.pending);
  for (const PendingMessage& message : dropped) {
    if (message.header.in_packet != 0) {
      const auto& reference = *reinterpret_cast<const PacketReference*>(message.header.payload);
      engine().packets.put_back({reference.packet, reference.generation});
    }
    if (message.waiter != nullptr) message.waiter->done(*message.waiter, MPI_SUCCESS);
  }
  return true;
}

bool flush_pending() {
  Engine& self = engine();
  bool moved = false;
  for (std::size_t i = 0; i < self.pending_peers.size();) {
    Peer& peer = *self.pending_peers[i];
    moved |= flush(peer);
    if (!peer.pending.empty() && has_left(peer)) moved |= give_up_waiting(peer);
    if (peer.pending.empty()) {
      peer.on_pending_list = false;
      self.pending_peers[i] = self.pending_peers.back();
      self.pending_peers.pop_back();
    } else {
      ++i;
    }
  }
  return moved;
}

/// Whether anything waits for a slot of a peer's queue or lane, for one of our packets, or for a lock.
bool waits_for_flow_control() {
  const Engine& self = engine();
  return !self.pending_peers.empty() || !self.pipeline_senders.empty() || !self.awaited_locks.empty();
}

/// Registers this process with everything that it waits for. Whatever is freed from here on wakes us, and
/// whatever was freed before is found by our next check.
[[gnu::cold]] void register_as_waiter() {
  Engine& self = engine();
  std::uint64_t us = std::uint64_t{1} << self.slot % 64;
  for (const Peer* peer : self.pending_peers)
    FlowControlCalls::add_waiter(peer->control->doorbell.slot_waiters, us);
  for (const Transfer* transfer : self.pipeline_senders)
    FlowControlCalls::add_waiter(transfer->peer->control->doorbell.slot_waiters, us);
  FlowControlCalls::add_waiter(self.control->doorbell.packet_waiters, us);
  for (auto* waiters : self.awaited_locks) FlowControlCalls::add_waiter(*waiters, us);
  FlowControlCalls::before_recheck(self.fences);
}

/// Raises the bells of the processes that wait for a slot here.
[[gnu::cold]] void wake_waiting_processes(std::uint64_t asked) {
  Engine& self = engine();
  for (; asked != 0; asked &= asked - 1)
    for (std::uint32_t slot = std::countr_zero(asked); slot < self.job_size; slot += 64)
      DoorbellCalls::announce(self.segment.control(slot).doorbell.bell); // also if it is not mapped here
}

/// The look before sleeping, without the engine lock.
bool has_work() {
  Engine& self = engine();
  for (std::uint32_t i = 0; i < self.lane_count; ++i)
    if (self.lanes[i].open.load_relaxed() != 0 && self.lanes[i].reader.has_message()) return true;
  return self.queue.has_message();
}

} // namespace

void DoorbellSystem::wait(std::uint32_t* word, std::uint32_t expected, std::uint64_t timeout_ns) {
  os::futex_wait(word, expected, timeout_ns);
}
void DoorbellSystem::wake(std::uint32_t* word) { os::futex_wake_all(word); }
void DoorbellSystem::barrier_all() { os::barrier_all_registered(); }

object::Immortal<Engine> engine_storage;

bool has_left(const Peer& peer) {
  // SYNC: rank-phase. Acquire: what the finished process gave back to us is seen before we act on it.
  auto phase = engine().segment.entry(peer.slot).phase.load_acquire();
  return phase != static_cast<std::uint32_t>(segment::Phase::ready);
}

void set_handler(Handler handler, HandlerFunction function) {
  handlers[static_cast<int>(handler)] = function;
}

Result start(const Job& job) {
  Engine& self = engine();
  if (self.running) return {};
  handlers[static_cast<int>(InternalHandler::fin)] = handle_fin;
  handlers[static_cast<int>(InternalHandler::cts)] = handle_cts;
  handlers[static_cast<int>(InternalHandler::fragment)] = handle_fragment;
  handlers[static_cast<int>(InternalHandler::prefix_fragment)] = handle_prefix_fragment;
  handlers[static_cast<int>(InternalHandler::cooperate)] = handle_cooperate;
  handlers[static_cast<int>(InternalHandler::last_call)] = handle_last_call;
  handlers[static_cast<int>(InternalHandler::closed)] = handle_closed;
  handlers[static_cast<int>(InternalHandler::lane_request)] = handle_lane_request;
  handlers[static_cast<int>(InternalHandler::lane_granted)] = handle_lane_granted;
  handlers[static_cast<int>(InternalHandler::lane_switch)] = handle_lane_switch;
  handlers[static_cast<int>(InternalHandler::lane_recall)] = handle_lane_recall;
  handlers[static_cast<int>(InternalHandler::lane_return)] = handle_lane_return;
  if (job.segment_descriptor < 0) {
    NEAR_TRY(
        self.segment.create(1, 1, static_cast<std::uint32_t>(std::max(1l, sysconf(_SC_NPROCESSORS_ONLN)))));
  } else {
    NEAR_TRY(self.segment.attach(job.segment_descriptor, true));
    self.segment.close_descriptor(); // of huge pages; the other one is the caller's
    if (job.slot >= self.segment.header().slots)
      return fail(Code::invalid, "slot {} is outside the job's {} slots", job.slot,
                  self.segment.header().slots);
    // A program that this rank starts may have got a copy of the rank's variables: it must not lay the region
    // out a second time under the peers' hands.
    std::uint32_t owner = 0;
    if (!self.segment.entry(job.slot).claimed.cas_relaxed(owner, static_cast<std::uint32_t>(getpid())))
      return fail(
          Code::refused,
          "rank {} of this job is process {}, and a rank can be one MPI program only; one that it starts "
          "is a job of its own if the NEAR_BOOT_ variables are unset",
          job.slot, owner);
    NEAR_KILL_POINT("segment-mapped");
    os::admit_descendants_of(static_cast<std::int32_t>(self.segment.header().launcher));
  }
  NEAR_TRY(check_choice_of_copy()); // in the segment the ranks agree on who complains
  self.slot = job.slot;
  self.job_size = job.size;
  const auto& head = self.segment.header();
  const auto& knobs = base::knobs();
  constexpr std::uint64_t for_ever = std::uint64_t{1} << 62;
  self.spin_ns = knobs.wait.text == "spin"    ? for_ever
                 : knobs.wait.text == "sleep" ? 0
                 : knobs.spin.automatic       ? 100'000
                                              : knobs.spin.number * 1000;
  self.credit_limit = static_cast<std::uint32_t>(knobs.credits.number);
  self.by_slot.assign(head.slots, &self.no_peer);
  object::unknown_process = &self.no_peer;
  NEAR_TRY(build_region());
  static const int registered = pthread_atfork(nullptr, nullptr, in_forked_child);
  (void)registered;
  NEAR_TRY(meet());
  self.oversubscribed = shares_processors() || shares_its_processors();
  if (self.oversubscribed) fast_path.polls = 1;
  self.running = true;
  return {};
}

void stop() {
  Engine& self = engine();
  if (!self.running) return;
  NEAR_KILL_POINT("finalize-entered");
  receive_no_more();
  auto drained = [](void*) {
    Engine& here = engine();
    std::erase_if(here.pipeline_senders, [](Transfer* transfer) { return has_left(*transfer->peer); });
    return here.pending_peers.empty() && here.pipeline_senders.empty() && sends_settled();
  };
  wait_until(drained, nullptr);
  if (base::knobs().stats.number != 0) report_traffic();
  NEAR_KILL_POINT("finalize-drained");
  // SYNC: rank-phase. Whoever sees `finalized` sees the last messages that this process committed.
  self.segment.entry(self.slot).phase.store_release(static_cast<std::uint32_t>(segment::Phase::finalized));
  NEAR_KILL_POINT("finalize-told");
}

bool running() { return engine().running; }
bool shares_processors() {
  const auto& head = engine().segment.header();
  return head.cores < head.job_size;
}
bool polls_should_yield() { return engine().oversubscribed; }
const segment::Segment& job_segment() { return engine().segment; }

segment::StateLine& own_state_line() {
  static base::Atomic<std::uint32_t> threads{0};
  thread_local std::uint32_t line = threads.add_relaxed(1);
  return engine().control->state[std::min<std::uint32_t>(line, segment::state_lines - 1)];
}

Peer& peer_in(std::uint32_t slot) {
  Peer* peer = engine().by_slot[slot]->send.peer;
  return peer != nullptr ? *peer : map_peer(slot);
}

Peer& peer_at(object::Address address) { return peer_in(address.slot); }

Peer& peer_of(const object::Communicator& communicator, int rank) {
  object::Process*& known = communicator.processes[static_cast<std::size_t>(rank)];
  Peer* peer = static_cast<PeerStates*>(known)->send.peer;
  if (peer != nullptr) [[likely]]
    return *peer;
  peer = &peer_in(communicator.addresses[rank].slot);
  known = peer;
  return *peer;
}

void find_peer(const object::Communicator& communicator, int rank) {
  communicator.processes[static_cast<std::size_t>(rank)] =
      engine().by_slot[communicator.addresses[rank].slot];
}

void count_sent(const Peer& peer, segment::Path path, std::uint64_t bytes) {
  auto& sent = engine().traffic[static_cast<std::size_t>(path)][peer.slot];
  sent.messages.bump_relaxed(1);
  sent.bytes.bump_relaxed(bytes);
}

segment::Amount own_traffic(segment::Path path) {
  const Engine& self = engine();
  // Of our own table a page may come into being by that: where it belongs, and only when somebody asks.
  segment::Amount sum;
  for (std::size_t slot = 0; slot < self.by_slot.size(); ++slot) {
    const auto& sent = self.traffic[static_cast<std::size_t>(path)][slot];
    sum += {sent.messages.load_relaxed(), sent.bytes.load_relaxed()};
  }
  return sum;
}

void count_unexpected() { engine().control->counters.unexpected.bump_relaxed(1); }

segment::Place own_place() {
  return running() ? engine().segment.entry(engine().slot).place : segment::Place{};
}

segment::NearestNodes nearest_nodes() {
  return running() ? engine().segment.entry(engine().slot).nearest : segment::NearestNodes{};
}

segment::PairStatistics* statistics_of(Peer& peer) {
  Engine& self = engine();
  if (peer.slot / 64 < std::size(self.control->with_statistics))
    self.control->with_statistics[peer.slot / 64].or_relaxed(std::uint64_t{1} << peer.slot % 64);
  return self.segment.at<segment::PairStatistics>(self.control->statistics) + peer.slot;
}

const segment::PairEstimates& estimates_of(const Peer& peer) {
  const segment::Segment& job = engine().segment;
  // Of one that is not bound the place is all that it may use, which says little of how far it is.
  auto place = [&job](std::uint32_t slot) {
    const auto& entry = job.entry(slot);
    return entry.first_cpu < 0 ? segment::Place{} : entry.place;
  };
  auto distance = distance_between(place(engine().slot), place(peer.slot));
  return job.header().estimates.pair[static_cast<std::size_t>(distance)];
}

queue::Claim<> claim_slot(Peer& peer) {
  if (!peer.pending.empty()) [[unlikely]] {
    flush(peer);
    if (!peer.pending.empty()) return {};
  }
  return claim_channel(peer);
}

void send_claimed(Peer& peer, queue::Claim<>&& claim) {
  commit(peer, std::move(claim));
  if (!peer.lane_open) count_queued(peer);
}

// What a look finds stays true while it lasts: the slots are this process's alone, credits for them are paid,
// and whatever makes earlier messages wait (post, hold_back) goes through stop_fast_sends.
void allow_fast_sends(SendState& send_state) {
  Engine& self = engine();
  if (send_state.peer == nullptr) return; // not mapped yet
  const Peer& peer = *send_state.peer;
  if (!peer.lane_open || self.fences || peer.held || !peer.pending.empty() ||
      !send_state.credit.available(self.credit_limit))
    return;
  send_state.credit.spend(send_state.lane.look(send_state.credit.left(self.credit_limit)));
}

void more_to_do(SendState& send_state) {
  DoorbellCalls::ring_if_sleeping(send_state.doorbell->sleeping, send_state.doorbell->bell, engine().fences);
  if (send_state.lane.left() == 0) allow_fast_sends(send_state);
}

void stop_fast_sends(Peer& peer) { peer.send.credit.take_back(peer.send.lane.give_up_left()); }

void hold_back(Peer& peer, bool held) {
  stop_fast_sends(peer);
  peer.held = held;
}

void post(Peer& peer, const MessageHeader& header) {
  if (auto claim = claim_slot(peer)) {
    send_header(peer, std::move(claim), header);
    return;
  }
  wait_for_slot(peer, header);
}

void wait_for_slot(Peer& peer, const MessageHeader& header, Transfer* waiter) {
  peer.pending.push_back({header, waiter});
  NEAR_KILL_POINT("message-waits");
  if (!peer.on_pending_list) {
    peer.on_pending_list = true;
    engine().pending_peers.push_back(&peer);
    engine().deferred_work = true;
  }
}

void post_control(Peer& peer, std::uint8_t handler, const Envelope& envelope, const void* payload,
                  std::size_t bytes) {
  MessageHeader header{};
  header.envelope = envelope;
  header.handler = handler;
  copy::raw(header.payload, payload, bytes);
  post(peer, header);
}

void keep_packet(Arrival& arrival) { arrival.packet = 0; }

void give_back_packet(Peer& owner, std::uint64_t packet) {
  NEAR_KILL_POINT("packet-used");
  std::uint64_t reference = packet - 1;
  owner.packet_flags[static_cast<std::uint32_t>(reference)].give_back(
      static_cast<std::uint8_t>(reference >> 32));
  auto& doorbell = owner.control->doorbell;
  FlowControlCalls::wake_waiters(doorbell.packet_waiters, engine().fences,
                                 [&](std::uint64_t) { DoorbellCalls::announce(doorbell.bell); });
}

// Call after taking messages: nothing else wakes a sender that sleeps until a slot is free.
void wake_slot_waiters() {
  Engine& self = engine();
  FlowControlCalls::wake_waiters(self.control->doorbell.slot_waiters, self.fences, wake_waiting_processes);
}

[[gnu::noinline]] bool make_progress() {
  Engine& self = engine();
  bool moved = false;
  // A bounded number of messages of each channel, so that a flooding peer can keep us neither from the others
  // nor from our own sends.
  for (std::uint32_t open = self.open_lanes; open != 0; open &= open - 1) {
    LaneIn& lane = self.lanes[std::countr_zero(open)];
    for (int budget = 16; budget > 0 && lane.open.load_relaxed() != 0 && take_from_lane(lane); --budget)
      moved = true;
  }
  for (int budget = 64; budget > 0 && take_from_queue(); --budget) moved = true;
  if (moved) wake_slot_waiters();
  if (self.deferred_work) [[unlikely]] {
    if (!self.pending_peers.empty()) moved |= flush_pending();
    if (!self.pipeline_senders.empty()) moved |= advance_pipeline_senders();
    if (!self.cooperative_sends.empty()) moved |= push_chunks();
    self.deferred_work =
        !self.pending_peers.empty() || !self.pipeline_senders.empty() || !self.cooperative_sends.empty();
  }
  return moved;
}

bool is_idle() {
  const Engine& self = engine();
  // Most looks of somebody who waits find nothing: a few loads, whatever the number of peers.
  return self.open_lanes == 0 && !self.deferred_work && !self.queue.has_entry();
}

bool progress() { return !is_idle() && make_progress(); }

// ---- waiting ----

namespace {

/// What the engine lock needs to know of its holder; all under the lock but `owner`.
struct LockState {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  base::Atomic<std::uintptr_t> owner{0};
  int depth = 0;
};
LockState& lock_state() {
  static LockState& state = *new LockState;
  return state;
}
std::uintptr_t this_thread() {
  thread_local char mark;
  return reinterpret_cast<std::uintptr_t>(&mark);
}

/// Gives the lock up for a while, however often this thread holds it.
class LockPause {
public:
  LockPause() {
    LockState& state = lock_state();
    if (state.owner.load_relaxed() != this_thread()) return;
    depth_ = state.depth;
    state.depth = 0;
    state.owner.store_relaxed(0);
    pthread_mutex_unlock(&state.mutex);
  }
  ~LockPause() {
    if (depth_ == 0) return;
    LockState& state = lock_state();
    pthread_mutex_lock(&state.mutex);
    state.owner.store_relaxed(this_thread());
    state.depth = depth_;
  }
  LockPause(const LockPause&) = delete;
  LockPause& operator=(const LockPause&) = delete;

private:
  int depth_ = 0;
};

/// With more ranks than processors: looks of a wait, each followed by a yield, before it prepares to sleep.
constexpr int turns = 16;

/// The time at which a wait began, for tools, while it lasts.
class WaitTime {
public:
  explicit WaitTime(std::uint64_t since) : line_(own_state_line()) { line_.since_ns.store_relaxed(since); }
  ~WaitTime() { line_.since_ns.store_relaxed(0); }
  WaitTime(const WaitTime&) = delete;
  WaitTime& operator=(const WaitTime&) = delete;

private:
  segment::StateLine& line_;
};

// Threads that wait at the same time (MPI_THREAD_MULTIPLE): after a few looks one of them becomes the leader.
// It keeps looking for messages, and sleeps on the doorbell. The others are followers: each sleeps on a word
// of its own. After progress the leader finds the followers whose conditions may be true, and wakes only
// those. So a message wakes the thread that waits for it, and no other thread takes the engine lock.
//
// No wake-up is lost, because everything but the sleep itself happens under the engine lock:
// - A follower clears its word, tests its own condition, and sees that there is a leader; then it releases
//   the lock to sleep. Whatever makes its condition true after that does so under the lock, and is followed
//   by tell_followers(), which sets the word: so futex_wait() ends, or returns at once.
// - However the leader's wait ends, ~Lead runs. It wakes a sleeping follower if there is one; a follower that
//   is awake sees before it sleeps that there is no leader. It becomes the leader, or its wait ends and
//   ~Follower wakes the next one.
// - Before it sleeps, the leader asks for room on behalf of all. A follower that begins to wait later asks
//   for itself. The answer rings the doorbell, where the leader sleeps.
// - A thread that makes progress without being the leader calls wake_waiting_threads(), which tells followers
//   and leader.
// Events that nobody announces (time that passes, a peer's death) are noticed by the leader after each of its
// sleeps, as by a thread that waits alone.
//
// A condition may take things, or fail with a text that belongs to its thread: so only its own thread tests
// it. The leader calls `look`, which says whether the condition is worth testing; a thread without a look is
// woken after every event. Nothing here is a cancellation point. A child made by fork() never gets here,
// since MPI refuses its calls.
class Follower;

/// All under the engine lock. The leader is named by its thread, because a callback of the leader may wait
/// again.
struct WaitingThreads {
  std::uint32_t count = 0;   ///< leader and followers
  std::uintptr_t leader = 0; ///< 0: nobody waits, or a follower is awake that sees it
  bool leader_sleeps = false;
  std::uint32_t events = 0; ///< calls of wake_waiting_threads(): the leader looks again before it sleeps
  Follower* first = nullptr;
  Follower* last = nullptr;
};
WaitingThreads waiting;

class Follower {
public:
  Follower(bool (*look)(void*), void* argument) : look_(look), argument_(argument), previous_(waiting.last) {
    (previous_ != nullptr ? previous_->next_ : waiting.first) = this;
    waiting.last = this;
    ++waiting.count;
  }
  ~Follower() {
    --waiting.count;
    (previous_ != nullptr ? previous_->next_ : waiting.first) = next_;
    (next_ != nullptr ? next_->previous_ : waiting.last) = previous_;
    if (waiting.leader == 0) wake_one();
  }
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

  /// A wake() after this ends the next sleep().
  void listen() { woken_.store_relaxed(0); }
  void sleep() {
    asleep_ = true;
    {
      LockPause unlocked;
      os::futex_wait(woken_.address(), 0, sleep_limit_ns);
    }
    asleep_ = false;
  }
  /// Wakes the sleeping follower that has waited longest.
  static void wake_one() {
    for (Follower* each = waiting.first; each != nullptr; each = each->next_)
      if (each->asleep_) return each->wake();
  }
  [[gnu::noinline]] static void wake_those_that_may_be_done() {
    for (Follower* each = waiting.first; each != nullptr; each = each->next_)
      if (each->woken_.load_relaxed() == 0 && (each->look_ == nullptr || each->look_(each->argument_)))
        each->wake();
  }

private:
  void wake() {
    woken_.store_relaxed(1);
    if (!asleep_) return;
    asleep_ = false; // it takes the lock as soon as it can
    os::futex_wake_all(woken_.address());
  }

  bool (*look_)(void*);
  void* argument_;
  Follower *previous_, *next_ = nullptr;
  base::Atomic<std::uint32_t> woken_{0}; ///< changed under the engine lock, which orders all else
  bool asleep_ = false;
};

void tell_followers() {
  if (waiting.first != nullptr) [[unlikely]]
    Follower::wake_those_that_may_be_done();
}

/// Waits while another thread leads. Returns true if done() was true, false if this thread has become the
/// leader.
bool follow(bool (*done)(void*), void* argument, bool (*look)(void*)) {
  const WaitTime time(os::monotonic_ns());
  Follower self(look, argument);
  for (;;) {
    self.listen();
    if (done(argument)) return true;
    if (waiting.leader_sleeps && waits_for_flow_control()) {
      register_as_waiter();
      if (progress()) wake_waiting_threads();
      if (done(argument)) return true; // a lock is no message
    }
    if (waiting.leader == 0) break;
    self.sleep();
  }
  waiting.leader = this_thread();
  return false;
}

/// This thread is the leader as long as this object lives. `nested`: it is the leader already and waits
/// within a callback, so it remains the leader afterwards.
class Lead {
public:
  explicit Lead(bool nested) : nested_(nested) {
    waiting.leader = this_thread();
    ++waiting.count;
  }
  ~Lead() {
    --waiting.count;
    if (nested_) return;
    waiting.leader = 0;
    Follower::wake_one();
  }
  Lead(const Lead&) = delete;
  Lead& operator=(const Lead&) = delete;

private:
  bool nested_;
};

} // namespace

void wake_waiting_threads() {
  if (waiting.count == 0) [[likely]]
    return;
  tell_followers();
  ++waiting.events;
  auto& doorbell = engine().control->doorbell;
  if (waiting.leader_sleeps) DoorbellCalls::ring(doorbell.sleeping, doorbell.bell);
}

void give_way() {
  LockPause unlocked;
  os::yield();
}

void EngineLock::enter() {
  LockState& state = lock_state();
  if (state.owner.load_relaxed() != this_thread()) {
    pthread_mutex_lock(&state.mutex);
    state.owner.store_relaxed(this_thread());
  }
  ++state.depth;
}

void EngineLock::leave() {
  LockState& state = lock_state();
  if (--state.depth != 0) return;
  state.owner.store_relaxed(0);
  pthread_mutex_unlock(&state.mutex);
}

namespace {

/// The first looks of a wait, before anything is set up for a longer one; true if done() was true. Often the
/// reply is here before a clock could be read. With more ranks than processors its sender may need this
/// processor: it gets it at once, a few times.
[[gnu::always_inline]] inline bool poll_for_a_while(bool (*done)(void*), void* argument) {
  const Engine& self = engine();
  for (int poll = self.oversubscribed ? turns : fast_path.polls; poll > 0; --poll) {
    bool moved = progress();
    if (moved) wake_waiting_threads();
    if ((moved || self.oversubscribed) && done(argument)) return true;
    if (self.oversubscribed && self.spin_ns != 0) {
      LockPause unlocked;
      os::yield();
    } else {
      base::cpu_relax();
    }
  }
  return false;
}

/// Looks for messages until done(argument), and sleeps in between.
void poll_and_sleep(bool (*done)(void*), void* argument) {
  Engine& self = engine();
  std::uint64_t since = os::monotonic_ns();
  const WaitTime time(since);
  std::uint64_t spin_until = since + self.spin_ns, sleep_ns = sleep_limit_ns;
  for (;;) {
    auto& bell = self.control->doorbell;
    // Before the looks below: what they miss, and what is announced by a ring alone, ends the sleep.
    std::uint32_t rung = DoorbellCalls::rung(bell.bell);
    std::uint32_t events = waiting.events;
    if (done(argument)) return;
    bool moved = progress(), spins = os::monotonic_ns() < spin_until;
    if (!moved && !spins && waits_for_flow_control()) {
      register_as_waiter();
      moved = progress();
      if (!moved && done(argument)) return; // a lock is no message
      tell_followers();
    }
    if (moved) {
      tell_followers();
      spin_until = os::monotonic_ns() + self.spin_ns;
      sleep_ns = sleep_limit_ns;
      continue;
    }
    if (!spins) {
      if (waiting.events != events) continue;
      waiting.leader_sleeps = true;
      auto& sleeps = self.control->counters.sleeps;
      sleeps.store_relaxed(sleeps.load_relaxed() + 1);
    }
    {
      LockPause unlocked;
      if (spins) {
        // With more ranks than processors, whoever we wait for may be runnable right here: a yield costs less
        // than a sleep with its barrier and wake-up, and ends like one when nobody else wants the processor.
        if (self.oversubscribed)
          os::yield();
        else
          for (int i = 0; i < 16; ++i) base::cpu_relax();
        continue;
      }
      DoorbellCalls::sleep(bell.sleeping, bell.bell, rung, self.fences, sleep_ns, has_work);
    }
    sleep_ns = std::min(2 * sleep_ns, longest_sleep_ns());
    waiting.leader_sleeps = false;
    DoorbellCalls::awake(bell.sleeping); // nobody else sleeps here
    tell_followers();                    // a ring may have been for one of them
  }
}

[[gnu::noinline]] void wait_among_threads(bool (*done)(void*), void* argument, bool (*look)(void*)) {
  const bool nested = waiting.leader == this_thread();
  if (waiting.leader != 0 && !nested && follow(done, argument, look)) return;
  const Lead lead(nested);
  poll_and_sleep(done, argument);
}

} // namespace

void wait_until(bool (*done)(void*), void* argument, bool (*look)(void*)) {
  if (done(argument) || poll_for_a_while(done, argument)) return;
  if (EngineLock::threads_allowed())
    wait_among_threads(done, argument, look);
  else
    poll_and_sleep(done, argument);
}

void wait_for_lock(base::Atomic<std::uint64_t>& waiters, bool (*attempt)(void*), void* argument) {
  if (attempt(argument)) return;
  auto& list = engine().awaited_locks;
  list.push_back(&waiters);
  wait_until(attempt, argument);
  list.erase(std::find(list.begin(), list.end(), &waiters));
}

void lock_was_left(base::Atomic<std::uint64_t>& waiters) {
  FlowControlCalls::wake_waiters(waiters, engine().fences, wake_waiting_processes);
}

} // namespace near::transport
