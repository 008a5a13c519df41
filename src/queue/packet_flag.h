// How a packet comes home: a byte beside it, written by whoever has read it. See doc/queue/packets.md.
//
//   sender, owner of packet and flag             receiver
//   generation = generation + 1; fill the packet
//   message (packet, generation)  ------------------->  read the packet
//                                              flag = generation
//   free again when flag == generation  <-----------
//
// One generation is under way at a time, so there is one writer of the flag at a time, and eight bits are enough:
// the sender compares with the generation that it sent last, never with an older one.
#pragma once

#include "base/atomic.h"

#include <cstdint>

namespace near::queue {

template <class Atomics = base::Hardware>
struct PacketFlag {
  typename Atomics::template Atomic<std::uint8_t> generation{0}; ///< in which the packet came home last

  /// Owner: whether the packet, sent last in generation `sent`, is home.
  bool is_home(std::uint8_t sent) const {
    // SYNC: packet-home. Acquire: the receiver's reads were before, so our new data does not reach them.
    return generation.load_acquire() == sent;
  }
  /// Receiver of the packet in generation `sent`: done with it.
  void give_back(std::uint8_t sent) {
    // SYNC: packet-home. Release: our reads of the packet are done before its owner may write it again.
    generation.store_release(sent);
  }
};

} // namespace near::queue
