// Watches the other processes of a job that another launcher has started or that spans several machines, in a thread of its own
// that sleeps nearly always. If one dies and the launcher does not end the job, this process does, with one message. The thread
// acts even while the program computes, and a process that computes or is stopped counts as alive (doc/adr/0037).
// program computes, and a process that computes or is stopped counts as alive (doc/adr/0037).
//
//   on a machine   the first two processes watch all others, and all others watch these two: the kernel tells of a
//                  process that ends (pidfd)
//   between them   the first process of each has connections to those of others (lifelines.h)
#pragma once

#include "boot/boot.h"
#include "boot/lifelines.h"

#include <span>

namespace near::boot {

/// Call before meet(), in the first process on a machine: opens the port at which those of other machines reach it. Fails if
/// that is impossible at this address.
Result listen_for_machines(std::span<const std::byte> address, std::uint16_t& port);

/// Call after meet(), once all processes on this machine have claimed their rows. `segment` is this machine's. In the
/// first process on a machine, `next` are the machines to which this one connects. `patience` is in seconds. A machine
/// that cannot be reached is not watched; a warning says so.
Result begin_watch(const Start& start, const segment::Segment& segment, std::span<const Neighbour> next,
                   std::uint32_t patience);
/// The machines to which this one connects, in the launcher's numbering, with the rank of the first process on each.
struct NextMachine {
  std::uint32_t machine = 0, first_rank = 0;
};
std::vector<NextMachine> next_machines(const Start& start);

/// For programs that handle errors themselves: the loss of another machine is reported only by their operations.
void leave_losses_to_the_program();
/// Waits briefly until the thread, of this process or of another one on this machine, has reported which process or machine was
/// lost; or, in a job on several machines, until mpiexec has reported it and ends this process. Returns false if nobody has:
/// then the caller should, and nobody else will.
bool death_was_told(const Start& start);

/// The number of machines known to be lost; 0 without begin_watch().
std::uint32_t lost_machines();
/// Whether the machine is known to be lost.
bool is_lost(std::uint32_t machine);

/// From now on processes may end. Waits for the thread.
void end_watch();

} // namespace near::boot
