// How a cell comes home: a byte beside it, written by whoever has read it. See doc/queue/cells.md.
//
//   sender, owner of cell and flag             receiver
//   lap = lap + 1; fill the cell
//   message (cell, lap)  ------------------->  read the cell
//                                              flag = lap
//   free again when flag == lap  <-----------
//
// One lap is under way at a time, so there is one writer of the flag at a time, and eight bits are enough:
// the sender compares with the lap that it sent last, never with an older one.
#pragma once

#include "base/atomic.h"

#include <cstdint>

namespace near::queue {

template <class Atomics = base::Hardware>
struct CellFlag {
  typename Atomics::template Atomic<std::uint8_t> lap{0}; ///< in which the cell came home last

  /// Owner: whether the cell, sent last in lap `sent`, is home.
  bool is_home(std::uint8_t sent) const {
    // SYNC: cell-home. Acquire: the receiver's reads were before, so our new data does not reach them.
    return lap.load_acquire() == sent;
  }
  /// Receiver of the cell in lap `sent`: done with it.
  void give_back(std::uint8_t sent) {
    // SYNC: cell-home. Release: our reads of the cell are done before its owner may write it again.
    lap.store_release(sent);
  }
};

} // namespace near::queue
