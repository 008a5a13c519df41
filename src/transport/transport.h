// The node transport, as p2p (and later rma and spawn) uses it: peers, active messages with an envelope, bulk
// transfers over a ladder of providers, progress and waiting. Matching stands above; a network transport will
// stand beside this one behind the same calls.
//
// Glossary
//   peer     another process (or this one), found by its address
//   slot     an entry of a receiver's queue: 128 bytes, header and up to inline_bytes of payload
//   packet   a pooled buffer of the sender's, for payloads between inline_bytes and the eager limit
//   RTS      request to send, the first message of a rendezvous: so many bytes for you at this address
//   CTS      clear to send, the answer of a receiver that wants the bytes pipelined
//   FIN      the receiver has pulled all bytes
//   provider one protocol that moves the bytes: direct load and store, CMA, pipelined two-copy
#pragma once

#include "datatype/datatype.h"
#include "object/communicator.h"
#include "segment/segment.h"
#include "segment/traffic.h"

#include <cstddef>
#include <cstdint>

namespace near::transport {

using datatype::Buffer;
using object::Result;

/// What a message is matched by. `bytes` is the whole message's packed length.
struct Envelope {
  std::uint64_t context = 0; ///< communicator context with its channel
  std::int32_t source = 0;   ///< sender's rank in the communicator
  std::int32_t tag = 0;
  std::uint64_t bytes = 0;
};

struct Peer; ///< the transport's own; found by address

/// Who handles an arrival. Handlers above transport register themselves: the only calls upward.
enum class Handler : std::uint8_t {
  p2p_eager = 0, ///< the whole payload is here
  p2p_rts = 1,   ///< payload is an RtsHeader
  count_upper = 2,
  // 2 and above are the transport's own.
};

/// The receiver's half of an RTS, copied out of the message: 48 bytes that p2p may keep while it is
/// unmatched.
struct RtsHeader {
  segment::Offset descriptor; ///< in the sender's region: its state word decides matched or cancelled
  std::uint64_t address;      ///< sender's virtual address of contiguous data, 0 when it is not contiguous
  segment::Offset shared;     ///< the same as an offset when the data lies in the segment, else 0
  std::uint64_t cookie;       ///< sender's transfer
  std::uint32_t generation;   ///< of the descriptor's use
  std::uint32_t flags;
  std::uint32_t prefix; ///< number of the eager prefix that follows; 0: none
};

/// A message as its handler sees it; payload and packet are valid during the call.
struct Arrival {
  Peer* from;
  const Envelope& envelope;
  const std::byte* payload;
  std::size_t payload_bytes;
  std::uint64_t
      packet; ///< nonzero: payload lies in a packet of the sender's that may be kept with keep_packet()
  RtsHeader rts() const;
};
using HandlerFunction = void (*)(Arrival& arrival);
void set_handler(Handler handler, HandlerFunction function);

/// Takes the payload's packet over: payload stays valid until give_back_packet.
void keep_packet(Arrival& arrival);
void give_back_packet(Peer& owner, std::uint64_t packet);
/// The receiver is done with one eager message of this peer: its credit is free again. Call once for each
/// arrival under Handler::p2p_eager, at the moment its memory is released.
void give_back_credit(Peer& peer);

Peer& peer_at(object::Address address);
/// The process that point-to-point calls on this communicator name by `rank`. Maps it at its first message.
Peer& peer_of(const object::Communicator& communicator, int rank);

/// Largest payload that send_eager takes now for this peer (knob eager_limit).
std::size_t eager_limit();
/// How far a whole message has come.
enum class Eager : std::uint8_t {
  refused, ///< no credit or no packet: nothing was sent; make an RTS instead
  waits,   ///< packed; it leaves with a progress that finds room, and `waiter->done` is called then
  left,
};
struct Transfer;
/// Sends a whole message, packed from the view. Without a waiter it is refused as well when the peer's
/// channel is full. Order among all sends to one peer is kept.
Eager send_eager(Peer& peer, const Envelope& envelope, const Buffer& view, Transfer* waiter);
/// The same for who has nothing that could wait.
inline bool try_send_eager(Peer& peer, const Envelope& envelope, const Buffer& view) {
  return send_eager(peer, envelope, view, nullptr) == Eager::left;
}

/// While a peer is held back, its messages take no fast path (fast.h) that the caller does not see: earlier
/// ones wait above the transport.
void hold_back(Peer& peer, bool held);

/// A bulk transfer, one on each side. Embedded in p2p's requests, so no allocation is needed.
struct Transfer {
  /// Called from progress (or at once) when this side is finished; `error` is an MPI error class.
  void (*done)(Transfer& transfer, int error) = nullptr;
  Peer* peer = nullptr;
  Buffer view;
  std::uint64_t bytes = 0;          ///< packed bytes that move
  std::uint64_t position = 0;       ///< pipelined: packed bytes moved so far
  std::uint64_t fragment_bytes = 0; ///< pipelined: bytes in each packet
  std::uint32_t prefix = 0;         ///< sender: number of its eager prefix, 0: none
  std::uint64_t began_ns = 0;       ///< receiver: when the protocol was chosen
  std::uint8_t protocol = 0;        ///< receiver: which
  std::uint8_t size = 0;            ///< sender: the descriptor's (rts_sizes)
  std::uint64_t cookie = 0;         ///< names this transfer in messages of the transport
  segment::Offset descriptor = 0;
  std::uint64_t remote_cookie = 0;
  bool busy = false;
  Transfer *previous = nullptr, *next = nullptr; ///< the sender's list of its RTS messages under way
};

/// Sender: announces the view under Handler::p2p_rts. `transfer.done` is called when the receiver has it
/// all (or when it was too long for the receiver's buffer: that is the receiver's error, not the sender's).
/// Fails with MPI_ERR_NO_MEM when descriptors are used up and nothing can be freed.
Result send_rts(Peer& peer, const Envelope& envelope, const Buffer& view, Transfer& transfer);
/// Sender: true when the receiver has not matched it: it is gone, done will not be called. Local.
bool cancel_rts(Transfer& transfer);
/// Receiver: matches the RTS before its buffer is known (matched probe), so that the sender cannot cancel
/// it any more; accept() follows with the same rts. False when the sender cancelled it.
bool claim_rts(RtsHeader& rts);
/// Receiver: takes the RTS into `view`, at most view.bytes(). False when the sender cancelled it: look for
/// another message. `transfer.done` is called when the data is there, perhaps before accept returns.
bool accept(Peer& peer, const RtsHeader& rts, std::uint64_t offered_bytes, const Buffer& view,
            Transfer& transfer);
/// This process posts no receive any more: peers that wait for a last one are told.
void receive_no_more();
/// Whether this peer receives no more: it has finished, or it has called receive_no_more() and seen all that
/// we sent before. Ask again after progress; the first call sends it the question.
bool has_ended(Peer& peer);
/// Whether every RTS of ours is finished; those to a peer that has ended are withdrawn, or forgotten.
bool sends_settled();
/// Receiver: whether an unmatched RTS is still there (probe must not report a cancelled one).
bool rts_is_live(const RtsHeader& rts);

/// Whether a peer owes us an answer about a lane: who only sends should look for it once in a while.
bool expects_answer();
/// Runs everything that is ready; true when something moved.
bool progress();
/// Waits until done(argument) is true: polls, then sleeps on this rank's doorbell. Releases the engine lock
/// while it waits. If several threads wait, one of them looks for messages on behalf of all, and calls the
/// others' `look` to learn whether done() may be true now; `look` takes nothing and cannot fail. Without a
/// `look` the waiting thread is woken after every event, to call done() itself.
void wait_until(bool (*done)(void*), void* argument, bool (*look)(void*) = nullptr);
/// Waits until attempt(argument) succeeds, which takes a lock that processes share; `waiters` is its word
/// (queue/shared_lock.h). A failed attempt may leave nothing but its announcement.
void wait_for_lock(base::Atomic<std::uint64_t>& waiters, bool (*attempt)(void*), void* argument);
/// Such a lock has been left: ends the sleep of those who want it.
void lock_was_left(base::Atomic<std::uint64_t>& waiters);
/// Yields the processor, and meanwhile releases the engine lock.
void give_way();
/// Something that another thread may wait for was done outside of wait_until(): ends the waiters' sleep.
void wake_waiting_threads();

/// One lock for the whole engine, taken only under MPI_THREAD_MULTIPLE. Recursive, so that callbacks may call
/// MPI.
class EngineLock {
public:
  EngineLock() : held_(threads_) {
    if (held_) [[unlikely]]
      enter();
  }
  ~EngineLock() {
    if (held_) [[unlikely]]
      leave();
  }
  EngineLock(const EngineLock&) = delete;
  EngineLock& operator=(const EngineLock&) = delete;
  static void allow_threads(bool allowed) { threads_ = allowed; }
  static bool threads_allowed() { return threads_; }

private:
  // Static, so that a lock which lives in a register need not be in memory.
  static void enter();
  static void leave();
  bool held_;
  static inline bool threads_ = false;
};

/// What the start-up contract told this process.
struct Job {
  int segment_descriptor = -1; ///< -1: a singleton makes its own
  std::uint32_t slot = 0;
  std::uint32_t size = 1;
};

/// Maps the segment, lays out and reserves this process's region, publishes it, waits until all of the job
/// are ready. Every failure names the limit or the call.
Result start(const Job& job);
/// Ends traffic: waits until every message of ours has left, and marks this process finalized.
void stop();
bool running();
/// Whether the job has more processes here than processors; all of them get the same answer.
bool shares_processors();
const segment::Segment& job_segment();
/// Where this process runs, as mpiexec started it; Place::several everywhere without mpiexec, or while MPI
/// does not run.
segment::Place own_place();
segment::StateLine& own_state_line();
/// The nodes of each kind of memory that are nearest to this process; NearestNodes::none everywhere without
/// mpiexec, or while MPI does not run.
segment::NearestNodes nearest_nodes();

/// A message came before its receive and is kept; for reports.
void count_unexpected();
/// What this process has sent by a path, summed over peers; any thread; for reports.
segment::Amount own_traffic(segment::Path path);

} // namespace near::transport
