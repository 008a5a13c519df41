// The engine: the state and functions that the files of the node transport share. Not for the layers above.
#pragma once

#include "copy/store_policy.h"
#include "memory/space.h"
#include "object/object.h"
#include "shm/asked_for.h"
#include "shm/backlog.h"
#include "shm/kept_packets.h"
#include "shm/packet_pool.h"
#include "shm/packet_train.h"
#include "shm/shm.h"
#include "shm/tuner.h"
#include "transport/doorbell.h"
#include "transport/registry.h"

#include <array>
#include <list>
#include <memory>
#include <vector>

namespace near::shm {

/// A message that found no free slot. It waits, in order, until the receiver's queue or lane has one.
struct PendingMessage {
  MessageHeader header;
  Transfer* waiter; ///< its done() is called when the message has been sent; may be null
};

/// Whether the kernel copies between this process and a peer (cross-memory attach); probed at the first large
/// message. `doubtful`: the probe failed, and nothing has arrived from the peer since, so it may have died.
enum class CmaState : std::uint8_t { unknown, works, doubtful, refused };

/// Bytes. Shorter rendezvous messages (mostly synchronous sends) are neither timed nor given an eager prefix.
inline constexpr std::uint64_t worth_timing = 4096;

/// The receiver's record of the eager prefix that is arriving from one peer.
struct PrefixIn {
  std::uint32_t number = 0;
  bool dropped = false;        ///< further fragments are ignored
  Transfer* bound = nullptr;   ///< the receive that takes the fragments; nullptr until it is matched
  std::vector<std::byte> kept; ///< bytes that arrived before the receive
};

/// Transfers to one peer with fragments still to send, in the order of their CTS. Only the first one advances: if
/// they took turns, all of them would end late, and their buffers would pass through the cache again and again.
struct FragmentQueue {
  Transfer *first = nullptr, *last = nullptr;

