// The parts of progress, for calls that poll and for waits; and whether ranks share processors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace near::transport {

/// Returns true if no message has arrived and no message of this process waits to leave, as most polls find.
bool is_idle();
using Advance = bool (*)();
/// Lets every transport move a bounded number of messages. Returns true if something moved. If there is only one
/// transport, this is its own function, so that polls make only one call.
inline constinit Advance advance_all = [] { return false; };
/// Moves a bounded number of messages. Returns true if any moved. progress() calls it unless is_idle().
inline bool make_progress() { return advance_all(); }
/// Whether a message has arrived: the last check before a sleep, made without the engine lock.
bool has_arrived();
/// Whether any transport waits for a resource whose release is announced only on request.
bool waits_for_flow_control();
/// Registers this process with everything that its transports wait for. Whatever is released from here on wakes it;
/// whatever was released before is found by the next call of progress.
void register_with_transports();
/// Whether a transport is silent (Transport::is_silent).
bool any_is_silent();
/// How long, in nanoseconds, a wait polls on behalf of the transports before it sleeps (Transport::polling_ns).
std::uint64_t polling_ns();
/// The value of sleep_bound_ns when sleeps are not bounded.
inline constexpr std::uint64_t no_sleep_bound = ~std::uint64_t{0};
/// The longest sleep of a wait, in nanoseconds. p2p sets it, under the engine lock, while waits must wake up to take messages early.
inline constinit std::uint64_t sleep_bound_ns = no_sleep_bound;
/// Fills `found` with the descriptors of the transports that have one, and returns how many there are.
std::size_t descriptors(std::span<int> found);

/// Whether other ranks of this job may share this rank's processors, as far as was known when it started. They may be on this machine,
/// or on machines that are containers of the same kernel.
bool polls_should_yield();
/// Whether more ranks of this job are confined to this rank's processors than it has processors. Asks the
/// kernel, since wrapper scripts and the program may have changed the binding that mpiexec made.
bool shares_its_processors();

} // namespace near::transport
