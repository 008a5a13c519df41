// Looks after the other processes of a job that another launcher has started, or that spans machines, in a thread of its own that
// sleeps nearly always.
// If one dies and the launcher does not end the job, this process does, with one message; so the thread acts although the
// program computes, and a process that computes or is stopped counts as alive (doc/adr/0037).
//
//   on a machine   the first two processes look after all others, and all others after these two: the kernel tells of a
//                  process that ends (pidfd)
//   between them   the first process of each has connections to those of others (lifelines.h)
#pragma once

#include "boot/boot.h"
#include "boot/lifelines.h"

#include <span>

namespace near::boot {

/// Before meet(), in the first process of a machine: opens the port at which those of other machines reach it. Fails if that is
/// impossible at this address.
Result listen_for_machines(std::span<const std::byte> address, std::uint16_t& port);

/// After meet(), once all processes of this machine have claimed their rows. `segment` is this machine's. `next` are the
/// machines that this one connects to, in the first process of a machine. `patience`: in seconds. A machine that cannot be
/// reached is not watched, with a warning.
Result begin_watch(const Start& start, const segment::Segment& segment, std::span<const Neighbour> next,
                   std::uint32_t patience);
/// Which machines this one connects to, by the launcher's count; with the rank of the first process of each.
struct NextMachine {
  std::uint32_t machine = 0, first_rank = 0;
};
std::vector<NextMachine> next_machines(const Start& start);

/// The program handles errors itself: the loss of another machine is told by its operations alone.
void leave_losses_to_the_program();
/// Waits a moment for the thread, of this process or of another one of this machine, to say which process or machine was lost;
/// or, in a job on several machines, for mpiexec to say it and to end this process. Returns false if nobody has: then the caller
/// should, and nobody else will.
bool death_was_told(const Start& start);

/// How many machines are known to be lost; 0 without begin_watch().
std::uint32_t lost_machines();
/// Whether the machine is.
bool is_lost(std::uint32_t machine);

/// From now on it is in order that processes end. Waits for the thread.
void end_watch();

} // namespace near::boot