  void push(Transfer& transfer) {
    transfer.behind = nullptr;
    (first == nullptr ? first : last->behind) = &transfer;
    last = &transfer;
  }
  void pop() { first = first->behind; }
};

/// How a peer received our last message of a kind, and for how many more messages from it that counts.
struct ItsChoice {
  Protocol protocol{};
  std::uint8_t left = 0;
};

/// A process of the job. It is mapped at the first message to or from it, in small jobs before, and stays mapped until this
/// process ends.
struct Peer : transport::Peer {
  std::uint32_t row = 0;              ///< its row in the rank table
  std::uint32_t sequence_at_send = 0; ///< of its next message to us, when our last one took a packet
  queue::Producer<> producer;
  // Our lane to it (lanes.cpp).
  bool lane_open = false;
  bool lane_asked = false;
  std::uint32_t queued = 0;           ///< messages sent through the queue since we last asked for a lane
  std::uint32_t ask_after = 16;       ///< after this many of them, we ask for a lane
  bool held = false;                  ///< see hold_back()
  queue::LaneRing<>* lanes = nullptr; ///< the lanes in its region, as mapped here
  struct LaneIn* lane_in = nullptr;   ///< the open lane from it to us; nullptr if there is none
  segment::ControlPage* control = nullptr;
  std::byte* packets = nullptr; ///< its packets, as mapped here
  PacketFlag* packet_flags = nullptr;
  std::uint64_t packet_bytes = 0;
  // Eager prefixes (pipeline.cpp).
  Transfer* prefix_out = nullptr; ///< our message whose eager prefix it has not answered
  std::uint32_t prefixes = 0;     ///< number of the last eager prefix
  int prefix_trust = 1; ///< above 0: it usually posts receives early and receives our messages pipelined
  PrefixIn prefix_in;
  TrainIn train_in;
  TrainsOut trains_out;
  std::vector<KeptTrain> kept_trains; ///< in the order in which they came
  std::array<FragmentQueue, 2>
      fragments;           ///< of short and of long transfers, so that long ones delay no short ones
  bool long_first = false; ///< which of the two came first last time
  bool on_fragment_list = false;
  /// The stores that fill its packets with eager messages, and with fragments. Packets that this process has kept take cached
  /// stores, since their lines are here. Streaming stores are never very slow, so they are tried first. Fragments accept cached
  /// ones at a higher cost, since it is usually their receiver that is waited for (doc/adr/0027), and settle once they have
  /// gone through all packets of a long turn.
  copy::StorePolicy stores{copy::Store::streaming, 1.5f};
  copy::StorePolicy fragment_stores{copy::Store::streaming, {.leave = 3.0f, .enter = 5.0f, .settling = 160}};
  KeptPackets kept;             ///< packets for our next messages to it
  KeptRuns kept_runs;           ///< runs for our next fragments to it
  std::unique_ptr<Tuner> tuner; ///< for messages from it to us; made when it is needed, in small jobs before
  std::uint32_t both_ways = 0;  ///< above 0: messages were lately on their way in both directions at once
  /// Of our messages without gaps, and with gaps here, by size class.
  std::array<std::array<ItsChoice, Tuner::classes>, 2> its_choices{};
  std::list<PendingMessage> pending; ///< a list, because an empty deque takes half a KiB
  bool on_pending_list = false;
  Transfer* rts_out = nullptr; ///< messages announced to it and not finished; linked by previous and next
  std::uint32_t rts_count = 0; ///< number of these
  Backlog to_send;             ///< bytes of pipelined messages that it has asked for and we have not sent
  AskedFor asked_for; ///< bytes of its pipelined messages that we have asked for and that have not arrived
  CmaState cma = CmaState::unknown;
  // In MPI_Finalize: we have asked whether it will receive anything more; it has asked us; it has answered
  // no.
  bool asked = false, asks = false, closed = false;
  bool may_withdraw = false; ///< an RTS has been sent since we last tried to withdraw all of them
};

/// A lane in our region.
struct LaneIn {
  queue::LaneReader<> reader;
  std::uint32_t index = 0;
  bool built = false;               ///< its pages exist; see build_lane()
  Peer* from = nullptr;             ///< the peer to which it is granted; nullptr if it is free
  Peer* next = nullptr;             ///< the peer that gets it when it is returned
  base::Atomic<std::uint32_t> open; ///< 1 once the lane_switch was read; also checked before sleeping
  bool polled_in_vain = false;      ///< since our last train to the peer
  std::uint64_t cold_at = 0;        ///< the reader's position when lanes were last compared
};

inline constexpr std::uint64_t lane_slots = 128;
inline constexpr std::uint32_t most_lanes = 32;
/// Lanes that exist from the start; the others when they are granted.
inline constexpr std::uint32_t first_lanes = 2;

/// A message of ours that its receiver copies from the front while we copy it from the back.
struct CooperativeSend {
  Transfer* transfer;
  std::uint64_t address, bytes; ///< of the receiver's buffer
};

struct Engine {
  std::uint32_t row = 0, job_size = 0;
  segment::ControlPage* control = nullptr;
  queue::Consumer<> queue;
  std::uint32_t lane_count = 0; ///< lanes in our region
  std::uint32_t open_lanes = 0; ///< a bit for each of `lanes` that is open
  std::array<LaneIn, most_lanes> lanes;
  std::vector<Peer*> by_row; ///< by row of the rank table; nullptr: not mapped
  std::vector<Peer*> peers;  ///< all mapped peers, in the order in which they were mapped
  PacketPool packets;
  std::array<segment::Traffic*, segment::paths> traffic{}; ///< ours, by path; each has a row per receiver
  std::vector<Peer*> pending_peers;                        ///< peers with pending messages
  std::vector<Peer*> fragment_peers;                       ///< peers with transfers in their fragment queues
  std::vector<CooperativeSend> cooperative_sends;
  bool fins_are_left = false;     ///< receivers have left FINs that must be collected
  bool deferred_work = false;     ///< one of the four members above may not be empty, or always_polled is set
  bool always_polled = false;     ///< other transports exist, so no poll may stop at is_idle()
  std::uint32_t kept_packets = 0; ///< for all peers together
  std::array<std::vector<RtsDescriptor*>, rts_sizes.size()> free_rts; ///< free descriptors, by size
  std::array<std::size_t, rts_sizes.size()> rts_pages{}; ///< pages of descriptors allocated so far, by size
  std::size_t rts_out = 0;                               ///< messages announced to any peer and not finished
  std::uint32_t credit_limit = 0;
  std::uint64_t eager_limit = 0, train_limit = 0; ///< of packets, of trains
  bool kept_take_cached = true; ///< whether kept packets take cached stores: NEAR_STORES may name others
  bool fences = false;
  bool oversubscribed = false;
  bool receives_no_more = false;
};

/// Casts a peer to this transport's type. Operations and messages of this transport involve only its own
/// peers.
inline Peer& own(transport::Peer& peer) { return static_cast<Peer&>(peer); }
inline const Peer& own(const transport::Peer& peer) { return static_cast<const Peer&>(peer); }
inline Peer& peer_of(const Transfer& transfer) { return own(*transfer.peer); }
inline Peer& sender_of(const Arrival& arrival) { return own(*arrival.from); }

/// The only Engine of this process. It is never destroyed, because exit handlers and forked children may
/// still read it.
extern object::Immortal<Engine> engine_storage;
inline Engine& engine() { return engine_storage.value; }

/// Returns the process in this row of the rank table as a peer; maps it if this is its first message. Throws
/// std::bad_alloc.
Peer& peer_in(std::uint32_t row);

/// Sends a message through the peer's channel, or adds it to the pending list if there is no free slot. The
/// order of messages is kept in both cases.
void post(Peer& peer, const MessageHeader& header);
/// Posts a control message, which needs neither a credit nor a packet. `bytes` must be at most inline_bytes.
void post_control(Peer& peer, std::uint8_t handler, const Envelope& envelope, const void* payload,
                  std::size_t bytes);
/// Stops fast sends to this peer until allow_fast_sends() permits them again, and takes back their unused
/// credits.
void stop_fast_sends(Peer& peer);
/// Claims a slot, unless earlier messages are still waiting for one. Fill in its header and call
/// send_claimed(). If the claim is empty, call wait_for_slot() instead.
queue::Claim<> claim_slot(Peer& peer);
void wait_for_slot(Peer& peer, const MessageHeader& header, Transfer* waiter = nullptr);
void send_claimed(Peer& peer, queue::Claim<>&& claim);
inline MessageHeader& header_of(const queue::Claim<>& claim) {
  return *reinterpret_cast<MessageHeader*>(claim.body());
}

// The operations of this transport (operations.cpp); transport.h says what they do.
Eager send_eager(Peer& peer, const Envelope& envelope, const Buffer& buffer, Transfer* waiter);
Result send_rts(Peer& peer, const Envelope& envelope, const Buffer& buffer, Transfer& transfer);
bool cancel_rts(Transfer& transfer);
bool claim_rts(NodeRts& rts);
bool rts_is_live(const NodeRts& rts);
bool accept(Peer& peer, const NodeRts& rts, std::uint64_t announced_bytes, const Buffer& buffer,
            Transfer& transfer);
void give_back_packet(Peer& from, std::uint64_t packet);
void hold_back(Peer& peer, bool held);
bool has_ended(Peer& peer);
Result register_memory(void* address, std::size_t bytes, copy::MemoryKind kind,
                       transport::Registration& made);
transport::Capabilities capabilities(Peer& peer, const transport::MemoryKey& key);
void get(Peer& peer, const transport::MemoryKey& key, std::span<os::Run> theirs, std::span<os::Run> mine,
         transport::Access& access);
void put(Peer& peer, const transport::MemoryKey& key, std::span<os::Run> theirs, std::span<os::Run> mine,
         transport::Access& access);
void apply_atomic(const transport::MemoryKey& key, std::uint64_t address,
                  const transport::AtomicOperation& operation, transport::Access& access);
extern const transport::Operations operations;

/// Returns true if the kernel copies from and to the peer's private memory, by trying both.
bool reaches_private_memory(Peer& peer);
/// Copy through the kernel (CMA) between runs of the peer's private memory and runs of this process's. Return false if
/// part of the peer's memory is not mapped.
bool read_private_memory(Peer& peer, std::span<os::Run> theirs, std::span<os::Run> mine);
bool write_private_memory(Peer& peer, std::span<os::Run> theirs, std::span<os::Run> mine);

// Called by the transport layer.
bool make_progress();
HandlerFunction handler_of(Handler handler);
void set_handler(Handler handler, HandlerFunction function);
void receive_no_more();
bool sends_settled();
extern const transport::Transport node_transport;

/// Lays out, binds and reserves this process's region. Other processes read nothing of it before the phase is
/// `ready`. `segment_descriptor` is the job's segment, or -1 in a job without mpiexec.
Result build_region(int segment_descriptor);
/// The size of the job with which this process began.
segment::JobShape job_shape();
/// In a small job, maps all peers, and the pages with which messages from and to them begin: the first message of a pair
/// would otherwise take several page faults.
void map_peers_ahead();
/// Chooses the protocols of messages from this peer; made when it is first needed.
Tuner& tuner_of(Peer& peer);
/// Registers the handlers of the transport's own messages.
void set_internal_handlers();
/// Sends pending messages as far as their receivers have free slots. Returns true if any were sent, or
/// dropped because their receiver has left.
bool flush_pending();
/// Returns true if anything waits for a slot of a peer's queue or lane, or for one of our packets, or if packets are kept,
/// which must be returned before a sleep.
bool waits_for_flow_control();
/// Returns the packets that are kept, and registers this process as a waiter for everything that it waits for. A barrier
/// must follow.
void register_as_waiter();
/// Returns true if a message has arrived. This is the check before sleeping, made without the engine lock.
bool has_arrived();

// Handlers of the transport's own messages.
void handle_fin(Arrival& arrival);
void handle_cts(Arrival& arrival);
void handle_fragment(Arrival& arrival);
void handle_prefix_fragment(Arrival& arrival);
void handle_cooperate(Arrival& arrival);
void handle_train(Arrival& arrival);
void handle_train_part(Arrival& arrival);
void handle_last_call(Arrival& arrival);
void handle_closed(Arrival& arrival);
void handle_lane_request(Arrival& arrival);
void handle_lane_granted(Arrival& arrival);
void handle_lane_switch(Arrival& arrival);
void handle_lane_recall(Arrival& arrival);
void handle_lane_return(Arrival& arrival);
/// Sends as many fragments of pipelined messages as free packets and slots allow. Returns true if any were
/// sent.
bool send_fragments();
/// Copies one chunk of each cooperative send. Call it only if there are any; returns true.
bool push_chunks();
/// Sends a message of up to `longest_train` bytes as a train, unless packets or slots are missing or there is a better way.
Eager send_train(Peer& peer, const Envelope& envelope, const Buffer& buffer);
/// Receiver: takes what has arrived of a train, and binds the transfer to the rest. `transfer` contains the peer, the buffer
/// and the number of bytes.
void accept_train(Peer& peer, std::uint32_t number, Transfer& transfer);
/// Whether NEAR_COPY admits the pipelined protocol, which trains are like.
bool may_be_pipelined();
/// Sender: returns true if a message of `bytes` bytes that is about to be announced gets an eager prefix.
bool wants_eager_prefix(const Peer& peer, std::uint64_t bytes);
void send_prefix(Peer& peer, Transfer& transfer);
/// Sender: call when the receiver has answered or the RTS is withdrawn. `trust` is added to prefix_trust.
void end_eager_prefix(Transfer& transfer, int trust);
/// Receiver: drops the eager prefix of a message that uses another protocol.
void drop_prefix(Peer& peer, const NodeRts& rts);
/// Receiver: call when all bytes of a transfer have arrived. Records how long the transfer took.
void transfer_arrived(Transfer& transfer);
/// Counts a message that was sent through the queue; asks for a lane after many of them.
void count_queued(Peer& peer);
/// Allocates the pages of a lane in our region and attaches its reader. False if there is no memory.
bool build_lane(LaneIn& lane);
/// Grants a lane that was returned and drained to the next peer, if one waits for it.
void lane_is_free(LaneIn& lane);
/// Call after a marker has been committed: later messages use the other channel.
void marker_sent(Peer& peer, const MessageHeader& header);

inline RtsDescriptor& descriptor_of(segment::Offset offset) {
  return *memory::space().segment.at<RtsDescriptor>(offset);
}
/// Returns the descriptor of a finished or cancelled RTS to its free list.
void retire_rts(Transfer& transfer);
/// How many messages a peer follows what the other one of the pair has done: see Tuner::follow().
inline constexpr std::uint8_t follows_for = 64;
inline ItsChoice& its_choice(Peer& peer, std::uint64_t bytes, bool has_gaps) {
  return peer.its_choices[has_gaps ? 1 : 0][static_cast<std::size_t>(Tuner::class_of(bytes))];
}
/// Sender: records how the peer receives this message.
inline void note_its_choice(const Transfer& transfer, Protocol protocol) {
  if (transfer.bytes < worth_timing) return; // it does not choose
  its_choice(peer_of(transfer), transfer.bytes, !transfer.buffer.is_contiguous()) = {protocol, follows_for};
}
/// Sender: if receivers have left FINs, lets progress collect them.
void note_left_fins();
/// Sender: completes the messages whose FINs were left in their descriptors. Returns true if there were any.
bool collect_left_fins();
/// Allocates the first descriptors before the program can use up the arena, so that every send can complete
/// eventually.
Result reserve_rts();

/// Returns true if the peer has finished or died, so that it reads no more messages.
bool has_left(const Peer& peer);

/// Returns the statistics of this peer in our region; tools display them from now on.
segment::PairStatistics* statistics_of(Peer& peer);
/// Displays the stores there that are in use for its packets: of the policy that was measured last.
[[gnu::cold]] void show_stores(Peer& peer, const copy::StorePolicy& stores);
/// Returns the job's initial estimates for a process at this peer's distance.
const segment::PairEstimates& estimates_of(const Peer& peer);

/// Counts a sent message of `bytes` bytes in the traffic of this path.
void count_sent(const Peer& peer, segment::Path path, std::uint64_t bytes);

} // namespace near::shm
