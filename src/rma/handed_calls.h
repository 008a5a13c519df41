// Short operations on private memory of other processes of this machine: the origin's side (call_ring.h).
//
// Even a short copy by the kernel takes some microseconds. So this process first hands such operations to their target; an answer
// from a target that is in MPI and polls takes a tenth of that. Operations are handed over until a call needs them to be complete.
// Whatever the target has not begun by then, or a short time later, this process takes back and does itself with as few system
// calls as it can. So no target has to take part. How long a target is waited for depends on whether it has answered lately.
#pragma once

#include "datatype/datatype.h"
#include "rma/call_ring.h"
#include "rma/patience.h"
#include "rma/under_way.h"

#include <array>
#include <memory>
#include <vector>

namespace near::object {
struct Window;
}

namespace near::rma {

using datatype::Buffer;

/// An operation to be handed over. The origin's data are copied at once.
struct Handing {
  HandedKind kind;
  Buffer there; ///< the target's memory
  std::array<Buffer, 2>
      operands{}; ///< a put's or an accumulate's data; a swap's new element and the one to compare with
  std::uint8_t operand_count = 0;
  const Buffer* into = nullptr;                  ///< where the previous contents go; null: nowhere
  object::HandleBits operation = 0, element = 0; ///< of an accumulate
  bool elements_have_gaps = false;
};

class HandedCalls {
public:
  explicit HandedCalls(object::Window& window);
  /// Precondition: all calls are complete, and no target looks for calls any more.
  ~HandedCalls();
  HandedCalls(const HandedCalls&) = delete;
  HandedCalls& operator=(const HandedCalls&) = delete;

  /// Hands an operation over. Sets `handed` to false if it has to be done differently: it is too long, there is no memory for a
  /// ring, or too few operations so far need one. Then all operations handed over before it are complete. Fails if one of those
  /// has failed.
  base::Result hand(int rank, const Handing& operation, bool& handed);

  /// Returns when everything handed to that rank is complete. Fails if something has failed since the last call.
  base::Result finish(int rank, Where where) {
    Target* target = targets_[static_cast<std::size_t>(rank)].get();
    if (target == nullptr || target->handed == target->collected) return {};
    // Operands have been copied.
    if (where == Where::origin && target->results == 0) return {};
    return complete(*target, rank);
  }
  /// finish() for all ranks; the first failure is returned after all of them.
  base::Result finish_all(Where where);

private:
  struct Target {
    CallRing* ring = nullptr;
    bool ring_is_ours = false; ///< allocated for this target alone
    queue::Number handed = 0,
                  collected = 0;  ///< the last call handed over; the last one whose result was taken
    std::uint32_t results = 0;    ///< not taken yet
    std::uint32_t used = 0;       ///< of CallRing::data
    std::uint32_t operations = 0; ///< before there was a ring
    bool busy = false;            ///< a thread is completing calls
    int threads_waiting = 0;      ///< until `busy` is false
    Patience waiting;             ///< for the target's answer
    Waking waking;
    std::array<Buffer, CallRing::most> into; ///< where results go; without a datatype: nowhere
    std::array<Buffer, CallRing::most>
        there;                            ///< the target's memory, if it has gaps; else without a datatype
    std::unique_ptr<std::byte[]> scratch; ///< as large as the ring's data, and short data of all calls
    FirstFailure failure;                 ///< since the last one was reported

    std::byte* scratch_of(const HandedCall& call, queue::Number number) const;
  };

  Target& target(int rank);
  bool is_worth_ring(Target& target) const;
  bool make_ring(Target& target, int rank);
  void collect(Target& target);
  base::Result complete(Target& target, int rank);
  bool is_answered(Target& target, int rank);
  void serve_others();
  bool take_back(Target& target, int rank);
  static void forget(Target& target);
  void carry_out(Target& target, int rank, queue::Number first);
  bool find_runs(const Buffer& there);
  void move(Target& target, int rank, HandedKind kind, queue::Number first);
  void change_with_gaps(Target& target, int rank, queue::Number number);
  queue::Number change(Target& target, int rank, queue::Number first);

  object::Window& window_;
  std::vector<std::unique_ptr<Target>> targets_; ///< by rank; null until the first operation
  std::vector<int> with_ring_;                   ///< ranks
  std::vector<datatype::Piece> pieces_;          ///< of the memory of an operation
  std::vector<Run> runs_;                        ///< of that memory
};

} // namespace near::rma
