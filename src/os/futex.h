// Sleeping on a word in shared memory, and the barrier that saves the waker a fence.
#pragma once

#include "os/clock.h"

#include <cstdint>

namespace near::os {

/// Sleeps while *word == expected, for at most `timeout_ns`. Returns after a wake, a change of the word, a
/// signal or the timeout; the caller must check its condition in every case.
void futex_wait(std::uint32_t* word, std::uint32_t expected, std::uint64_t timeout_ns);
/// While this object lives, sleeps of this thread end when their time is over. Otherwise the kernel may extend them by 50 us, to
/// wake several threads at a time.
class PunctualSleep {
public:
  PunctualSleep();
  ~PunctualSleep();
  PunctualSleep(const PunctualSleep&) = delete;
  PunctualSleep& operator=(const PunctualSleep&) = delete;

private:
  int slack_; ///< nanoseconds
};
/// Wakes all sleepers on this word, in any process that has it mapped.
void futex_wake_all(std::uint32_t* word);

/// Registers this process for barrier_all_registered(). Returns false if the kernel lacks or forbids
/// membarrier(2).
bool register_for_barrier();
/// Returns after every running thread of every registered process has passed a full memory barrier.
void barrier_all_registered();

/// Lets another runnable thread use this processor.
void yield();
/// The processor on which this thread is running; -1 if unknown.
int current_processor();

} // namespace near::os
