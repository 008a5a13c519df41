// A partial result of a reduction: a value that grows by absorbing neighbours' values in rank order, in as
// few buffers and copies as possible.
//
// Order is kept for every operation, not only for those that are not commutative: ranks that compute the same
// partial result evaluate the same expression and so get the same bits, even where a op b and b op a differ
// in them (signed zeros under MAX, NaN payloads, users' operations).
#pragma once

#include "coll/collective_group.h"

namespace near::coll {

class Partial {
public:
  /// `own` is this rank's vector and only read, unless its address is `home`. The result is wanted at `home`,
  /// which may be null.
  Partial(CollectiveGroup& group, const Operation& operation, const Buffer& own, void* home)
      : group_(group), operation_(operation), value_(own), home_(home), writable_(own.address == home) {}

  /// The value so far. Valid until the next absorb.
  const Buffer& value() const { return value_; }
  /// A buffer for a value to absorb, distinct from value().
  Result make_incoming(Buffer& incoming);
  /// value = incoming op value: `incoming` came from lower ranks.
  Result absorb_lower();
  /// value = value op incoming: `incoming` came from higher ranks.
  Result absorb_higher();
  /// Replaces the value by `incoming`.
  void take_incoming();
  /// Copies the value to `home`, unless it is there.
  Result settle();

private:
  CollectiveGroup& group_;
  const Operation& operation_;
  Buffer value_;
  void* home_;
  bool writable_;         ///< value_ lies in memory that may be overwritten
  void* other_ = nullptr; ///< such memory, which value_ does not occupy
};

} // namespace near::coll
