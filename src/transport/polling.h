// For calls that poll: progress in two halves, the first of which is a few loads, and whether ranks share
// processors.
#pragma once

namespace near::transport {

/// True if no message has arrived and none of this process's waits to leave, as most polls find.
bool is_idle();
/// Moves a bounded number of messages; true if something moved. progress() is is_idle(), then
/// this.
bool make_progress();

/// Whether ranks of this job share this rank's processors, as far as that was known when it started.
bool polls_should_yield();
/// Whether more ranks of this job are confined to this rank's processors than it has processors. Asks the
/// kernel, since wrapper scripts and the program may have changed the binding that mpiexec made.
bool shares_its_processors();

} // namespace near::transport
