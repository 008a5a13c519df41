// A collective group: a list of ranks, a context, and the verbs that collective algorithms are written in.
//
// The ranks are those of a communicator or some of them: an algorithm that is written for a group runs on the
// leaders of nodes, or on the ranks of one node, without a communicator made for them. The context is the
// communicator's collective channel and a tag. A group that stands for a whole communicator, or for some of
// its ranks with a tag space of their own, takes a fresh tag; a part of another group shares that one's tag.
//
// An algorithm is a straight-line program of verbs: which it calls depends on its arguments, never on
// data that arrived. So the same text serves all kinds of calls. A blocking collective executes each
// verb at once. A persistent one records them in a Schedule, which the progress engine runs, and a nonblocking
// one those that it cannot execute without a wait (schedule.h).
//
// Messages of a collective travel on the communicator's collective channel under one tag per call, so
// successive collectives never match each other; inside one call, messages between two ranks match in program
// order. That holds for the parts of a group too: both ranks of a pair go through them in the same order.
#pragma once

#include "coll/call.h"
#include "p2p/p2p.h"
#include "pattern/machines.h"

#include <memory>
#include <vector>

namespace near::coll {

using object::Communicator;
using pattern::Machines;
using pattern::RankList;

class Area;
class AreaCall;
class Schedule;

/// The tags of the calls of one list of ranks of a communicator: the members count their calls alike,
/// whatever the communicator's other ranks do meanwhile. Lists that have a pair of ranks in common need
/// spaces with different numbers.
class TagSpace {
public:
  static constexpr int spaces = 1 << 10, tags = 1 << 20;
  /// `number` is less than `spaces`.
  explicit TagSpace(int number) : first_((1 << 30) | number * tags) {}
  int next() { return first_ + static_cast<int>(sequence_++ % tags); }
  /// The next tag of the whole communicator; in none of the spaces.
  static int next(Communicator& communicator) {
    return static_cast<int>(communicator.collective_sequence++ & ((1u << 30) - 1));
  }

private:
  int first_;
  std::uint32_t sequence_ = 0;
};

class CollectiveGroup {
public:
  /// Takes the communicator's next collective tag: every member makes its groups in the same order. The verbs
  /// are executed, or recorded into `schedule`.
  /// `area` is the communicator's area in shared memory, if this call may use it.
  explicit CollectiveGroup(Communicator& communicator, Schedule* schedule = nullptr, Area* area = nullptr);
  /// For a call that has already taken its numbers and sends no messages.
  CollectiveGroup(Communicator& communicator, AreaCall& begun);
  /// Some ranks of an intracommunicator, under the next tag of their space.
  CollectiveGroup(Communicator& communicator, RankList ranks, TagSpace& tags, Schedule* schedule = nullptr);
  /// Some ranks of `whole`, for a phase of its call; `whole` must outlive it. Tag and schedule are those of
  /// `whole`: two groups that have a pair of ranks in common finish what they have started before the other is used,
  /// and in a recorded call finish_until() counts what any part has started.
  CollectiveGroup(const CollectiveGroup& whole, RankList ranks);
  /// The same for ranks that have an area, unless it is null: `asked` is what the program calls, which is what the ranks compare
  /// there.
  CollectiveGroup(const CollectiveGroup& whole, RankList ranks, Area* area, const Call& asked);
  /// Cancels messages that are still under way, which happens only after an error.
  ~CollectiveGroup();
  CollectiveGroup(const CollectiveGroup&) = delete;
  CollectiveGroup& operator=(const CollectiveGroup&) = delete;

  /// This process's position in the group; -1 if it is not a member. Only members call the verbs.
  int rank() const { return rank_; }
  int size() const { return size_; }
  bool is_member() const { return rank_ >= 0; }
  /// The number of ranks that messages can be exchanged with: the other group's on an intercommunicator, else
  /// size().
  int peers() const { return ranks_.size(); }
  Communicator& communicator() const { return communicator_; }
  /// The area in which the ranks can exchange data without messages; null if they have none.
  Area* area() const { return area_; }
  /// The machines of the ranks if there are several, and the area of those on this one; else null.
  const Machines* machines() const { return machines_; }
  Area* area_here() const { return area_here_; }
  void set_machines(const Machines* machines, Area* area_here) {
    machines_ = machines;
    area_here_ = area_here;
  }
  /// Whether every rank is on a machine of its own, although machines() is null: leaders.
  bool is_among_leaders() const { return is_among_leaders_; }
  void set_among_leaders() { is_among_leaders_ = true; }
  /// What the program calls, if this group's calls are phases of it; else null.
  const Call* asked() const { return asked_; }
  MPI_Count asked_bytes() const { return asked_bytes_; }
  /// The number of the phase; the first is 0.
  int phase() const { return phase_; }
  void next_phase() { ++phase_; }
  /// The call's use of the area, if it has begun; else null, and the algorithm begins it.
  AreaCall* area_call() const { return area_call_; }
  /// The bytes of the call, as choice::Facts has them. Set by run().
  MPI_Count bytes() const { return bytes_; }
  void set_bytes(MPI_Count bytes) { bytes_ = bytes; }
  /// Whether this rank could not start a message, or had no memory for temporary space: others may wait for what it would send.
  bool has_dropped_out() const { return dropped_out_; }
  /// What the verbs are recorded into; null if they are executed, whether they wait or not.
  Schedule* schedule() const { return schedule_; }

