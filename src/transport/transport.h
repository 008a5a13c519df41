// The node transport, as p2p (and later rma and spawn) uses it: peers, active messages with an envelope, bulk
// transfers over a ladder of providers, progress and waiting. Matching stands above; a network transport will
// stand beside this one behind the same calls.
//
// Glossary
//   peer     another process (or this one) that this process has exchanged a message with
//   slot     an entry of a receiver's queue: 128 bytes, header and up to inline_bytes of payload
//   packet   a pooled buffer of the sender's, for payloads between inline_bytes and the eager limit
//   RTS      request to send, the first message of a rendezvous: it says how many bytes lie where
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

struct Peer; ///< known to the transport only; see peer_at() and peer_of()

/// The kinds of messages that layers above handle. They register their handlers with set_handler(); these are
/// the only calls upward.
enum class Handler : std::uint8_t {
  p2p_eager = 0, ///< the whole payload is here
  p2p_rts = 1,   ///< payload is an RtsHeader
  count_upper = 2,
  // 2 and above are the transport's own.
};

/// What an RTS says of its message: 48 bytes, which p2p copies out of the arrival and keeps until a receive
/// matches.
struct RtsHeader {
  segment::Offset descriptor; ///< in the sender's region: its state word decides matched or cancelled
  std::uint64_t address;      ///< of the data in the sender's memory; 0: the data is not contiguous
  segment::Offset shared;     ///< of the data in the segment; 0: it lies elsewhere
  std::uint64_t cookie;       ///< names the sender's transfer
  std::uint32_t generation;   ///< of the descriptor's use
  std::uint32_t flags;
  std::uint32_t prefix; ///< number of the eager prefix that follows; 0: none
};

/// A message as its handler sees it. Payload and packet are valid during the call.
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

/// Keeps the packet: the payload stays valid until give_back_packet().
void keep_packet(Arrival& arrival);
void give_back_packet(Peer& owner, std::uint64_t packet);
/// Returns the credit of one eager message to its sender. Call it once for each arrival under
/// Handler::p2p_eager, when the memory of the message is released.
void give_back_credit(Peer& peer);

Peer& peer_at(object::ProcessId process);
/// The process that point-to-point calls on this communicator name by `rank`. Maps it at its first message.
Peer& peer_of(const object::Communicator& communicator, int rank);

/// The largest payload of an eager message, in bytes (NEAR_EAGER_LIMIT).
std::size_t eager_limit();
/// What became of an eager message.
enum class Eager : std::uint8_t {
  refused, ///< no credit or no packet: nothing was sent; send an RTS instead
  waits,   ///< packed; it leaves when progress finds a free slot, and then `waiter->done` is called
  left,
};
struct Transfer;
/// Packs and sends an eager message. Without a `waiter` it is also refused when the peer's channel has no free
/// slot. All messages to one peer stay in order.
Eager send_eager(Peer& peer, const Envelope& envelope, const Buffer& view, Transfer* waiter);
/// Sends an eager message now; false if that is not possible.
inline bool try_send_eager(Peer& peer, const Envelope& envelope, const Buffer& view) {
  return send_eager(peer, envelope, view, nullptr) == Eager::left;
}

/// While a peer is held back, no message to it takes the fast path: earlier ones wait above the transport.
void hold_back(Peer& peer, bool held);

/// One side of a rendezvous. It is a part of p2p's requests, so it needs no allocation.
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

/// Sender: announces a message under Handler::p2p_rts. `transfer.done` is called when the receiver has all
/// bytes that it takes; that a message was too long for its buffer is the receiver's error, not the sender's.
/// Fails with MPI_ERR_NO_MEM if there is no free descriptor and no memory for more.
Result send_rts(Peer& peer, const Envelope& envelope, const Buffer& view, Transfer& transfer);
/// Sender: withdraws an RTS. Returns false if the receiver has matched it; otherwise `transfer.done` will not be
/// called. Local.
bool cancel_rts(Transfer& transfer);
/// Receiver: matches an RTS before its buffer is known (MPI_Mprobe), so that the sender cannot cancel it any
/// more; accept() follows with the same `rts`. Returns false if the sender has cancelled it.
bool claim_rts(RtsHeader& rts);
/// Receiver: receives the message of an RTS into `view`, at most view.bytes(). Returns false if the sender has
/// cancelled the message. `transfer.done` is called when the data is there, perhaps before accept() returns.
bool accept(Peer& peer, const RtsHeader& rts, std::uint64_t offered_bytes, const Buffer& view,
            Transfer& transfer);
/// Declares that this process posts no more receives, and tells the peers that have asked.
void receive_no_more();
/// Whether this peer receives nothing more: it has finished, or it has called receive_no_more() and seen
/// everything that was sent before. The first call asks the peer; call it again after progress.
bool has_ended(Peer& peer);
/// Whether no RTS of this process is under way. Withdraws or forgets those to peers that have ended.
bool sends_settled();
/// Receiver: whether an unmatched RTS has not been cancelled. MPI_Probe must not report a cancelled message.
bool rts_is_live(const RtsHeader& rts);

/// Whether a peer still has to answer a request for a lane. A process that only sends should then make
/// progress from time to time.
bool expects_answer();
/// Handles what has arrived and moves what is deferred; true if anything moved.
bool progress();
/// Waits until done(argument) is true: polls, then sleeps on this rank's doorbell. Releases the engine lock
/// meanwhile. If several threads wait, one of them polls on behalf of all and calls the `look` of the others to
/// learn whether their done() may be true now; `look` changes nothing and cannot fail. A thread without a
/// `look` is woken after every event and calls done() itself.
void wait_until(bool (*done)(void*), void* argument, bool (*look)(void*) = nullptr);
/// Waits until attempt(argument) has taken a lock that processes share; `waiters` belongs to that lock
/// (queue/shared_lock.h). A failed attempt must leave nothing behind but its announcement.
void wait_for_lock(base::Atomic<std::uint64_t>& waiters, bool (*attempt)(void*), void* argument);
/// Wakes the processes that wait for a lock; call it after releasing the lock.
void lock_was_left(base::Atomic<std::uint64_t>& waiters);
/// Yields the processor; the engine lock is released meanwhile.
void give_way();
/// Wakes the threads in wait_until(); call it after something outside of wait_until() may have made their
/// conditions true.
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
