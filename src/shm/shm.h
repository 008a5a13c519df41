// The node transport: processes of one job on one machine, through shared memory and the kernel's copies.
//
// start() registers it with the transport layer, which drives it. Only the fast path (p2p/fast.h)
// uses it directly, and the polls of p2p: small messages in open lanes are written and read without a function call.
#pragma once

#include "shm/wire.h"

namespace near::shm {

/// This process's part in its job, as the launcher described it.
struct Job {
  int segment_descriptor = -1; ///< -1: a singleton, which makes its own segment
  std::uint32_t row = 0;  ///< this process's row in the rank table; from `size` on, it joins a running job
  std::uint32_t size = 1; ///< number of processes with which the job begins on this machine
  /// Their ranks in the job, by row, in rising order; empty if they are the rows.
  std::vector<std::uint32_t> ranks = {};
  std::uint32_t machine = 0;                  ///< number of this machine among those of the job
  std::vector<std::uint32_t> machine_of = {}; ///< that of each rank; empty if the job has one machine
  std::uint32_t nic_distance = 0;             ///< RankEntry::nic_distance
  /// A process whose descendants may copy from this one's memory; 0: the launcher that the segment names.
  std::int32_t ancestor = 0;
};

/// Maps the segment, lays out and reserves this process's region, publishes it, and waits until all processes with which
/// the job begins are ready. The text of a failure names the limit or the system call. The others of the job know
/// nothing of a process that joins later until a message or the layers above tell them its row.
Result start(const Job& job);

// For the fast path.

/// Returns true if no message has arrived and none of this process's messages waits to be sent, as most polls
/// find. Returns false if there are other transports, so that a poll that relies on it misses none of their
/// messages.
bool is_idle();
/// Whether make_progress() would do nothing now. Unlike is_idle(), looks into open lanes.
bool has_nothing_to_move();
/// Lets small messages to this peer take the fast path if that is possible now; then left() of its lane is
/// not 0.
void allow_fast_sends(SendState& send_state);
/// Call after a fast send if the receiver sleeps or left() is 0: wakes the receiver and allows more fast
/// sends.
void more_to_do(SendState& send_state);
/// Wakes the processes that sleep until a slot of this process's queue or lanes is free.
void wake_slot_waiters();
/// Copies a payload from its packet to `buffer`; the packet is no longer needed.
void receive_from_packet(const ReceiveState& receive_state, const MessageHeader& message, void* buffer);
/// The same into a buffer with gaps.
void receive_from_packet(const ReceiveState& receive_state, const MessageHeader& message,
                         const datatype::Buffer& buffer);

} // namespace near::shm
