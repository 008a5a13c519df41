// Measures copies of separate blocks, for the profile (profile/blocks.h), and times copies for code that compares them with
// predictions.
#pragma once

#include "base/result.h"
#include "os/affinity.h"
#include "profile/blocks.h"

#include <cstddef>
#include <cstdint>
#include <functional>

namespace near::calibrate {

/// Keeps the calling thread on the first processor that it may use, since other processors have other caches.
class Pinned {
public:
  Pinned();
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  ~Pinned();

private:
  os::CpuSet before_; ///< empty: the thread could not be bound
};

/// Measures everything in `costs`, in this thread: half a second on a typical processor. After `budget_ns` the rest is omitted, and
/// `costs` are not complete(). Fails if there is no memory for it.
base::Result measure_blocks(std::uint64_t budget_ns, profile::BlockCosts& costs);

/// The least time in nanoseconds of a call of `copy` in several attempts, after one that fills the caches. Above 0.
double time_hot(const std::function<void()>& copy);
/// The time in nanoseconds of `copy` after a call of flush(): the mean of the shorter half of several attempts. Above 0.
double time_cold(const std::function<void()>& copy, const std::function<void()>& flush);
/// For time_cold(): writes back the cache lines of these bytes and removes them from all caches.
void flush_lines(const std::byte* from, std::size_t bytes);

} // namespace near::calibrate
