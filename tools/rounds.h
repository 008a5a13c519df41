// Output that is repeated until a job ends.
#pragma once

#include "base/result.h"
#include "os/memory.h"
#include "os/poller.h"
#include "os/process.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace near::tools {

/// The pauses between the rounds. A pause ends early when a process ends.
class Rounds {
public:
  Rounds() = default;
  Rounds(const Rounds&) = delete;
  Rounds& operator=(const Rounds&) = delete;
  ~Rounds() {
    if (watch_ >= 0) os::close_descriptor(watch_);
  }
  base::Result open(std::int32_t process) {
    NEAR_TRY(poller_.open());
    NEAR_TRY(os::watch_process(process, watch_));
    return poller_.add(watch_, 0);
  }
  /// Waits this long; returns true if the process has ended by then.
  bool ends_within(double seconds) {
    std::vector<std::uint64_t> keys;
    poller_.wait(static_cast<int>(std::clamp(seconds * 1000, 0.0, 1e9)), keys);
    return !keys.empty();
  }

private:
  os::Poller poller_;
  int watch_ = -1;
};

} // namespace near::tools
