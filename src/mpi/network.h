// The network of a job on several machines, between the launcher, which knows addresses, and the transport.
#pragma once

#include "boot/boot.h"

namespace near::mpi {

/// Opens the network, and meets the other processes of the job with its address. Does nothing but meet them if the job has
/// one machine.
boot::Result open_network(boot::Start& start);
/// How far this process is from the NIC of the network that it has opened; 0 if that is unknown, or if the job has one machine.
std::uint32_t nic_distance(const boot::Start& start);
/// Lets messages go over the network, after the node transport was started. Does nothing if the job has one machine.
void start_network(const boot::Start& start);
/// Looks after the other processes of the job from now on, if another launcher has started it or if it spans machines
/// (boot/watch.h).
boot::Result watch_processes(const boot::Start& start);

} // namespace near::mpi
