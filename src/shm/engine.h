// The engine of this process: everything that the node transport's own files share. Not for the layers above.
#pragma once

#include "memory/space.h"
#include "object/object.h"
#include "shm/packet_pool.h"
#include "shm/shm.h"
#include "shm/store_policy.h"
#include "shm/tuner.h"
#include "transport/doorbell.h"
#include "transport/registry.h"

#include <array>
#include <list>
#include <memory>
#include <vector>

namespace near::shm {

/// A message that found no free slot: kept in order until the receiver's queue has one.
struct PendingMessage {
  MessageHeader header;
  Transfer* waiter; ///< its done() is called when the message has left; may be null
};

/// Whether the kernel copies between this process and a peer; probed at the first large message.
/// `doubtful`: the probe failed, and nothing has arrived from the peer since. The peer may have died.
enum class CmaState : std::uint8_t { unknown, works, doubtful, refused };

/// Shorter rendezvous messages (synchronous sends, mostly) are neither timed nor given an eager prefix.
inline constexpr std::uint64_t worth_timing = 4096;

/// The receiver's record of the eager prefix that is arriving from one peer.
struct PrefixIn {
  std::uint32_t number = 0;
  bool dropped = false;        ///< the message takes another protocol
  Transfer* bound = nullptr;   ///< the receive that takes it
  std::vector<std::byte> kept; ///< bytes that arrived before the receive
};

/// Another process. It is made and mapped at the first message to or from it, and stays until this process
/// ends.
struct Peer : transport::Peer {
  std::uint32_t slot = 0;
  queue::Producer<> producer;
  // Our lane to it: see lanes.cpp.
  bool lane_open = false;
  bool lane_asked = false;
  std::uint32_t queued = 0;           ///< messages through the queue since we last asked
  std::uint32_t ask_after = 16;       ///< so many of them before we ask for a lane
  bool held = false;                  ///< see hold_back()
  queue::LaneRing<>* lanes = nullptr; ///< its lanes, as mapped here
  struct LaneIn* lane_in = nullptr;   ///< open: our lane from it
  segment::ControlPage* control = nullptr;
  std::byte* packets = nullptr; ///< its packets, as mapped here
  PacketFlag* packet_flags = nullptr;
  std::uint64_t packet_bytes = 0;
  // Eager prefixes (pipeline.cpp).
  Transfer* prefix_out = nullptr; ///< our message with an eager prefix that it has not answered
  std::uint32_t prefixes = 0;     ///< number of the last one
  int prefix_trust = 1; ///< above 0: its receives are usually posted early, and our messages to it pipelined
  PrefixIn prefix_in;
  StorePolicy stores;           ///< the stores that fill packets for it
  std::unique_ptr<Tuner> tuner; ///< for messages from it to us; made at the first large one
  std::list<PendingMessage>
      pending; ///< a list: while it is empty, it takes no memory; a deque takes half a KiB
  bool on_pending_list = false;
  Transfer* rts_out = nullptr; ///< announced to it, not finished; linked by previous and next
  CmaState cma = CmaState::unknown;
  // At the end: we have asked whether it receives anything more; it has asked us; it has said no.
  bool asked = false, asks = false, closed = false;
  bool may_withdraw = false; ///< an RTS was sent since we last tried to withdraw them all
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

/// A message of ours that its receiver copies from the front while we copy it from the back.
struct CooperativeSend {
  Transfer* transfer;
  std::uint64_t address, bytes; ///< of the receiver's buffer
};

struct Engine {
  std::uint32_t slot = 0, job_size = 0;
  segment::ControlPage* control = nullptr;
  queue::Consumer<> queue;
  std::uint32_t lane_count = 0; ///< in our region
  std::uint32_t open_lanes = 0; ///< bits of `lanes`: granted and switched to
  std::array<LaneIn, most_lanes> lanes;
  std::vector<Peer*> by_slot; ///< nullptr: not mapped
  std::vector<Peer*> peers;   ///< those that are mapped, in the order of their first messages
  PacketPool packets;
  std::array<segment::Traffic*, segment::paths> traffic{}; ///< ours, by path; rows by receiver
  std::vector<Peer*> pending_peers;                        ///< with messages that found no slot
  std::vector<Transfer*> pipeline_senders;                 ///< with packed bytes still to send
  std::vector<CooperativeSend> cooperative_sends;
  std::uint64_t left_fins =
      0; ///< bits as in slot_waiters: processes that may have left FINs in our descriptors
  bool deferred_work = false; ///< one of the four above may hold something, or there are other transports
  bool always_polled = false; ///< there are
  std::array<std::vector<RtsDescriptor*>, rts_sizes.size()> free_rts; ///< by size
  std::array<std::size_t, rts_sizes.size()> rts_pages{};              ///< made so far, by size
  std::size_t rts_out = 0;                                            ///< announced to any peer, not finished
  std::uint32_t credit_limit = 0;
  std::uint64_t eager_limit = 0;
  bool fences = false;
  bool oversubscribed = false;
  bool receives_no_more = false;
};

/// A peer of this transport. All operations and messages of this transport are of such peers only.
inline Peer& own(transport::Peer& peer) { return static_cast<Peer&>(peer); }
inline const Peer& own(const transport::Peer& peer) { return static_cast<const Peer&>(peer); }
inline Peer& peer_of(const Transfer& transfer) { return own(*transfer.peer); }
inline Peer& sender_of(const Arrival& arrival) { return own(*arrival.from); }

/// The one engine, never destroyed: exit handlers and forked children may still look.
extern object::Immortal<Engine> engine_storage;
inline Engine& engine() { return engine_storage.value; }

/// The peer in this slot; maps it if this is its first message. Throws std::bad_alloc.
Peer& peer_in(std::uint32_t slot);

/// Puts a message into the peer's channel, or on its pending list if there is no free slot; the order is kept in
/// both cases.
void post(Peer& peer, const MessageHeader& header);
/// Posts a control message: a payload of at most inline_bytes, without a credit or packet.
void post_control(Peer& peer, std::uint8_t handler, const Envelope& envelope, const void* payload,
                  std::size_t bytes);
/// Ends fast sends to this peer until allow_fast_sends() permits them again, and takes their credits back.
void stop_fast_sends(Peer& peer);
/// Claims a slot unless earlier messages still wait for one. Fill in its header and call send_claimed(); if there
/// is no slot, call wait_for_slot().
queue::Claim<> claim_slot(Peer& peer);
void wait_for_slot(Peer& peer, const MessageHeader& header, Transfer* waiter = nullptr);
void send_claimed(Peer& peer, queue::Claim<>&& claim);
inline MessageHeader& header_of(const queue::Claim<>& claim) {
  return *reinterpret_cast<MessageHeader*>(claim.body());
}

// The operations of this transport (operations.cpp); transport.h says what they do.
Eager send_eager(Peer& peer, const Envelope& envelope, const Buffer& view, Transfer* waiter);
Result send_rts(Peer& peer, const Envelope& envelope, const Buffer& view, Transfer& transfer);
bool cancel_rts(Transfer& transfer);
bool claim_rts(NodeRts& rts);
bool rts_is_live(const NodeRts& rts);
bool accept(Peer& peer, const NodeRts& rts, std::uint64_t offered_bytes, const Buffer& view,
            Transfer& transfer);
void give_back_packet(Peer& owner, std::uint64_t packet);
void hold_back(Peer& peer, bool held);
bool has_ended(Peer& peer);
bool reaches_memory_of(Peer& peer);
bool copy_from_peer(Peer& peer, std::span<os::Run> theirs, std::span<os::Run> mine);
bool copy_to_peer(Peer& peer, std::span<os::Run> theirs, std::span<os::Run> mine);
extern const transport::Operations operations;

// What the transport layer drives.
bool make_progress();
void set_handler(Handler handler, HandlerFunction function);
void receive_no_more();
bool sends_settled();
extern const transport::Transport node_transport;

/// Lays out, binds and reserves this process's region. Nothing of it is visible to others before `ready`.
Result build_region();
/// Registers the handlers of the transport's own messages.
void set_internal_handlers();
/// Sends messages that wait for slots of their peers, as far as slots are free; true if any were sent.
bool flush_pending();
/// Whether anything waits for a slot of a peer's queue or lane, or for one of our packets.
bool waits_for_flow_control();
/// Registers this process with everything that it waits for, without the barrier that must follow.
void register_as_waiter();
/// Whether a message is there; the check before sleeping, without the engine lock.
bool has_arrived();

/// Names a packet in use to the layers above; never 0.
inline std::uint64_t packet_of(const PacketReference& reference) {
  return (std::uint64_t{reference.generation} << 32 | reference.packet) + 1;
}

// Handlers of the transport's own messages.
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
/// Sends as many fragments of pipelined messages as free packets and slots allow; true if any were sent.
bool advance_pipeline_senders();
/// Copies one chunk of each cooperative send; true if there was one.
bool push_chunks();
/// Sender: whether a message that is about to be announced gets an eager prefix.
bool wants_eager_prefix(const Peer& peer, std::uint64_t bytes);
void send_prefix(Peer& peer, Transfer& transfer);
/// Sender: call when the receiver has answered or the RTS is withdrawn; `trust` is added to prefix_trust.
void end_eager_prefix(Transfer& transfer, int trust);
/// Receiver: drops the eager prefix of a message that takes another protocol.
void drop_prefix(Peer& peer, const NodeRts& rts);
/// Receiver: call when all bytes of a transfer have arrived; records how long that took.
void transfer_arrived(Transfer& transfer);
/// Counts a message that left through the queue; asks for a lane after many.
void count_queued(Peer& peer);
/// Grants a lane that was returned and drained to the next pair, if one waits for it.
void lane_is_free(LaneIn& lane);
/// Call after a marker was committed: later messages take the other channel.
void marker_sent(Peer& peer, const MessageHeader& header);

inline RtsDescriptor& descriptor_of(segment::Offset offset) {
  return *memory::space().segment.at<RtsDescriptor>(offset);
}
/// Returns the descriptor of a finished or cancelled RTS to its free list.
void retire_rts(Transfer& transfer);
/// Sender: makes progress look for FINs that these processes have left in descriptors; bits as in slot_waiters.
void look_for_left_fins(std::uint64_t receivers);
/// Sender: completes the messages whose FINs were left in their descriptors; true if there were any.
bool collect_left_fins();
/// Makes the first descriptors before the program can use up the arena, so that every send can leave eventually.
Result reserve_rts();

/// Whether the peer has finished or died: it reads no more messages.
bool has_left(const Peer& peer);

/// The statistics of this peer in our region, which tools display from now on.
segment::PairStatistics* statistics_of(Peer& peer);

/// The job's initial estimates for a process at this peer's distance.
const segment::PairEstimates& estimates_of(const Peer& peer);

/// Counts a message that was sent by this path.
void count_sent(const Peer& peer, segment::Path path, std::uint64_t bytes);

} // namespace near::shm
