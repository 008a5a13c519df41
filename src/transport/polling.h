// Progress in its parts, for calls that poll and for waiting; and whether ranks share processors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace near::transport {

/// True if no message has arrived and none of this process's waits to leave, as most polls find.
bool is_idle();
/// Lets every transport move a bounded number of messages; true if something moved. Where there is only one transport,
/// this is that transport's own function, so that polls make one call.
using Advance = bool (*)();
inline constinit Advance advance_all = [] { return false; };
/// Moves a bounded number of messages. Returns true if any moved. progress() calls it unless is_idle().
inline bool make_progress() { return advance_all(); }
/// Whether a message has arrived: the last check before a sleep, made without the engine lock.
bool has_arrived();
/// Whether any transport waits for a resource whose release is announced only on request.
bool waits_for_flow_control();
/// Registers this process with everything that its transports wait for. Whatever is released from here on wakes it,
/// and whatever was released before is found by the next progress.
void register_with_transports();
/// Whether a transport is silent (Transport::is_silent).
bool any_is_silent();
/// How long a wait polls for the sake of the transports before it sleeps (Transport::polling_ns), in nanoseconds.
std::uint64_t polling_ns();
/// The longest sleep of a wait, in nanoseconds. p2p sets it while waits must wake up to take messages early; under the engine lock.
inline constexpr std::uint64_t no_sleep_bound = ~std::uint64_t{0};
inline constinit std::uint64_t sleep_bound_ns = no_sleep_bound;
/// The descriptors of the transports that have one; returns how many there are.
std::size_t descriptors(std::span<int> found);

/// Whether other ranks of this job may share this rank's processors, as far as that was known when it started: on this machine, or on
/// machines that are containers of the same kernel.
bool polls_should_yield();
/// Whether more ranks of this job are confined to this rank's processors than it has processors. Asks the
/// kernel, since wrapper scripts and the program may have changed the binding that mpiexec made.
bool shares_its_processors();

} // namespace near::transport
