// Kill points: a test kills this process at one of them, to see what happens to the others. They are between
// the steps of protocols that involve other processes, and exist only in builds with NEAR_KILL_POINTS (preset
// `killpoints`), not in the shipped library. doc/robustness.md says how they are used.
//
//   NEAR_KILL_AT=label:count[:rank]   SIGKILL when the point is reached for the count-th time, in this rank
//                                     or in whichever rank does so
//   NEAR_KILL_AT=report               at its end each rank prints how often it has reached each point
#pragma once

#ifdef NEAR_KILL_POINTS

#include "base/atomic.h"

#include <cstdint>

namespace near::base {

/// One location in the code; constructed when it is first reached.
class KillPoint {
public:
  explicit KillPoint(const char* label);
  void reached() {
    if (counts_) [[unlikely]]
      count();
  }

private:
  friend struct KillReport;
  void count();

  const char* label_;
  bool counts_, kills_;
  HardwareAtomic<std::uint64_t> times_{0};
  KillPoint* next_ = nullptr;
};

} // namespace near::base

/// Each label is used in one location, which test/kill must reach.
#define NEAR_KILL_POINT(label)                                                                               \
  do {                                                                                                       \
    static ::near::base::KillPoint kill_point_(label);                                                       \
    kill_point_.reached();                                                                                   \
  } while (false)

#else
#define NEAR_KILL_POINT(label) static_cast<void>(0)
#endif
