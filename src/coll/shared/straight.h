// Calls with little data, without what longer ones need.
//
// A call whose data is one chunk publishes at most once and reads each rank at most once. Where its buffers have no gaps
// either, a few copies are all that is left of its algorithm. These functions do that: what they publish is byte for byte
// what the algorithms of the registry publish, so ranks of one call may go either way, and the choice is the same.
#pragma once

#include "coll/registry.h"
#include "coll/shared/area_call.h"

#include <optional>

namespace near::coll {

/// Whether the collective has such a form, and this rank's buffers have no gaps.
bool goes_straight(const Call& call, const Communicator& communicator);

// One rank's part in a nonblocking or persistent call, in two halves. `area_call` has one number; in a rank that publishes
// nothing, it knows that (AreaCall::only_read). `bytes`: Facts::bytes.
/// Publishes what this rank publishes, if anything. A rank that reads nothing has then finished, provided it is the call's
/// turn.
Result publish_straight(const Call& call, AreaCall& area_call, MPI_Count bytes);
/// Reads what this rank reads, and finishes. After publish_straight().
Result read_straight(const Call& call, AreaCall& area_call, MPI_Count bytes);

/// Whether the algorithm that is chosen for a call that goes straight is one with little data, as find_short() says; then
/// `bytes` is what Facts::bytes is. Programs make the same call again and again, so the area keeps the last answer for each
/// collective.
bool is_short(const Call& call, Area& area, bool recorded, MPI_Count& bytes);

/// Starts the nonblocking call if it can be done that way, it is its turn, and this rank can publish at once: it does that
/// first of all, since the others may be waiting for it. If all that it reads is there, or comes soon, the call is then over; else
/// what remains is in `rest`. False: nothing has happened.
bool start_straight(const Call& call, Communicator& communicator, std::optional<AreaCall>& rest);
/// The same for a persistent call that is_short() and has an area of its own. `left`: the number of a call that is not over; else 0.
bool begin_straight(const Call& call, Area& area, MPI_Count bytes, Number& left);

/// Executes the blocking call if it can be done that way; then `result` is its result. Otherwise nothing has happened.
bool run_straight(const Call& call, Communicator& communicator, Result& result);
/// The same for blocks of different sizes: gatherv, scatterv, alltoallv and alltoallw (straight_parts.cpp).
bool run_parts_straight(const Call& call, Communicator& communicator, Result& result);
/// Starts such a nonblocking call as start_straight() does. `left`: the number of a call that is not over, the rest of which has to be
/// recorded (Schedule::go_on); else 0.
bool start_parts_straight(const Call& call, Communicator& communicator, Number& left);

} // namespace near::coll
