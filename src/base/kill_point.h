// Points at which a test kills this very process, to see what becomes of the others: between any two steps of
// a protocol that others take part in. They exist in builds with NEAR_KILL_POINTS alone (preset
// `killpoints`); the shipped library holds nothing of them. doc/robustness.md says how they are used.
//
//   NEAR_KILL_AT=label:count[:rank]   SIGKILL when the point is reached for the count-th time, in that rank
//   or in
//                                     whichever comes there
//   NEAR_KILL_AT=report               each rank says at its end how often it came by which point
#pragma once

#ifdef NEAR_KILL_POINTS

#include "base/atomic.h"

#include <cstdint>

namespace near::base {

/// One place in the code; made when it is reached first.
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

/// Each label stands at one place, and test/kill must come there.
#define NEAR_KILL_POINT(label)                                                                               \
  do {                                                                                                       \
    static ::near::base::KillPoint kill_point_(label);                                                       \
    kill_point_.reached();                                                                                   \
  } while (false)

#else
#define NEAR_KILL_POINT(label) static_cast<void>(0)
#endif
