// Blocking calls with little data, without what longer or recorded ones need.
//
// A call whose data is one chunk publishes at most once and reads each rank at most once. Where its buffers have no gaps
// either, a few copies are all that is left of its algorithm. These functions do that: what they publish is byte for byte
// what the algorithms of the registry publish, so ranks of one call may go either way, and the choice is the same.
#pragma once

#include "coll/call.h"

namespace near::coll {

using object::Communicator;

/// Executes the call if it can be done that way; then `result` is its result. Otherwise nothing has happened.
bool run_straight(const Call& call, Communicator& communicator, Result& result);

} // namespace near::coll