  Result send(const Buffer& buffer, int to);
  Result receive(const Buffer& buffer, int from);
  Result send_receive(const Buffer& out, int to, const Buffer& in, int from);

  /// Starts a send or receive; finish_until() waits for it.
  Result start_send(const Buffer& buffer, int to);
  Result start_receive(const Buffer& buffer, int from);
  /// Starts a receive if `condition` is true; a recorded receive evaluates it at its turn.
  Result start_receive_if(const bool& condition, const Buffer& buffer, int from);
  /// Waits, oldest first, until at most `remaining` of the started ones are under way; the first error is
  /// returned after all waits. Fails with MPI_ERR_OTHER once ranks have called different collectives in the area.
  Result finish_until(std::size_t remaining);
  Result finish_all() { return finish_until(0); }

  /// Copies from.bytes() bytes within this process, between two layouts; does nothing if both are the
  /// same memory.
  Result copy(const Buffer& from, const Buffer& to);
  /// inout = in op inout, element by element.
  Result reduce(const Operation& operation, const Buffer& in, const Buffer& inout);

  /// Memory for `count` elements, addressed like a user's buffer (lower bounds honoured), until the
  /// collective ends. Fails with MPI_ERR_NO_MEM.
  Result scratch(MPI_Count count, Datatype& type, Buffer& made);
  /// Memory for packed bytes, until the collective ends. Fails with MPI_ERR_NO_MEM.
  Result scratch_bytes(MPI_Count bytes, Buffer& made);

private:
  Result started(Result result);
  Result wait(p2p::Request& request);
  Result allocate(std::size_t bytes, std::byte*& at);
  /// The communicator's rank of a member or, on an intercommunicator, of a rank of the other group.
  int communicator_rank(int member) const {
    const int rank = ranks_[member];
    return whole_ != nullptr ? whole_->communicator_rank(rank) : rank;
  }

  static constexpr std::size_t inline_scratch = 1024; // small reductions allocate nothing
  static constexpr std::size_t inline_pending = 8;

  Communicator& communicator_;
  Schedule* schedule_;
  Area* area_ = nullptr;
  bool dropped_out_ = false;
  AreaCall* area_call_ = nullptr;
  const Machines* machines_ = nullptr;
  Area* area_here_ = nullptr;
  const Call* asked_ = nullptr;
  MPI_Count asked_bytes_ = 0;
  int phase_ = -1;
  bool is_among_leaders_ = false;
  MPI_Count bytes_ = 0;
  const CollectiveGroup* whole_ = nullptr; ///< what ranks_ refers to; null: the communicator
  RankList ranks_;
  int rank_, size_;
  int tag_;
  // Started and not finished, oldest first: pending_ is used until it is full, then overflow_.
  std::size_t pending_count_ = 0;
  p2p::Request* pending_[inline_pending];
  std::vector<p2p::Request*> overflow_;
  std::size_t scratch_used_ = 0;
  std::vector<std::unique_ptr<std::byte[]>> owned_;
  alignas(64) std::byte scratch_[inline_scratch]; // not initialised
};

/// MPI_BYTE, the datatype that packed data is sent as. Transports do not compare type signatures.
Datatype& byte_type();
/// The buffer of `bytes` packed bytes from `offset` on.
Buffer byte_range(const Buffer& packed, MPI_Count offset, MPI_Count bytes);

/// The least number of bytes that hold `count` elements, and where in them the first element's address
/// lies, such that addresses have malloc's alignment. False if the size overflows.
bool scratch_layout(MPI_Count count, const Datatype& type, std::size_t& bytes, std::ptrdiff_t& origin);

} // namespace near::coll
