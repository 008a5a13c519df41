// Jobs whose launcher keeps a table (table.h): those of other launchers, which also tell who the processes are, and those of
// mpiexec on several machines. Under another launcher, one process on each machine makes the segment, as mpiexec otherwise
// does.
#pragma once

#include "boot/boot.h"

#include <cstddef>
#include <span>

namespace near::boot {

/// Whether the environment names another launcher that keeps a table.
bool is_table_offered(char** environment);
/// Connects to that launcher and finds out which processes share a machine; the first process on each machine makes the
/// segment. The only process of a job is a singleton.
Result start_by_table(char** environment, Start& start);
/// Connects to the table that mpiexec keeps in a job on several machines.
Result connect_to_table(const Start& start);
/// Publishes the address passed to meet(), waits until all processes of the job have done so, and opens the segment
/// unless mpiexec has passed it on.
Result meet_by_table(Start& start, std::span<const std::byte> address);
/// Gets the address that this process of the job has published.
Result address_in_table(std::uint32_t rank, std::vector<std::byte>& address);
/// The first call says that this process has nothing left to send. Returns whether all have said so, or true if the launcher
/// no longer answers.
bool all_leave_by_table();
/// From now on, calls `callback` in another thread when the launcher has ended, if its protocol reports that.
void when_launcher_is_lost(void (*callback)());
/// Says goodbye to the launcher, or asks it to end the job.
void leave_table();
void abort_by_table(int status);

} // namespace near::boot
