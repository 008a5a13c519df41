// Rendezvous: the sender announces a message, and the receiver fetches it by one of the providers.
//
//   sender                            descriptor word               receiver
//   send_rts: (g, announced)  ------- p2p_rts ------------------->  matched against a receive
//                             (g, announced) -> (g, matched)        accept: compare-and-swap
//   cancel_rts: (g, announced) -> (g, cancelled), local             accept fails: tries another message
//             <--------------- FIN (pulled) or CTS (pipelined) ---
//                                                               no slot for a FIN: leave_fin
//   retire_rts: (g + 1, free)
#include "shm/packets.h"
#include "shm/provider.h"

#include "base/kill_point.h"
#include "base/knob.h"
#include "memory/allocate.h"
#include "os/clock.h"
#include "os/memory.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace near::shm {

namespace {

constexpr int no_memory = MPI_ERR_NO_MEM;
constexpr std::size_t longest = rts_sizes.size() - 1; ///< the index of the longest descriptors

/// Allocates more descriptors in our arena: as many pages as there are already, within bounds, because
/// allocating one page costs as much as many messages. Descriptors are never freed, so the descriptor of an
/// outdated RTS can still be read.
Result grow_rts(std::size_t size) {
  Engine& self = engine();
  void* made = nullptr;
  constexpr std::size_t most = 16;
  std::size_t pages = std::clamp<std::size_t>(self.rts_pages[size], 1, size == longest ? 1 : most);
  Result grown = memory::allocate_pages(pages, made);
  if (!grown.ok() && pages > 1) grown = memory::allocate_pages(pages = 1, made);
  if (!grown.ok())
    return base::fail(no_memory, "no memory for more than the {} messages that are under way to others: {}",
                      self.rts_out, std::string(base::failure_text()));
  self.rts_pages[size] += pages;
  for (std::size_t at = pages * os::page_size(); at >= rts_sizes[size];) {
    at -= rts_sizes[size];
    self.free_rts[size].push_back(new (static_cast<std::byte*>(made) + at) RtsDescriptor);
  }
  return {};
}

/// The size of the descriptor for a message: the smallest one that has space for it, if any has. Of the longest ones there are few; they
/// hold what the receiver would otherwise copy by a system call.
std::size_t size_for(std::uint64_t bytes) {
  constexpr std::size_t most_bytes = 256u << 10;
  const Engine& self = engine();
  std::size_t size = 0;
  while (size <= longest && bytes > rts_capacity(size)) ++size;
  if (size > longest) return 0;
  return size == longest && self.free_rts[size].empty() &&
                 self.rts_pages[size] * os::page_size() >= most_bytes
             ? 0
             : size;
}

/// Takes a free descriptor of this size, or of another size if there is no memory, and sets `size` to its
/// size.
Result take_rts(std::size_t& size, RtsDescriptor*& taken) {
  auto& free = engine().free_rts;
  if (free[size].empty()) {
    if (Result grown = grow_rts(size); !grown.ok()) {
      const auto other =
          std::find_if(free.begin(), free.end(), [](const auto& each) { return !each.empty(); });
      if (other == free.end()) return grown;
      size = static_cast<std::size_t>(other - free.begin());
    }
  }
  taken = free[size].back();
  free[size].pop_back();
  return {};
}

/// Copies a short message into the space behind its descriptor, so that the receiver can load these few bytes
/// without a system call. Short messages become rendezvous when credits are used up, and in MPI_Ssend.
void copy_into_descriptor(RtsDescriptor& descriptor, std::size_t size, const Buffer& buffer, NodeRts& rts,
                          std::uint64_t bytes) {
  if (bytes == 0 || bytes > rts_capacity(size)) return;
  auto* payload = reinterpret_cast<std::byte*>(&descriptor + 1);
  datatype::pack(buffer, 0, payload, static_cast<MPI_Count>(bytes));
  rts.shared = memory::space().segment.offset_of(payload);
}

/// Returns the provider that NEAR_COPY names, or nullptr if the tuner chooses.
const Provider* named_provider() {
  static const Provider* const named = [] {
    for (const Provider& provider : ladder())
      if (base::knobs().copy.text == provider.name) return &provider;
    return static_cast<const Provider*>(nullptr);
  }();
  return named;
}

const Provider& provider_of(Protocol protocol) {
  for (const Provider& provider : ladder())
    if (provider.protocol == protocol) return provider;
  return ladder().back();
}

/// Returns the possible protocol with the smallest overhead for a few bytes.
Protocol smallest_overhead(Tuner::Mask possible) {
  for (Protocol protocol : {Protocol::direct, Protocol::cma})
    if ((possible & Tuner::bit(protocol)) != 0) return protocol;
  return Protocol::pipelined;
}

/// Whether the kernel is expected to copy the pair's first transfer faster than packets, although these may be faster for the next
/// ones: this process has not read those packets before. Longer transfers reuse packets.
bool is_cold(const Peer& peer, const Tuner& tuner, std::uint64_t bytes) {
  constexpr std::uint64_t many_packets = 1u << 20, reuses_packets = 2u << 20;
  constexpr std::uint32_t first_use_ns = 65'000; // of a MiB; measured on an AMD EPYC, in a virtual machine
  if (bytes < many_packets || bytes >= reuses_packets || !tuner.is_unused()) return false;
  const auto& cost = estimates_of(peer).cost[static_cast<std::size_t>(Tuner::class_of(bytes))];
  const auto by_kernel = cost[static_cast<std::size_t>(Protocol::cma)],
             in_packets = cost[static_cast<std::size_t>(Protocol::pipelined)];
  return by_kernel != 0 && in_packets != 0 && by_kernel < in_packets + first_use_ns;
}

/// Returns the protocol by which the peer has lately received our messages of this size if messages go both ways at once
/// and it is the one of the pair that decides; otherwise Protocol::count.
Protocol choice_to_follow(Peer& peer, std::uint64_t bytes, bool sender_has_gaps, Tuner::Mask possible) {
  if (peer.rts_out != nullptr) peer.both_ways = follows_for;
  if (peer.both_ways == 0) return Protocol::count;
  --peer.both_ways;
  if (peer.row > engine().row) return Protocol::count;
  ItsChoice& its = its_choice(peer, bytes, sender_has_gaps); // a sender knows no more of its own messages
  if (its.left == 0 || (possible & Tuner::bit(its.protocol)) == 0) return Protocol::count;
  --its.left;
  return its.protocol;
}

/// Starts the transfer with the provider that the user named, or with the best one. If a provider refuses the
/// message, another one gets it. Returns the provider that took it, and sets `outcome`.
const Provider* pull(Peer& peer, const NodeRts& rts, Transfer& transfer, Pulled& outcome) {
  Tuner::Mask possible = 0;
  for (const Provider& provider : ladder()) {
    if (!provider.possible(peer, rts)) continue;
    if (provider.protocol == Protocol::count) {
      drop_prefix(peer, rts);
      outcome = provider.pull(peer, rts, transfer);
      return &provider;
    }
    possible |= Tuner::bit(provider.protocol);
  }
  const Provider* named = named_provider();
  Tuner& tuner = tuner_of(peer);
  const bool has_gaps = rts.address == 0 || !transfer.buffer.is_contiguous();
  transfer.has_gaps = has_gaps;
  for (;;) {
    const Provider* provider = named;
    if (named != nullptr && (possible & Tuner::bit(named->protocol)) != 0)
      tuner.take(named->protocol, transfer.bytes, has_gaps);
    else if (transfer.bytes < worth_timing)
      provider = &provider_of(smallest_overhead(possible));
    else if (is_cold(peer, tuner, transfer.bytes) && (possible & Tuner::bit(Protocol::cma)) != 0)
      provider = &provider_of(Protocol::cma);
    else if (Protocol its = choice_to_follow(peer, transfer.bytes, rts.address == 0, possible);
             its != Protocol::count)
      tuner.follow((provider = &provider_of(its))->protocol, transfer.bytes, has_gaps);
    else
      provider = &provider_of(tuner.choose(transfer.bytes, possible, peer.rts_count, has_gaps));
    transfer.protocol = static_cast<std::uint8_t>(provider->protocol);
    transfer.began_ns = os::monotonic_ns();
    outcome = provider->pull(peer, rts, transfer);
    if (outcome != Pulled::refused) {
      if (rts.prefix != 0 && provider->protocol != Protocol::pipelined) drop_prefix(peer, rts);
      return provider;
    }
    tuner.refused(provider->protocol, transfer.bytes, has_gaps);
    possible &= ~Tuner::bit(provider->protocol);
  }
}

bool try_send_fin(Peer& peer, const Fin& fin) {
  auto claim = claim_slot(peer);
  if (!claim) return false;
  MessageHeader& header = header_of(claim);
  header = {};
  header.handler = static_cast<std::uint8_t>(InternalHandler::fin);
  std::memcpy(header.payload, &fin, sizeof fin);
  send_claimed(peer, std::move(claim));
  return true;
}

constexpr int path_bits = 8;

/// Leaves a FIN in the descriptor, because the sender has no free slot. The FIN must not wait here for a slot: the
/// receive is complete, so the program may stay out of MPI from now on, and the sender would wait for as long. When the
/// sender next takes messages, it finds our bit in `slot_waiters`, then the FIN (note_left_fins). Our second attempt
/// fails only if there are messages for the sender to take; if it succeeds, it sends a FIN that names no message, which
/// makes the sender check.
///
/// If we die before leave_fin() has pushed the descriptor, the message stays matched, as if we had died while we copied
/// it. If we die later and have not told the sender, FINs that others push onto ours go unnoticed until somebody
/// registers again; but the launcher ends a job in which a process has died.
[[gnu::cold]] [[gnu::noinline]] void leave_fin(Peer& peer, const NodeRts& rts, const Fin& fin) {
  const Engine& self = engine();
  auto& doorbell = peer.control->doorbell;
  NEAR_KILL_POINT("fin-made");
  if (!descriptor_of(rts.descriptor)
           .leave_fin(doorbell.left_fins, rts.descriptor, {fin.cookie, fin.bytes << path_bits | fin.path}))
    return;
  NEAR_KILL_POINT("fin-left");
  transport::FlowControlCalls::add_waiter(doorbell.slot_waiters, std::uint64_t{1} << self.row % 64);
  NEAR_KILL_POINT("fin-registered");
  transport::FlowControlCalls::before_recheck(self.fences);
  try_send_fin(peer, {});
}

/// Tells the sender that its message has been received.
void report_received(Peer& peer, const NodeRts& rts, const Fin& fin) {
  if (!try_send_fin(peer, fin)) [[unlikely]]
    leave_fin(peer, rts, fin);
}

/// Sender: records that the receiver has taken the message. Call done() afterwards.
void settle(Transfer& transfer, std::uint64_t bytes, segment::Path path) {
  if (path == segment::Path::cma) note_its_choice(transfer, Protocol::cma);
  if (path == segment::Path::direct) note_its_choice(transfer, Protocol::direct);
  count_sent(peer_of(transfer), path, bytes);
  end_eager_prefix(transfer, -1);
  retire_rts(transfer);
}

} // namespace

