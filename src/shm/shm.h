// The node transport: processes of one job on one machine, through shared memory and the kernel's copies.
//
// Start it, and it registers itself with the transport layer, which drives it. Beside that, only p2p's fast path knows
// it (p2p/fast.h): a small message to a peer whose lane is open is written and read without a call.
#pragma once

#include "shm/wire.h"

namespace near::shm {

/// What the start-up contract told this process.
struct Job {
  int segment_descriptor = -1; ///< -1: a singleton makes its own
  std::uint32_t slot = 0;
  std::uint32_t size = 1;
};

/// Maps the segment, lays out and reserves this process's region, publishes it, waits until all of the job
/// are ready. Every failure names the limit or the call.
Result start(const Job& job);

// For the fast path.

/// True if no message has arrived and none of this process's waits to leave, as most polls find. False if there are
/// other transports, so a poll that asks here misses none of them.
bool is_idle();
/// Lets small messages to this peer take the fast path if they may now: then left() is not 0.
void allow_fast_sends(SendState& send_state);
/// Call after a fast send if the receiver sleeps or left() is 0.
void more_to_do(SendState& send_state);
/// Wakes the processes that sleep until a slot of this process's queue or lanes is free.
void wake_slot_waiters();
/// Copies a payload out of the sender's packet and returns the packet.
void receive_from_packet(const ReceiveState& receive_state, const MessageHeader& message, void* buffer);

} // namespace near::shm
