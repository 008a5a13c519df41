// Measures copies of blocks that lie apart, for the profile (profile/blocks.h), and times copies for whoever compares them with
// what it predicts.
#pragma once

#include "base/result.h"
#include "profile/blocks.h"

#include <cstddef>
#include <cstdint>
#include <functional>

namespace near::calibrate {

/// Measures everything in `costs`, in this thread, in about a third of a second. Fails if there is no memory for it.
base::Result measure_blocks(profile::BlockCosts& costs);

/// The least time that a call of `copy` takes, in nanoseconds, of several attempts; the first one fills the caches.
double time_hot(const std::function<void()>& copy);
/// The same, with flush() before each call; its time does not count.
double time_cold(const std::function<void()>& copy, const std::function<void()>& flush);
/// For time_cold(): writes back the cache lines of these bytes and removes them from all caches.
void flush_lines(const std::byte* from, std::size_t bytes);

} // namespace near::calibrate