bool may_be_pipelined() {
  return named_provider() == nullptr || named_provider()->protocol == Protocol::pipelined;
}

Result reserve_rts() { return grow_rts(0); }

Result send_rts(Peer& peer, const Envelope& envelope, const Buffer& buffer, Transfer& transfer) {
  Engine& self = engine();
  std::size_t size = size_for(envelope.bytes);
  RtsDescriptor* taken = nullptr;
  NEAR_TRY(take_rts(size, taken));
  RtsDescriptor& descriptor = *taken;
  transfer.peer = &peer;
  transfer.buffer = buffer;
  transfer.bytes = envelope.bytes;
  transfer.position = 0;
  transfer.prefix = wants_eager_prefix(peer, envelope.bytes) ? ++peer.prefixes : 0;
  transfer.descriptor = memory::space().segment.offset_of(&descriptor);
  transfer.size = static_cast<std::uint8_t>(size);
  transfer.busy = true;
  transfer.previous = nullptr;
  transfer.next = peer.rts_out;
  if (peer.rts_out != nullptr) peer.rts_out->previous = &transfer;
  peer.rts_out = &transfer;
  peer.may_withdraw = true;
  peer.kept.message_left();
  ++self.rts_out;
  if (++peer.rts_count == 1 && peer.both_ways != 0) peer.tuner->sends_began(os::monotonic_ns());
  NodeRts rts{};
  rts.descriptor = transfer.descriptor;
  rts.cookie = reinterpret_cast<std::uint64_t>(&transfer);
  rts.generation = descriptor.announce();
  rts.prefix = transfer.prefix;
  rts.may_come_early = transfer.may_come_early;
  if (buffer.is_contiguous() && envelope.bytes != 0) {
    rts.address = reinterpret_cast<std::uint64_t>(buffer.contiguous_start());
    if (memory::space().segment.contains(buffer.contiguous_start()))
      rts.shared = memory::space().segment.offset_of(buffer.contiguous_start());
  }
  if (rts.shared == 0 && peer.row != self.row)
    copy_into_descriptor(descriptor, size, buffer, rts, envelope.bytes);
  static_assert(sizeof rts <= inline_bytes);
  NEAR_KILL_POINT("rts-made");
  post_control(peer, static_cast<std::uint8_t>(Handler::p2p_rts), envelope, &rts, sizeof rts);
  NEAR_KILL_POINT("rts-posted");
  if (transfer.prefix != 0) send_prefix(peer, transfer);
  return {};
}

