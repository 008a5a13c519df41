// The engine of this process: everything that the transport's own files share. Not for the layers above.
#pragma once

#include "object/object.h"
#include "queue/flow_control.h"
#include "transport/arena.h"
#include "transport/blocks.h"
#include "transport/fast.h"
#include "transport/kept.h"
#include "transport/packet_pool.h"
#include "transport/store_policy.h"
#include "transport/tuner.h"

#include <array>
#include <list>
#include <memory>
#include <vector>

namespace near::transport {

/// A message that found no slot: kept, in order, until the receiver's queue has room.
struct PendingMessage {
  MessageHeader header;
  Transfer* waiter; ///< told when it has left; may be null
};

/// Whether the kernel copies between us and a peer; found out at the first large message.
/// `doubtful`: a probe failed, and the peer has not been heard of since. It may have died.
enum class CmaState : std::uint8_t { unknown, works, doubtful, refused };

/// RTS messages of less (synchronous sends, mostly) tell nothing about protocols and get no eager prefix.
inline constexpr std::uint64_t worth_timing = 4096;

/// What a receiver has of the eager prefix under way from one peer.
struct PrefixIn {
  std::uint32_t number = 0;
  bool dropped = false;        ///< the message took another protocol
  Transfer* bound = nullptr;   ///< the receive that it goes into
  std::vector<std::byte> kept; ///< of a message without a receive yet
};

/// Made and mapped at the first message to or from its process; stays until this process ends.
struct Peer : PeerStates {
  std::uint32_t slot = 0;
  queue::Producer<> producer;
  // Our lane to it: see lanes.cpp.
  bool lane_open = false;
  bool lane_asked = false;
  std::uint32_t queued = 0;           ///< messages through the queue since we last asked
  std::uint32_t ask_after = 16;       ///< of them before we ask
  bool held = false;                  ///< see hold_back()
  queue::LaneRing<>* lanes = nullptr; ///< its lanes, as mapped here
  struct LaneIn* lane_in = nullptr;   ///< open: our lane from it
  segment::ControlPage* control = nullptr;
  std::byte* packets = nullptr; ///< its packets, as mapped here
  PacketFlag* packet_flags = nullptr;
  std::uint64_t packet_bytes = 0;
  // Eager prefix (ring.cpp).
  Transfer* prefix_out = nullptr; ///< our eager prefix that it has not answered
  std::uint32_t prefixes = 0;     ///< number of the last one
  int prefix_trust = 1;           ///< above 0: our RTS messages to it are usually expected, and are pipelined
  PrefixIn prefix_in;
  StorePolicy stores;                ///< that fill packets for it
  std::unique_ptr<Tuner> tuner;      ///< of the protocols from it to us; made at the first large message
  std::list<PendingMessage> pending; ///< a list takes no memory while it is empty, a deque half a KiB
  bool on_pending_list = false;
  Transfer* rts_out = nullptr; ///< announced to it, not finished; linked by previous and next
  CmaState cma = CmaState::unknown;
  // The end: we asked whether it receives any more; it asked us; it said no.
  bool asked = false, asks = false, closed = false;
  bool may_withdraw = false; ///< an RTS was announced since all were tried at the end
};

/// A lane in our region.
struct LaneIn {
  queue::LaneReader<> reader;
  std::uint32_t index = 0;
  Peer* from = nullptr;             ///< it was granted to
  Peer* next = nullptr;             ///< it is promised to, once it comes back
  base::Atomic<std::uint32_t> open; ///< the SWITCH was read; also looked at before sleeping
  std::uint64_t cold_at = 0;        ///< position when lanes were last compared
};

inline constexpr std::uint64_t lane_slots = 64;
inline constexpr std::uint32_t most_lanes = 32;

/// A message of ours that its receiver pulls, and that we push from the back.
struct CooperativeSend {
  Transfer* transfer;
  std::uint64_t address, bytes; ///< of the receiver's buffer
};

struct Engine {
  segment::Segment segment;
  std::uint32_t slot = 0, job_size = 0;
  segment::ControlPage* control = nullptr;
  queue::Consumer<> queue;
  std::uint32_t lane_count = 0;  ///< in our region
  std::uint32_t asked_lanes = 0; ///< of peers, without an answer
  std::uint32_t open_lanes = 0;  ///< bits of `lanes`: granted and switched to
  std::array<LaneIn, most_lanes> lanes;
  PeerStates no_peer;               ///< stands for every process that is not mapped
  std::vector<PeerStates*> by_slot; ///< a Peer, or `no_peer`
  std::vector<Peer*> peers;         ///< those that are mapped, in the order of their first messages
  PacketPool packets;
  Arena arena;          ///< within our region
  Arena far_arena;      ///< outside the regions; empty unless all processes reach everything
  Arena reserved_arena; ///< of reserved huge pages, where there are any
  /// Where memory comes from that every process of the job has mapped.
  Arena& ordinary_arena() { return far_arena.empty() ? arena : far_arena; }
  Blocks blocks;
  std::array<segment::Traffic*, segment::paths> traffic{}; ///< ours, by path; rows by receiver
  std::vector<Peer*> pending_peers;                        ///< with messages that found no slot
  std::vector<Transfer*> pipeline_senders;                 ///< with packed bytes still to send
  std::vector<CooperativeSend> cooperative_sends;
  std::vector<base::Atomic<std::uint64_t>*> awaited_locks; ///< words of locks that threads of ours wait for
  bool deferred_work = false; ///< one of the three lists above may hold something
  std::array<std::vector<RtsDescriptor*>, rts_sizes.size()> free_rts; ///< by size
  std::array<std::size_t, rts_sizes.size()> rts_pages{};              ///< made so far, by size
  std::size_t rts_out = 0;                                            ///< announced to any peer, not finished
  std::uint32_t credit_limit = 0;
  std::uint64_t eager_limit = 0;
  std::uint64_t spin_ns = 0;
  bool fences = false;
  bool oversubscribed = false;
  bool running = false;
  bool receives_no_more = false;
  KeptBlocks kept; ///< of ordinary_arena()
};

/// The one engine, never destroyed: exit handlers and forked children may still look.
extern object::Immortal<Engine> engine_storage;
inline Engine& engine() { return engine_storage.value; }

using FlowControlCalls = queue::FlowControl<base::Hardware, DoorbellSystem>;

/// The peer in this slot; maps it if this is its first message. Throws std::bad_alloc.
Peer& peer_in(std::uint32_t slot);

/// Puts a message into the peer's queue, or on its pending list when there is no slot; order is kept either
/// protocol.
void post(Peer& peer, const MessageHeader& header);
/// A control message: `payload` of at most inline_bytes, no credit, no packet.
void post_control(Peer& peer, std::uint8_t handler, const Envelope& envelope, const void* payload,
                  std::size_t bytes);
/// No small message goes to this peer by itself until it opens again: allow_fast_sends().
void stop_fast_sends(Peer& peer);
/// Claims a slot unless earlier messages still wait for one. Fill its header, then send_claimed, or
/// wait_for_slot if there was none.
queue::Claim<> claim_slot(Peer& peer);
void wait_for_slot(Peer& peer, const MessageHeader& header, Transfer* waiter = nullptr);
void send_claimed(Peer& peer, queue::Claim<>&& claim);
inline MessageHeader& header_of(const queue::Claim<>& claim) {
  return *reinterpret_cast<MessageHeader*>(claim.body());
}

/// Lays out, binds and reserves this process's region. Nothing of it is visible to others before `ready`.
Result build_region();
/// The arenas, once every process has said how much of the segment it has mapped.
void open_arenas();
/// Registers what handles the transport's own messages.
void set_internal_handlers();
/// Sends what waits for slots of peers, as far as there are any; true if something left.
bool flush_pending();
/// Whether anything waits for a slot of a peer's queue or lane, for one of our packets, or for a lock.
bool waits_for_flow_control();
/// Registers this process with everything that it waits for. Whatever is freed from here on wakes us, and
/// whatever was freed before is found by our next check.
void register_as_waiter();
/// Raises the bells of the processes in `asked` that wait for a slot here.
void wake_waiting_processes(std::uint64_t asked);
/// Whether a message is there; the check before sleeping, without the engine lock.
bool has_work();

/// A sleep without a wake-up ends after this time, so that an event without one (a peer that calls
/// MPI_Finalize) is noticed.
inline constexpr std::uint64_t sleep_limit_ns = 10'000'000;

/// The number under which a packet in use is known above the transport; not 0.
inline std::uint64_t packet_of(const PacketReference& reference) {
  return (std::uint64_t{reference.generation} << 32 | reference.packet) + 1;
}

/// The transport's own handlers (rendezvous.cpp, ring.cpp).
void handle_fin(Arrival& arrival);
void handle_cts(Arrival& arrival);
void handle_fragment(Arrival& arrival);
void handle_prefix_fragment(Arrival& arrival);
void handle_cooperate(Arrival& arrival);
void handle_last_call(Arrival& arrival);
void handle_closed(Arrival& arrival);
void handle_lane_request(Arrival& arrival);
void handle_lane_granted(Arrival& arrival);
void handle_lane_switch(Arrival& arrival);
void handle_lane_recall(Arrival& arrival);
void handle_lane_return(Arrival& arrival);
/// Sends what packets and slots allow of the active pipelined transfers; true when something moved.
bool advance_pipeline_senders();
/// Pushes one chunk of each cooperative send; true when something moved.
bool push_chunks();
/// Sender: whether the message about to be announced gets an eager prefix, and its first fragments after the RTS.
bool wants_eager_prefix(const Peer& peer, std::uint64_t bytes);
void send_prefix(Peer& peer, Transfer& transfer);
/// Sender: the receiver has answered, or the RTS is withdrawn; `trust` is what that says for the next one.
void end_eager_prefix(Transfer& transfer, int trust);
/// Receiver: the message is not pipelined after all.
void drop_prefix(Peer& peer, const RtsHeader& rts);
/// Receiver: all bytes of a transfer that was under way are here; notes how long they took.
void transfer_arrived(Transfer& transfer);
/// A message left through the queue: asks for a lane when there were many.
void count_queued(Peer& peer);
/// A lane that came back is drained: the next pair may have it.
void lane_is_free(LaneIn& lane);
/// A marker has just been committed: later messages take the other channel.
void marker_sent(Peer& peer, const MessageHeader& header);

inline RtsDescriptor& descriptor_of(segment::Offset offset) {
  return *engine().segment.at<RtsDescriptor>(offset);
}
/// Gives the descriptor of a finished or cancelled RTS back.
void retire_rts(Transfer& transfer);
/// Makes the first descriptors, before a program can have taken all of the arena: with them every send leaves
/// sooner or later.
Result reserve_rts();

/// Finished or dead: it looks at no message any more.
bool has_left(const Peer& peer);

/// Our row about this peer, from now on shown to tools.
segment::PairStatistics* statistics_of(Peer& peer);

/// What the job's estimates say of a process as far from us as this one.
const segment::PairEstimates& estimates_of(const Peer& peer);

/// Counts a message of ours that has left by this path.
void count_sent(const Peer& peer, segment::Path path, std::uint64_t bytes);

} // namespace near::transport
