// How a packet comes home: a byte beside it, written by whoever has read it. See doc/queue/packets.md.
//
//   sender, owner of packet and flag             receiver
//   lap = lap + 1; fill the packet
//   message (packet, lap)  ------------------->  read the packet
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
struct PacketFlag {
  typename Atomics::template Atomic<std::uint8_t> lap{0}; ///< in which the packet came home last

  /// Owner: whether the packet, sent last in lap `sent`, is home.
  bool is_home(std::uint8_t sent) const {
    // SYNC: packet-home. Acquire: the receiver's reads were before, so our new data does not reach them.
    return lap.load_acquire() == sent;
  }
  /// Receiver of the packet in lap `sent`: done with it.
  void give_back(std::uint8_t sent) {
    // SYNC: packet-home. Release: our reads of the packet are done before its owner may write it again.
    lap.store_release(sent);
  }
};

} // namespace near::queue
