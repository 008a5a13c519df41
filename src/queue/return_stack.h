// How packets come home: receivers push chains of a sender's packets, the sender takes all of them at once.
// See doc/queue/return_stack.md.
//
//   head --> index + 1 --> next[index] --> ... --> 0
//
// Many pushers, one taker. The taker only exchanges the whole list, so the ABA problem cannot arise: a push
// whose compare succeeds links in front of exactly the chain that its expected head stands for, whether or
// not that head was taken and pushed again in between. Progress: push is lock-free, take_all wait-free.
#pragma once

#include "base/atomic.h"

#include <cstdint>

namespace near::queue {

template <class Atomics = base::Hardware>
struct ReturnStack {
  typename Atomics::template Atomic<std::uint32_t> head{0}; ///< index + 1 of the newest; 0: empty

  /// Pushes the chain first -> ... -> last, linked through `next(index)` (index + 1 of the following, as a
  /// reference to an atomic word in the packet). Only `next(last)` is written here.
  template <class Next>
  void push_chain(std::uint32_t first, std::uint32_t last, Next&& next) {
    std::uint32_t expected = head.load_relaxed();
    do {
      next(last).store_relaxed(expected);
      // SYNC: packet-return. Our reads of the packets and the links written here come before the owner's
      // reuse.
    } while (!head.cas_release(expected, first + 1));
  }

  /// Takes everything: index + 1 of the newest, linked through next; 0 when there is nothing.
  std::uint32_t take_all() {
    if (head.load_relaxed() == 0) return 0; // spares the line when nothing came home
    // SYNC: packet-return. Pairs with push_chain: the pushers are done with the packets.
    return head.exchange_acquire(0);
  }
};

} // namespace near::queue
