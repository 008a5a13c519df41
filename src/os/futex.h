// Sleeping on a word of shared memory, and the barrier that lets a waker skip its fence.
#pragma once

#include "os/clock.h"

#include <cstdint>

namespace near::os {

/// Sleeps while *word == expected, at most `timeout_ns`. Returns on a wake, a changed word, a signal or the
/// timeout: the caller looks again in every case.
void futex_wait(std::uint32_t* word, std::uint32_t expected, std::uint64_t timeout_ns);
/// Wakes every sleeper on the word, in any process that maps it.
void futex_wake_all(std::uint32_t* word);

/// Makes this process a target of barrier_all_registered(). False where the kernel lacks or forbids
/// membarrier.
bool register_for_barrier();
/// Every running thread of every registered process passes a full memory barrier before this returns.
void barrier_all_registered();

/// Lets another runnable thread have this processor.
void yield();

} // namespace near::os
