// Jobs whose launcher keeps a table (table.h): those of other launchers, which also says who the processes are, and those of
// mpiexec on several machines. Under another launcher one process of each machine does what mpiexec does there: it makes the
// segment.
#pragma once

#include "boot/boot.h"

#include <cstddef>
#include <span>

namespace near::boot {

/// Whether the environment names another launcher that keeps a table.
bool is_table_offered(char** environment);
/// Greets that launcher and finds out which processes share a machine; the first of each machine makes the segment. The only
/// process of a job is a singleton.
Result start_by_table(char** environment, Start& start);
/// Reaches the table that mpiexec keeps in a job on several machines.
Result connect_to_table(const Start& start);
/// Publishes what meet() is given, waits until all processes of the job have, and opens the segment unless mpiexec has
/// passed it on.
Result meet_by_table(Start& start, std::span<const std::byte> address);
/// The address that this process of the job has published.
Result address_in_table(std::uint32_t rank, std::vector<std::byte>& address);
/// The first call says that this process has nothing left to send; returns whether all have said so. A launcher that does not
/// answer any more counts as yes.
bool all_leave_by_table();
/// From now on `callback` is called in another thread when the launcher has ended, if its protocol tells.
void when_launcher_is_lost(void (*callback)());
/// Says goodbye to the launcher, or asks it to end the job.
void leave_table();
void abort_by_table(int status);

} // namespace near::boot
