// Short operations on private memory of other processes of this machine: the origin's side (call_ring.h).
//
// A copy by the kernel takes some microseconds, however short. So this process first hands such operations to their target, whose
// answer takes a tenth of that if it is in MPI and polls. Operations go on being handed over until a call needs them to be
// complete; what the target has not begun by then, or a short time later, this process takes back, and does itself with as few
// calls of the kernel as it can. So no target has to take part. How long a target is waited for depends on whether it has answered
// lately.
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

/// An operation as it is handed over. The origin's data are copied at once.
struct Handing {
  HandedKind kind;
  Buffer there; ///< the target's memory
  std::array<Buffer, 2>
      operands{}; ///< a put's data; an accumulate's; a swap's new element and the one to compare with
  std::uint8_t operand_count = 0;
  const Buffer* into = nullptr;                  ///< where what was there before goes; null: nowhere
  object::HandleBits operation = 0, element = 0; ///< of an accumulate
  bool elements_have_gaps = false;
};

class HandedCalls {
public:
  explicit HandedCalls(object::Window& window);
  /// All calls must be complete, and no target may look for calls any more.
  ~HandedCalls();
  HandedCalls(const HandedCalls&) = delete;
  HandedCalls& operator=(const HandedCalls&) = delete;

  /// Hands an operation over. Sets `handed` to false if it has to be done in another way: it is too long, or there is no memory
  /// for a ring, or too few operations so far to need one. Then all operations handed over before it are complete. Fails if one
  /// of those has.
  base::Result hand(int rank, const Handing& operation, bool& handed);

  /// Returns when what was handed to that rank is complete. Fails if something has failed since the last time.
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
    bool ring_is_ours = false; ///< allocated for it alone
    queue::Number handed = 0,
                  collected = 0;  ///< the last call that was handed over, and whose result has been taken
    std::uint32_t results = 0;    ///< that have not been taken
    std::uint32_t used = 0;       ///< of CallRing::data
    std::uint32_t operations = 0; ///< before there was a ring
    bool busy = false;            ///< a thread completes calls
    int threads_waiting = 0;      ///< until it is not busy
    Patience waiting;             ///< for its answer
    Waking waking;
    std::array<Buffer, CallRing::most> into; ///< where results go; without a datatype: nowhere
    std::array<Buffer, CallRing::most>
        there;                            ///< the target's memory, if it has gaps; else without a datatype
    std::unique_ptr<std::byte[]> scratch; ///< as large as the ring's data, and short data of all calls
    FirstFailure failure;                 ///< since it was last told

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
  std::vector<Run> runs_;                        ///< the same
};

} // namespace near::rma
