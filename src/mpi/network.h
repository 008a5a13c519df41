// The network of a job on several machines, between the launcher, which knows the addresses, and the transport.
#pragma once

#include "boot/boot.h"

namespace near::mpi {

/// Opens the network, and exchanges addresses with the other processes of the job. Only synchronises with them if the job
/// has one machine.
boot::Result open_network(boot::Start& start);
/// The distance of this process from the NIC of the network that it has opened; 0 if unknown, or if the job has one machine.
std::uint32_t nic_distance(const boot::Start& start);
/// Lets messages use the network, after the node transport was started. Has no effect if the job has one machine.
void start_network(const boot::Start& start);
/// Watches the other processes of the job from now on, if another launcher has started it or if it spans several
/// machines (boot/watch.h).
boot::Result watch_processes(const boot::Start& start);

} // namespace near::mpi
