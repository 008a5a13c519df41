// What rma stores about a window, and what the window's processes share.
#pragma once

#include "copy/small.h"
#include "p2p/p2p.h"
#include "queue/shared_lock.h"
#include "rma/attached.h"
#include "rma/handed_calls.h"
#include "rma/long_moves.h"
#include "rma/repeated_reads.h"
#include "rma/ring_server.h"
#include "rma/rma.h"
#include "rma/under_way.h"
#include "transport/transport.h"

#include <algorithm>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace near::rma {

using segment::Offset;

/// What other processes need from a process: a page in its region. Locks taken by different calls lie on
/// different cache lines.
struct alignas(4096) SharedPart {
  alignas(64) queue::SharedLock<> epoch;    ///< MPI_Win_lock
  alignas(64) queue::SharedLock<> elements; ///< accumulates, one at a time
  alignas(64) Attachments attached;
  alignas(64) base::Atomic<Offset> rings{0}; ///< the newest ring with calls for this process (call_ring.h)
};
static_assert(sizeof(SharedPart) == 4096);

/// One process's part of a window, as every process knows it.
struct Member {
  // Sent by the process itself.
  std::uint64_t address = 0; ///< in that process's address space
  Offset shared = 0;         ///< offset of the memory in the segment of that process's job; 0: it is private
  Offset part = 0;           ///< offset of the SharedPart in that segment
  MPI_Aint size = 0, unit = 1;
  std::int64_t failed = 0;      ///< error class, if the process could not make its part
  std::uint64_t registered = 0; ///< 1: registered, with this key, for processes on other machines
  transport::MemoryKey key = {};

  // Where this process has mapped it. Set by agree(); null if it is not mapped.
  const segment::Segment* segment = nullptr;
  std::byte* here = nullptr; ///< the memory, if `shared` is not 0
  SharedPart* locks = nullptr;
  std::byte* direct = nullptr; ///< the memory, if this process may store at its displacements
};

/// The last accumulate that computes, has passed all checks of operation and datatype, and has elements without gaps (fast.h).
struct LastAccumulate {
  MPI_Op operation = MPI_OP_NULL;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  datatype::Kernel kernel = nullptr;
};

/// How this process holds the lock of one target.
enum class Held : std::uint8_t { nothing, shared, exclusive, unchecked };

/// The locks of targets that this process holds.
class HeldLocks {
public:
  explicit HeldLocks(int size) : by_rank_(static_cast<std::size_t>(size), Held::nothing) {}
  Held of(int rank) const { return by_rank_[static_cast<std::size_t>(rank)]; }
  bool contains(int rank) const { return of(rank) != Held::nothing; }
  bool empty() const { return count_ == 0; }
  /// Records how a lock is held that was not held before. With Held::nothing, records that a held lock is released.
  void set(int rank, Held held) {
    by_rank_[static_cast<std::size_t>(rank)] = held;
    count_ += held != Held::nothing ? 1 : -1;
  }

private:
  std::vector<Held> by_rank_;
  int count_ = 0;
};

/// Reaches the memory of targets that this process can neither load from and store to nor copy through the kernel, and
/// takes their locks. A call begins an operation and later finishes `operation`. A call that fails has begun nothing.
/// `there` is the target's memory, at an address in the target's address space.
class RemoteAccess {
public:
  virtual ~RemoteAccess() = default;
  /// Whether this object reaches that rank of the window.
  virtual bool reaches(int rank) const = 0;
  virtual Result put(const Buffer& from, int rank, const Buffer& there, const Pending& operation) = 0;
  virtual Result get(const Buffer& into, int rank, const Buffer& there, const Pending& operation) = 0;
  /// As rma::accumulate(); the arguments have been checked.
  virtual Result accumulate(const Buffer& from, const Buffer* before, int rank, const Buffer& there,
                            const Operation& how, const Pending& operation) = 0;
  /// As rma::compare_and_swap(), on one element of there.type.
  virtual Result compare_and_swap(const void* origin, const void* compare, void* before, int rank,
                                  const Buffer& there, const Pending& operation) = 0;
  /// Waits until the target confirms that all of this memory is part of the window. Fails with MPI_ERR_RMA_RANGE if it is not.
  virtual Result check(int rank, const Buffer& there) = 0;

