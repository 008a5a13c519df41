// A flag that one process raises from number to number and that others watch. See doc/queue/sequence_flag.md.
//
// The processes of a group exchange data through rings of entries, one ring for each writer (coll/shared/area.h). A
// flag in each entry gives the number of its contents, and a flag of each process gives the number up to which it has
// finished reading:
//
//   writer:   wait until every reader has finished `number - depth`      reader:   wait until entry has `number`
//             write the contents of entry `number % depth`                         read its contents
//             raise its flag to `number`                                           raise its own flag to `number`
//
// Raising is a release and watching is an acquire, so a reader sees the contents that the number announces, and a
// writer's stores come after all reads of what they replace. The second half of the protocol bounds the memory; a
// slow reader only delays writers that are `depth` entries ahead of it.
#pragma once

#include "base/atomic.h"

#include <cstdint>

namespace near::queue {

/// The number of a sequence flag. It has 64 bits and never wraps around, so a flag may stay behind for as long as its
/// owner has nothing to say.
using Number = std::uint64_t;

template <class Atomics = base::Hardware>
class SequenceFlag {
public:
  /// Publishes, as `number`, everything that the caller has done before. Called by the flag's only writer.
  void raise(Number number) {
    // SYNC: sequence-flag. Release: contents that were written before are visible to processes that see the number, and
    // these may overwrite contents that were read before.
    value_.store_release(number);
  }

  /// Whether the flag has been raised to `number` or beyond. Any process may call it.
  bool has(Number number) const { return value() >= number; }
  Number value() const {
    // SYNC: sequence-flag. Acquire: what the caller does next comes after what the writer did before it raised the
    // flag.
    return value_.load_acquire();
  }

  /// The word itself, for model tests, which give it a name.
  auto& word() { return value_; }

private:
  typename Atomics::template Atomic<Number> value_{0};
};

} // namespace near::queue
