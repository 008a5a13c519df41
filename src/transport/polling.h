// For polls: progress in two halves, of which the first is a few loads, and whether ranks share processors.
#pragma once

namespace near::transport {

/// What most polls find: no message, nothing of ours that waits to leave.
bool has_nothing_to_move();
/// Moves what there is, a bounded number of messages; true when something moved. With has_nothing_to_move()
/// before it this is progress().
bool move_something();

/// Whether ranks of this job share this rank's processors, as far as that was known when it started.
bool polls_should_yield();
/// Whether this rank has fewer processors than there are ranks of its job that may run on these alone. Asks
/// the kernel, which knows what wrapper scripts and the program have bound since mpiexec started the rank.
bool shares_its_processors();

} // namespace near::transport