  /// Until expect_no_more(), operations begun before or after this call complete at the target without a further call,
  /// provided the target makes progress. `rank` may be every_target.
  virtual void expect(int rank) = 0;
  virtual void expect_no_more(int rank) = 0;
  static constexpr int every_target = -1;

  /// Waits for the target's lock.
  virtual Result lock(int rank, bool exclusive) = 0;
  virtual Result unlock(int rank, bool exclusive) = 0;
  /// Takes the shared locks of all targets that this object reaches, or
  /// none of them; then `missing` is a target whose lock was not free.
  virtual Result try_all_shared(bool& taken, std::size_t& missing) = 0;
  virtual Result unlock_all_shared() = 0;

  /// Waits until this process has nothing left to do for the window's other processes, which have begun their last
  /// operation and waited for it. Afterwards only the destructor may be called.
  virtual void stop() = 0;
};

/// Makes this process's part accessible to processes on other machines, through its transports, until this object ends.
struct Exposure {
  transport::Peer& through; ///< any peer on another machine
  transport::Registration registration;
  Exposure(transport::Peer& peer, const transport::Registration& made) : through(peer), registration(made) {}
  ~Exposure() { transport::deregister_memory(through, registration); }
  Exposure(const Exposure&) = delete;
  Exposure& operator=(const Exposure&) = delete;
};

struct State : object::WindowExtension {
  explicit State(int size) : members(static_cast<std::size_t>(size)), under_way(size), held(size) {}

  std::vector<Member> members; ///< by rank
  int rank = 0;
  SharedPart* own = nullptr;
  std::unique_ptr<AttachedList> attached; ///< what this process has attached

  // Memory allocated for the window.
  void* allocated = nullptr;   ///< by this process: the whole of its part, or of all parts in a row
  std::byte* placed = nullptr; ///< this process's pages in such a row
  std::size_t placed_bytes = 0;

  LongMoves long_moves;
  LastAccumulate last_accumulate;
  MPI_Datatype last_swapped = MPI_DATATYPE_NULL; ///< the last type that MPI_Compare_and_swap accepted
  UnderWay under_way;                            ///< operations that are not complete
  std::unique_ptr<RemoteAccess> remote;          ///< null: every target can be reached from here
  std::unique_ptr<Exposure> exposure;            ///< null: nothing is registered
  std::span<CallRing> spare_rings;               ///< memory after `own`
  std::unique_ptr<HandedCalls> handed;           ///< null: no private memory on this machine can be reached
  std::unique_ptr<RingServer> server; ///< null: this process carries out nothing handed over by others

  // Operations since the last poll(); see poll().
  std::uintptr_t last_read = 0; ///< location and first bytes of the last read, as one number; 0: none
  bool has_written = false;
  RepeatedReads reads; ///< those before polls

  // Access epochs: at most one kind at a time.
  bool fenced = false;     ///< a fence has begun an epoch, if an operation uses it
  bool fence_used = false; ///< an operation has used it
  bool started = false;
  bool locked_all = false;
  bool unchecked_all = false; ///< by MPI_MODE_NOCHECK: no lock is held
  HeldLocks held;
  std::map<int, p2p::Request*> awaited; ///< targets of the started epoch; their posts, null once received
  // The exposure epoch of MPI_Win_post.
  bool posted = false;
  std::vector<p2p::Request*>
      completions; ///< messages of its origins, and the messages that announced it to them
};

inline State& state_of(const Window& window) { return static_cast<State&>(*window.extension); }

