// A peer: another process (or this one) that this process has exchanged a message with, and what its transport offers.
#pragma once

#include "queue/credit.h"
#include "queue/lane.h"
#include "segment/segment.h"
#include "segment/traffic.h"
#include "transport/access.h"
#include "transport/message.h"

#include <cstddef>
#include <span>
#include <stdexcept>

namespace near::transport {

struct Peer;

/// What the fast path needs to send to one peer. A small message touches only the first cache line. Invariant: the
/// credits of lane.left() messages that have not been sent yet are paid. A transport without a fast path leaves this
/// unchanged: left() stays 0.
struct alignas(64) SendState {
  queue::LaneWriter<> lane;        ///< left(): small messages that may be sent without a check
  std::uint32_t next_sequence = 0; ///< of our next message to the peer
  segment::Doorbell* doorbell = nullptr;
  segment::Traffic* traffic = nullptr; ///< what was sent to the peer inline
  queue::CreditAccount<> credit;       ///< for eager messages under way to the peer
  Peer* peer = nullptr;                ///< nullptr: not mapped yet
};

static_assert(offsetof(SendState, credit) == 64, "a small message touches one line of it");

/// What the fast path needs to receive from one peer. Without a fast path, `lane` stays null.
struct ReceiveState {
  queue::LaneReader<>* lane = nullptr;        ///< the lane from the peer, in our region, while it is open
  queue::CreditCounter<>* released = nullptr; ///< in our region: how many of its messages we have released
  std::uint32_t expected_sequence = 0;        ///< of the peer's next message to us
  bool whole = true;                          ///< the peer's last message was eager, not an RTS
  Peer* peer = nullptr;                       ///< nullptr: not mapped yet
};

/// What a transport offers for its peers. There is one table for each transport, and every peer points to that of its
/// own transport. See the functions with the same names in transport.h and access.h.
struct Operations {
  const char* name; ///< of the transport: "shm"

  // Messages
  Eager (*send_eager)(Peer& peer, const Envelope& envelope, const Buffer& buffer, Transfer* waiter);
  Result (*send_rts)(Peer& peer, const Envelope& envelope, const Buffer& buffer, Transfer& transfer);
  bool (*cancel_rts)(Transfer& transfer);
  bool (*claim_rts)(Peer& peer, RtsHeader& rts);
  bool (*rts_is_live)(const Peer& peer, const RtsHeader& rts);
  bool (*accept)(Peer& peer, const RtsHeader& rts, std::uint64_t announced_bytes, const Buffer& buffer,
                 Transfer& transfer);
  void (*give_back_packet)(Peer& peer, std::uint64_t packet);
  void (*give_back_credit)(Peer& peer,
                           std::uint64_t bytes); ///< only called where ReceiveState::released is null
  void (*hold_back)(Peer& peer, bool held);
  bool (*has_ended)(Peer& peer);
  /// Called when the peer has failed. Completes every transfer under way with it with MPI_ERR_PROC_ABORTED, and drops what
  /// waits to be sent to it. Messages that wait to be accepted stay where they are: accept() later delivers those that
  /// have arrived completely, and ends all others with that error. Null if a failed peer always ends this process's job.
  void (*abandon)(Peer& peer);

  // The peers' memory. These are null if the transport reaches none of it; `atomic` also if it has no atomic operations.
  Result (*register_memory)(void* address, std::size_t bytes, copy::MemoryKind kind, Registration& made);
  void (*deregister_memory)(const Registration& registration); ///< null if a registration holds nothing
  Capabilities (*capabilities)(Peer& peer, const MemoryKey& key);
  void (*get)(Peer& peer, const MemoryKey& key, std::span<os::Run> theirs, std::span<os::Run> mine,
              Access& access);
  void (*put)(Peer& peer, const MemoryKey& key, std::span<os::Run> theirs, std::span<os::Run> mine,
              Access& access);
  /// The word is aligned and has 4 or 8 bytes, as the caller has checked.
  void (*atomic)(Peer& peer, const MemoryKey& key, std::uint64_t address, const AtomicOperation& operation,
                 Access& access);
  bool (*flush)(Peer& peer, int& error); ///< null if an access that is done is complete at the peer, too
};

/// A process that this one exchanges messages with. Its transport makes it at the first message to or from the process;
/// it is kept until this process ends. Communicators point to their peers. All processes that are not mapped yet share
/// one, `unmapped`, with which nothing takes the fast path. Transports derive their own peers from Peer.
struct Peer : object::Process {
  ReceiveState receive; // first, so that a receive needs no separate address for it
  SendState send;
  const Operations* operations = nullptr;
  object::ProcessId process;
};

/// Whether fail() was called for this peer.
bool has_failed(const Peer& peer);

/// What the fast path must know about the node. Set when the node transport starts.
struct FastPath {
  std::uint64_t eager_limit = 0, longest_eager = 0;
  int polls = 32; ///< of a lane whose next message is probably on its way; 1 where ranks share processors
};
inline constinit FastPath fast_path;

/// Thrown if a process cannot be reached. The text says why.
struct Unreachable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Returns the peer for `process`, and has its transport map it if this is the first message. Throws std::bad_alloc or
/// Unreachable.
Peer& peer_at(object::ProcessId process);
/// Returns the process that point-to-point calls on this communicator name by `rank`. Maps it at its first message.
Peer& peer_of(const object::Communicator& communicator, int rank);
/// Makes the communicator point to the peer if a message to us has mapped it in the meantime.
[[gnu::cold]] void find_peer(const object::Communicator& communicator, int rank);

} // namespace near::transport
