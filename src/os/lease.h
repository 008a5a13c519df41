// The processors that the jobs of one user hold on this machine, so that two jobs do not share processors
// while others are free.
//
// All leases of a user are in one file, which only that user can open: nearmpi-leases in the user's runtime
// folder ($XDG_RUNTIME_DIR, /run/user/<user>), or else in /tmp/nearmpi-<user>, which must belong to the user
// and be closed to others. A row of the file is valid as long as some process holds the kernel's lock on its
// bytes. Such a lock disappears with the last process that has the file open, however that process ends:
//
//   | row 0: process, its namespace, processors | row 1 | ... | planning lock, beyond all rows |
//
// The last job to end removes the file. If there is no such place, there are no leases.
#pragma once

#include "base/result.h"
#include "os/affinity.h"
#include "os/process.h"

#include <string>
#include <vector>

namespace near::os {

struct Lease {
  Pid owner = 0; ///< 0 if it is in another process namespace, where its number means nothing to us
  CpuSet cpus;
};

/// The folders in which the leases of this user may be, in the order of preference. LeasePlanning creates the
/// last one if it is needed.
std::vector<std::string> lease_folders();

/// While it exists, no other process of this user plans, so that processors that are found free are still
/// free when they are taken. Waits for another planner for at most a second, then continues without
/// exclusion.
class LeasePlanning {
public:
  LeasePlanning() : LeasePlanning(lease_folders()) {}
  explicit LeasePlanning(const std::vector<std::string>& folders);
  ~LeasePlanning();
  LeasePlanning(const LeasePlanning&) = delete;
  LeasePlanning& operator=(const LeasePlanning&) = delete;

  /// Why there are no leases; "" if there are.
  const std::string& problem() const { return problem_; }
  /// A problem that others cause and that the user should know of: another user owns the user's file or
  /// folder, or another process of this user does not stop planning, so that two may plan at once. "" if
  /// there is none.
  const std::string& intrusion() const { return intrusion_; }
  /// The leases of the user's other jobs; not of a job that this process belongs to.
  std::vector<Lease> others() const;
  /// Holds these processors until end_lease(), or until this process and the children that share its open
  /// file have ended (exec closes it). If this fails, the processors are not held; no error is reported.
  void take(const CpuSet& cpus);

private:
  std::string problem_, intrusion_, made_;
  int folder_ = -1, file_ = -1;
};

/// Releases what take() held, and removes the file if no other process holds a lease.
void end_lease();

} // namespace near::os