/// Whether the part of a process of this machine is outside the segment, or may be.
inline bool is_private(const Window& window, const Member& member) {
  return window.flavor == MPI_WIN_FLAVOR_DYNAMIC || (member.size != 0 && member.shared == 0);
}

inline transport::Peer& peer_of(const Window& window, int rank) {
  return transport::peer_of(*window.communicator, rank);
}

/// Fails with MPI_ERR_RANK unless the window has a process of this rank.
Result check_rank(int rank, const Window& window);
/// Waits for the target's post if the epoch requires one. Fails with MPI_ERR_RMA_SYNC unless an epoch includes the
/// target.
Result open_access(int rank, Window& window);

/// Where a target's memory lies, and how this process reaches it.
struct TargetMemory {
  std::byte* here = nullptr;       ///< address to load from and store to; may be null, as MPI_BOTTOM is
  std::uint64_t address = 0;       ///< at the target
  transport::Peer* peer = nullptr; ///< not null: reached only through the kernel
  RemoteAccess* remote = nullptr;  ///< not null: reached only through this object
  bool waits = false; ///< the call waits, since only the target knows whether its memory is in the window
};
Result find_memory(const Window& window, const Target& target, TargetMemory& memory);

/// `address` is the target's.
inline void note_read(State& state, int rank, std::uint64_t address) {
  // Two ranks may have the same address.
  state.last_read = address ^ static_cast<std::uintptr_t>(rank + 1) << 48;
}
/// Records what the last read has found, once the data have arrived.
inline void note_found(State& state, const void* data, std::uint64_t bytes) {
  std::uint64_t value = 0;
  copy::small(&value, data, std::min<std::uint64_t>(bytes, sizeof value));
  state.last_read ^= static_cast<std::uintptr_t>(value * 0x9e3779b97f4a7c15u) >> 1;
  state.last_read |= 1; // not 0
}
inline void note_found(State& state, const Buffer& found) {
  if (found.is_contiguous())
    note_found(state, found.contiguous_start(), static_cast<std::uint64_t>(found.bytes()));
}
inline void note_write(State& state) { state.has_written = true; }

inline RemoteAccess* remote_access(const State& state, int rank) {
  return state.remote != nullptr && state.remote->reaches(rank) ? state.remote.get() : nullptr;
}
/// While this object exists, operations on a target, or on all targets, complete there.
class Expectation {
public:
  Expectation(RemoteAccess* remote, int rank) : remote_(remote), rank_(rank) {
    if (remote_ != nullptr) remote_->expect(rank_);
  }
  ~Expectation() {
    if (remote_ != nullptr) remote_->expect_no_more(rank_);
  }
  Expectation(const Expectation&) = delete;
  Expectation& operator=(const Expectation&) = delete;

private:
  RemoteAccess* remote_;
  int rank_;
};

/// Waits until the operations on `rank` are complete there; see UnderWay::wait.
Result settle(Window& window, int rank, Where where);
/// settle() for all targets at once.
Result settle_all(Window& window, Where where);

/// Takes the lock of MPI_Win_lock if it is free. A process that has failed to take it exclusively must keep trying
/// (SharedLock::upgrade_exclusive).
bool try_epoch(const Member& member, Held held);
/// Releases the lock of MPI_Win_lock, and wakes processes that wait for it.
void leave_epoch(const Member& member, Held held);

/// A scope in which no other process performs an accumulate at this target.
class ElementLock {
public:
  struct IfFree {};
  static constexpr IfFree if_free{};
  explicit ElementLock(const Member& member);
  /// Takes the lock if it is free; otherwise is_held() is false.
  ElementLock(const Member& member, IfFree);
  ~ElementLock();
  ElementLock(const ElementLock&) = delete;
  ElementLock& operator=(const ElementLock&) = delete;
  bool is_held() const { return is_held_; }

private:
  queue::SharedLock<>& lock_;
  bool is_held_ = true;
};

} // namespace near::rma
