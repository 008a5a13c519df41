// The interface of the transports to p2p, rma and the layers above: peers, active messages with an envelope, bulk
// transfers, access to a peer's memory (access.h), progress and waiting. No layer above sees which transport reaches a
// peer: every call goes through the peer's table of operations (peer.h). Messages are matched in a layer above (p2p).
//
// Glossary
//   peer     another process (or this one) that this process has exchanged a message with
//   packet   a pooled buffer of the sender's, for payloads that do not fit into the message's header
//   RTS      request to send, the first message of a rendezvous: it says where the data is and how long it is
//   CTS      clear to send, the answer of a receiver that wants the bytes sent
//   FIN      the receiver has all bytes
#pragma once

#include "base/kill_point.h"
#include "boot/boot.h"
#include "memory/space.h"
#include "transport/peer.h"

#include <algorithm>

namespace near::transport {

/// Registers the function that every transport calls when a message of this kind arrives.
void set_handler(Handler handler, HandlerFunction function);

/// Returns a packet that keep_packet() kept.
inline void give_back_packet(Peer& from, std::uint64_t packet) {
  from.operations->give_back_packet(from, packet);
}
/// Returns the credit of one eager message of `bytes` bytes to its sender. Call it once for each arrival under
/// Handler::p2p_eager, when the memory of the message is released.
inline void give_back_credit(Peer& peer, std::uint64_t bytes) {
  NEAR_KILL_POINT("credit-due");
  if (peer.receive.released != nullptr) [[likely]]
    peer.receive.released->give_back();
  else
    peer.operations->give_back_credit(peer, bytes);
}

/// The largest payload of an eager message, in bytes (NEAR_EAGER_LIMIT).
inline std::size_t eager_limit() { return fast_path.eager_limit; }
/// Messages of up to this many bytes are offered to send_eager(). A transport may refuse those that are longer than
/// eager_limit() at any time. Those that it takes arrive under Handler::p2p_rts although they have left.
inline std::size_t longest_eager() { return std::max(fast_path.eager_limit, fast_path.longest_eager); }
/// Packs and sends an eager message. Without a `waiter`, the message is also refused if it cannot leave now, because
/// the peer has no space for it, because nothing has reached the peer yet, or because the message may stay in this process for a
/// while: then try again with a waiter. All messages to one peer stay in order.
inline Eager send_eager(Peer& peer, const Envelope& envelope, const Buffer& buffer, Transfer* waiter) {
  return peer.operations->send_eager(peer, envelope, buffer, waiter);
}
/// Sends an eager message now. Returns false, and sends nothing, if that is not possible.
inline bool try_send_eager(Peer& peer, const Envelope& envelope, const Buffer& buffer) {
  return send_eager(peer, envelope, buffer, nullptr) == Eager::left;
}
/// Keeps messages to a peer off the fast path while earlier ones wait in a layer above (`held`), or allows the fast path again.
inline void hold_back(Peer& peer, bool held) { peer.operations->hold_back(peer, held); }

/// Sender: announces a message under Handler::p2p_rts. `transfer.done` is called when the receiver has all
/// bytes that it takes; a message too long for its buffer is the receiver's error, not the sender's.
/// Fails with MPI_ERR_NO_MEM if there is no memory to announce it.
inline Result send_rts(Peer& peer, const Envelope& envelope, const Buffer& buffer, Transfer& transfer) {
  return peer.operations->send_rts(peer, envelope, buffer, transfer);
}
/// Sender: withdraws an RTS. Returns false if the receiver has matched it; otherwise `transfer.done` will not be
/// called. Local, unless the transport has to ask the receiver: then the call waits for the answer.
inline bool cancel_rts(Transfer& transfer) { return transfer.peer->operations->cancel_rts(transfer); }
/// Receiver: matches an RTS before its buffer is known (MPI_Mprobe), so that the sender can no longer cancel it;
/// accept() follows with the same `rts`. Returns false if the sender has cancelled it.
inline bool claim_rts(Peer& peer, RtsHeader& rts) { return peer.operations->claim_rts(peer, rts); }
/// Receiver: receives the message of an RTS into `buffer`, at most buffer.bytes(). Returns false if the sender has
/// cancelled the message. `transfer.done` is called when the data is there, perhaps before accept() returns.
inline bool accept(Peer& peer, const RtsHeader& rts, std::uint64_t announced_bytes, const Buffer& buffer,
                   Transfer& transfer) {
  return peer.operations->accept(peer, rts, announced_bytes, buffer, transfer);
}
/// Receiver: returns false if an unmatched RTS has been cancelled. MPI_Probe must not report a cancelled message.
inline bool rts_is_live(const Peer& peer, const RtsHeader& rts) {
  return peer.operations->rts_is_live(peer, rts);
}

/// The function that fail() calls.
using FailureHandler = void (*)(Peer& peer);
/// Registers the only failure handler. It is p2p's, because all other layers communicate through p2p.
void set_failure_handler(FailureHandler function);

/// Declares that this process will post no more receives, and tells the peers that have asked.
void receive_no_more();
/// Whether this peer receives nothing more: it has finished, or it has called receive_no_more() and seen
/// everything that was sent before. The first call asks the peer; call it again after progress.
inline bool has_ended(Peer& peer) { return peer.operations->has_ended(peer); }
/// Returns true if no RTS of this process is under way. Withdraws or forgets those to peers that have ended.
bool sends_settled();

/// The number of peers that have not yet answered a request that makes later messages faster. While it is not 0, a
/// process that only sends should make progress from time to time.
inline constinit base::Atomic<std::uint32_t> answers_due{0};
/// Whether answers_due is above 0.
inline bool expects_answer() { return answers_due.load_relaxed() != 0; }

/// Handles what has arrived and moves what is deferred. Returns true if anything moved.
bool progress();
/// A counter that grows whenever progress moves something. Read it under the engine lock.
inline constinit std::uint32_t moves = 0;
/// Waits until done(argument) is true: polls, then sleeps on this rank's doorbell. Releases the engine lock
/// meanwhile. If several threads wait, one of them polls on behalf of all and calls the `check` of the others to
/// learn whether their done() may be true now; `check` changes nothing and cannot fail. A thread without a
/// `check` is woken after every event and calls done() itself.
void wait_until(bool (*done)(void*), void* argument, bool (*check)(void*) = nullptr);
/// How often note_progress() was called. Read it under the engine lock.
inline constinit std::uint32_t noted_progress = 0;
/// Tells waits that something has moved that no transport sees. Like a message, this makes them continue to poll.
inline void note_progress() { ++noted_progress; }
/// While a Watch exists, a process that waits also wakes up for something that another process stores in shared memory
/// and announces by DoorbellProtocol::ring_if_sleeping(): before each sleep, `changed` is called once more, under the
/// engine lock. Make and destroy a Watch under that lock. Watches nest.
class Watch {
public:
  Watch(bool (*changed)(void*), void* argument);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  /// Whether any watch exists. Needs no engine lock.
  static bool exists();
  /// Whether any watch's `changed` returns true; under the engine lock.
  static bool any_changed();

private:
  bool (*changed_)(void*);
  void* argument_;
  Watch *previous_, *next_ = nullptr;
};
/// While an AwaitedLock exists, this process is woken from sleep when a lock that processes share is given up; `waiters`
/// belongs to that lock (queue/shared_lock.h).
class AwaitedLock {
public:
  explicit AwaitedLock(base::Atomic<std::uint64_t>& waiters);
  ~AwaitedLock();
  AwaitedLock(const AwaitedLock&) = delete;
  AwaitedLock& operator=(const AwaitedLock&) = delete;

private:
  base::Atomic<std::uint64_t>& waiters_;
};
/// Wakes the processes that wait for a lock; call it after releasing the lock.
void lock_was_left(base::Atomic<std::uint64_t>& waiters);
/// Yields the processor, with the engine lock released meanwhile.
void give_way();
/// Like give_way(), for a program that polls and has found nothing. Where yields take long, it may nap instead (long_turns.h). `first`
/// is true for the first call since something has come. Returns whether it napped.
bool give_way_between_polls(bool first);
/// Wakes the threads in wait_until(). Call it after something outside wait_until() may have made their
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

/// Ends communication: waits until every message of this process has left, and tells the other processes that it
/// leaves.
void stop();
/// Whether MPI runs in this process, so that it may communicate.
bool running();

/// Returns the number of processors here if the job has more processes than that, otherwise 0. All processes get the same
/// answer.
int shared_processors();
/// The number of processes that the job can have: one for each processor, or as many as the job has if that is more.
std::uint32_t universe_size();
/// Returns true in the first process of the job that calls it, which then reports an error that all may meet. Always
/// returns true before there is a job.
bool is_first_with_fatal_error();
/// Ends the job: boot::abort_job() with the segment of this process.
[[noreturn]] void abort_job(const boot::Start& start, int code, segment::Abort how);
/// The segment of this process's own job.
const segment::Segment& job_segment();
/// Where this process runs, as mpiexec started it; Location::several everywhere without mpiexec, or while MPI
/// does not run.
segment::Location own_location();
/// The line in the segment that says what the calling thread is doing.
segment::StateLine& own_state_line();
/// The nodes of each kind of memory that are nearest to this process; NearestNodes::none everywhere without
/// mpiexec, or while MPI does not run.
segment::NearestNodes nearest_nodes();

/// Counts a message that arrived before its receive was posted; for reports.
void count_unexpected();
/// Counts a message to another machine with `bytes` bytes of payload; for reports.
void count_sent_elsewhere(std::uint64_t bytes);
/// Counts one-sided operations that were handed to their targets and are complete, and those that their origin carried out; for reports.
void count_handed(std::uint64_t complete, std::uint64_t taken_back);
/// How much this process has sent over a path, summed over all peers; for reports. Any thread may call it.
segment::Amount own_traffic(segment::Path path);
/// How much this process has sent to other machines; for reports.
segment::Amount own_sent_elsewhere();

} // namespace near::transport