void retire_rts(Transfer& transfer) {
  if (peer_of(transfer).prefix_out == &transfer) peer_of(transfer).prefix_out = nullptr;
  std::erase_if(engine().cooperative_sends,
                [&](const CooperativeSend& each) { return each.transfer == &transfer; });
  RtsDescriptor& descriptor = descriptor_of(transfer.descriptor);
  descriptor.retire();
  NEAR_KILL_POINT("rts-retired");
  Engine& self = engine();
  self.free_rts[transfer.size].push_back(&descriptor);
  (transfer.previous != nullptr ? transfer.previous->next : peer_of(transfer).rts_out) = transfer.next;
  if (transfer.next != nullptr) transfer.next->previous = transfer.previous;
  --self.rts_out;
  if (--peer_of(transfer).rts_count == 0 && peer_of(transfer).both_ways != 0)
    peer_of(transfer).tuner->sends_ended(os::monotonic_ns());
}

bool cancel_rts(Transfer& transfer) {
  if (!descriptor_of(transfer.descriptor).cancel()) return false;
  NEAR_KILL_POINT("rts-cancelled");
  transfer.busy = false;
  retire_rts(transfer);
  return true;
}

bool rts_is_live(const NodeRts& rts) {
  return (rts.flags & rts_train) != 0 || descriptor_of(rts.descriptor).is_live(rts.generation);
}

