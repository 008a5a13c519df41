// A point-to-point layer for tests: ranks are threads of one process, messages wait in mailboxes. It defines
// near::p2p's functions in place of the real ones, as far as collectives use them, and is stricter than they
// are:
//   - a message must have exactly the length of its receive (collectives know all lengths);
//   - messages above `eager_bytes` are synchronous, and their data is read from the sender's buffer when the
//     receiver takes it, which reveals buffers that are changed too early and sends that rely on buffering;
//   - nothing may be left in a mailbox at the end;
//   - a wait of more than 20 seconds ends the test program with the name of what it waits for.
#pragma once

#include "p2p/p2p.h"
#include "segment/segment.h"

#include <functional>
#include <vector>

namespace near::coll::test {

struct Conditions {
  std::size_t eager_bytes = 0;
  std::size_t slices = 2;  ///< number that each rank has for its area in shared memory
  int without_slices = -1; ///< a rank that has none, or so few:
  std::size_t few_slices = 0;
  /// Ranks call different collectives, so some of their messages are never received.
  bool messages_remain = false;
  /// What receives end with that are cancelled.
  int error_of_cancelled = MPI_SUCCESS;
  /// A rank that can read no other one's memory.
  int without_reading = -1;
  /// The machine of each rank, of which those on one machine have an area; empty: all ranks have one.
  std::vector<std::uint32_t> machine_of = {};
  /// The ranks take turns, in their order: each runs until it waits in an area. They must exchange no messages.
  bool one_processor = false;
};

/// Runs `body` once per rank of a fresh communicator of this size, each in its own thread, and waits for all.
void run_ranks(int size, const Conditions& conditions,
               const std::function<void(object::Communicator&)>& body);

/// As run_ranks, on an intercommunicator: `body` runs on `left` + `right` threads.
void run_two_groups(int left, int right, const Conditions& conditions,
                    const std::function<void(object::Communicator&, bool in_left)>& body);

/// A message that the calling rank has started, in its communicator.
struct Sent {
  int to;
  MPI_Count bytes;
  bool operator==(const Sent&) const = default;
};
/// All of them, in their order.
std::vector<Sent>& sent();
/// How often the calling rank has called p2p::progress().
std::uint64_t polls();
/// How many slices the calling rank has made.
std::size_t slices_made();
/// What the calling rank has read in areas.
segment::Counters& counters();
/// The NUMA node of a rank: two nodes, whose ranks alternate irregularly.
inline int node_of(int rank) { return rank % 3 == 2 ? 1 : 0; }

/// Waits for a nonblocking operation and frees its request.
object::Result wait(p2p::Request* request);

} // namespace near::coll::test
