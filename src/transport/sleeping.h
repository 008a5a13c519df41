// Sleeping: which events a process asks to be told of, and how it sleeps until then (waiting.cpp decides when).
#pragma once

#include "transport/doorbell.h"
#include "transport/registry.h"

#include <cstdint>

namespace near::transport {

/// The doorbell on which this process sleeps.
segment::Doorbell& own_doorbell();

/// Whether anything in this process waits for a slot of a peer, for a packet, or for a lock.
bool needs_announcements();
/// Registers this process for everything that it waits for. Whatever is freed from here on wakes this process;
/// whatever was freed before is found by the next check.
void register_as_waiter();

/// Sleeps until the bell's number is no longer `rung`, a message is there, or `sleep_ns` are over. If some messages are not reported
/// (Transport::is_silent), returns earlier, after a nap that depends on `quiet_ns`, the time for which nothing has come. Call it
/// without the engine lock.
void sleep_until_rung(segment::Doorbell& bell, std::uint32_t rung, std::uint64_t sleep_ns,
                      std::uint64_t quiet_ns);
/// Sets how long waits poll (spin_time.h). Call it after each sleep of a wait, with the engine lock. Learns nothing if there are more
/// ranks than processors, because others may need this processor.
void learn_from_sleep(std::uint64_t quiet_ns, bool was_rung);
/// Sleeps for a moment, whatever arrives. Call it without the engine lock.
void nap();

} // namespace near::transport
