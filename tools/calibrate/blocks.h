// Measures copies of blocks that lie apart, for the profile (profile/blocks.h), and times copies for whoever compares them with
// what it predicts.
#pragma once

#include "base/result.h"
#include "os/affinity.h"
#include "profile/blocks.h"

#include <cstddef>
#include <cstdint>
#include <functional>

namespace near::calibrate {

/// Keeps the calling thread on the first processor that it may use, since another one has other caches.
class Pinned {
public:
  Pinned();
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  ~Pinned();

private:
  os::CpuSet before_; ///< empty: it could not be bound
};

/// Measures everything in `costs`, in this thread: half a second on a usual processor. After `budget_ns` the rest is left out, and `costs`
/// are not complete(). Fails if there is no memory for it.
base::Result measure_blocks(std::uint64_t budget_ns, profile::BlockCosts& costs);

/// The least time that a call of `copy` takes, in nanoseconds, of several attempts, after one that fills the caches. Above 0.
double time_hot(const std::function<void()>& copy);
/// The time of `copy` if flush() was called before it, in nanoseconds: the mean of the shorter half of several attempts. Above 0.
double time_cold(const std::function<void()>& copy, const std::function<void()>& flush);
/// For time_cold(): writes back the cache lines of these bytes and removes them from all caches.
void flush_lines(const std::byte* from, std::size_t bytes);

} // namespace near::calibrate
