// How a packet returns to its owner: the reader writes a byte next to it. See doc/queue/packets.md.
//
//   sender, owner of packet and flag             receiver
//   generation = generation + 1; fill the packet
//   message (packet, generation)  ------------------->  read the packet
//                                              flag = generation
//   free again when flag == generation  <-----------
//
// Only one generation is under way at a time, so the flag has one writer at a time. Eight bits suffice, since
// the sender compares only with the generation that it sent last.
#pragma once

#include "base/atomic.h"

#include <cstdint>

namespace near::queue {

template <class Atomics = base::Hardware>
struct PacketFlag {
  typename Atomics::template Atomic<std::uint8_t> generation{0}; ///< in which the packet was last returned

  /// Owner: returns whether the packet, last sent in generation `sent`, has been returned.
  bool is_home(std::uint8_t sent) const {
    // SYNC: packet-home. Acquire: the receiver's reads are complete, so our new data does not reach them.
    return generation.load_acquire() == sent;
  }
  /// Receiver: returns the packet that was sent in generation `sent`.
  void give_back(std::uint8_t sent) {
    // SYNC: packet-home. Release: our reads of the packet are complete before its owner overwrites it.
    generation.store_release(sent);
  }
};

} // namespace near::queue