bool claim_rts(NodeRts& rts) {
  if ((rts.flags & rts_train) != 0) return true;
  if (!descriptor_of(rts.descriptor).accept(rts.generation)) return false;
  NEAR_KILL_POINT("rts-matched");
  rts.flags |= rts_claimed;
  return true;
}

bool accept(Peer& peer, const NodeRts& rts, std::uint64_t announced_bytes, const Buffer& buffer,
            Transfer& transfer) {
  NodeRts own = rts;
  if ((rts.flags & rts_claimed) == 0 && !claim_rts(own)) return false;
  transfer.peer = &peer;
  transfer.buffer = buffer;
  transfer.bytes = std::min<std::uint64_t>(announced_bytes, static_cast<std::uint64_t>(buffer.bytes()));
  if ((rts.flags & rts_train) != 0) {
    accept_train(peer, rts.prefix, transfer);
    return true;
  }
  peer.kept.message_came();
  if (!peer.kept.expects_answer())
    return_kept_packets(peer); // it may announce messages because it lacks packets
  segment::Path path = segment::Path::direct;
  if (transfer.bytes == 0) drop_prefix(peer, rts);
  if (transfer.bytes != 0) {
    Pulled outcome = Pulled::refused;
    path = pull(peer, rts, transfer, outcome)->path;
    if (outcome == Pulled::started) return true;
    if (path != segment::Path::direct || peer.row != engine().row) transfer_arrived(transfer);
  }
  NEAR_KILL_POINT("rts-taken");
  report_received(peer, rts, {rts.cookie, transfer.bytes, static_cast<std::uint32_t>(path)});
  transfer.busy = false;
  transfer.done(transfer, MPI_SUCCESS);
  return true;
}

void transfer_arrived(Transfer& transfer) {
  if (transfer.bytes < worth_timing) return;
  peer_of(transfer).tuner->learn(static_cast<Protocol>(transfer.protocol), transfer.bytes, transfer.began_ns,
                                 os::monotonic_ns(), transfer.has_gaps);
}

void handle_fin(Arrival& arrival) {
  const auto& message = *reinterpret_cast<const Fin*>(arrival.payload);
  NEAR_KILL_POINT("fin-read");
  if (message.cookie == 0) {
    note_left_fins();
    return;
  }
  auto& transfer = *reinterpret_cast<Transfer*>(message.cookie);
  settle(transfer, message.bytes, static_cast<segment::Path>(message.path));
  transfer.busy = false;
  transfer.done(transfer, MPI_SUCCESS);
}

void note_left_fins() {
  Engine& self = engine();
  if (self.control->doorbell.left_fins.load_relaxed() == 0) return;
  self.fins_are_left = true;
  self.deferred_work = true;
}

bool collect_left_fins() {
  Engine& self = engine();
  self.fins_are_left = false;
  Transfer* settled = nullptr; // linked by `next`, those that were left first at the front
  RtsDescriptor::take_fins(self.control->doorbell.left_fins, descriptor_of, [&](const queue::LeftFin& fin) {
    NEAR_KILL_POINT("fin-collected");
    auto& transfer = *reinterpret_cast<Transfer*>(fin.cookie);
    constexpr std::uint64_t path_mask = (1u << path_bits) - 1;
    settle(transfer, fin.outcome >> path_bits, static_cast<segment::Path>(fin.outcome & path_mask));
    transfer.next = settled;
    settled = &transfer;
  });
  const bool moved = settled != nullptr;
  while (settled != nullptr) {
    Transfer& transfer = *settled;
    settled = transfer.next;
    transfer.busy = false;
    transfer.done(transfer, MPI_SUCCESS); // the transfer may no longer exist after this
  }
  return moved;
}

} // namespace near::shm
