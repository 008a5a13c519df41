// Who carries out the calls that one process (the origin) has handed to another (the target). See doc/queue/call_turn.md.
//
// The calls lie in a ring, each with a sequence flag that holds its number. The target carries them out when it looks; an origin that
// cannot wait for that carries them out itself. Either first takes the turn, and gives it back with the number of the last call
// that is complete:
//
//   origin:   write call `number`            whoever looks:   take the turn; it shows which call is next
//             raise its flag                                  carry out the calls whose flags are raised, in order
//             ...                                             leave the turn
//             completed() is `number`
//
// So each call is carried out exactly once, by one of the two, after all calls before it.
#pragma once

#include "queue/sequence_flag.h"

namespace near::queue {

template <class Atomics = base::Hardware>
class CallTurn {
public:
  enum class Holder : std::uint64_t { nobody, target, origin };

  /// Origin: returns the number of the last call that is complete. The origin may read the results of the calls up to that one, and
  /// write other calls in their places.
  Number completed() const {
    // SYNC: call-turn. Acquire: the reads of results and the writes of later calls come after what the target did.
    return state_.load_acquire() >> holder_bits;
  }
  /// Like completed(), for a process that only checks whether there is something to do, and reads nothing because of the answer.
  auto seen() const { return state_.load_relaxed() >> holder_bits; }

  /// Takes the turn. Returns false if somebody has it. Sets `completed` to the number of the last call that is complete.
  bool take(Holder who, Number& completed) {
    std::uint64_t seen = state_.load_relaxed();
    if ((seen & holder_mask) != 0) return false;
    // SYNC: call-turn. Acquire: what this process carries out comes after what the other one has.
    if (!state_.cas_acquire(seen, seen | static_cast<std::uint64_t>(who))) return false;
    completed = seen >> holder_bits;
    return true;
  }

  /// Gives the turn back, when the calls up to `completed` are complete.
  void leave(Number completed) {
    // SYNC: call-turn. Release: results, and the memory that the calls have changed, come before the number.
    state_.store_release(completed << holder_bits);
  }

  /// The word itself, for model tests, which give it a name.
  auto& word() { return state_; }

private:
  static constexpr int holder_bits = 2;
  static constexpr std::uint64_t holder_mask = 3;
  typename Atomics::template Atomic<std::uint64_t> state_{0};
};

} // namespace near::queue
