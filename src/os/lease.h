// Which processors the jobs of one user hold on this machine, so that two jobs do not share some while others
// are free.
//
// All leases of a user stand in one file, which only that user can open: nearmpi-leases in the user's runtime
// folder ($XDG_RUNTIME_DIR, /run/user/<user>), else in /tmp/nearmpi-<user>, which must be the user's and
// closed to others. A row of the file counts as long as somebody holds the kernel's lock of its bytes, and
// such a lock goes with the last process that has the file open, however that ends:
//
//   | row 0: process, its namespace, processors | row 1 | ...            ... | the planner's lock, without
//   bytes |
//
// The last job to end removes the file. Where no such place is to be had there are no leases.
#pragma once

#include "base/result.h"
#include "os/affinity.h"
#include "os/process.h"

#include <string>
#include <vector>

namespace near::os {

struct Lease {
  Pid owner = 0; ///< 0: a process of another process namespace, whose number says nothing here
  CpuSet cpus;
};

/// Folders in which the leases of this user may be, the best one first. The last one is made if need be.
std::vector<std::string> lease_folders();

/// While it lives, no other process of this user plans: what is free when one looks is free when it takes it.
/// Waits for the present planner a second at most, then goes on without.
class LeasePlanning {
public:
  LeasePlanning() : LeasePlanning(lease_folders()) {}
  explicit LeasePlanning(const std::vector<std::string>& folders);
  ~LeasePlanning();
  LeasePlanning(const LeasePlanning&) = delete;
  LeasePlanning& operator=(const LeasePlanning&) = delete;

  /// Why there are no leases; "" when there are.
  const std::string& problem() const { return problem_; }
  /// What somebody else does to them, which this user should know of: another user has what is this user's,
  /// or a process of this user goes on planning, so that two may plan at once. "" when nobody does.
  const std::string& intrusion() const { return intrusion_; }
  /// The leases of this user's other jobs. A job that this process is a part of is none of those.
  std::vector<Lease> others() const;
  /// Holds these processors from now on until end_lease(), or until this process and its children (exec ends
  /// it) have ended. What cannot be held is not, silently.
  void take(const CpuSet& cpus);

private:
  std::string problem_, intrusion_, made_;
  int folder_ = -1, file_ = -1;
};

/// Gives back what take() held, and removes the file when nobody else holds anything.
void end_lease();

} // namespace near::os
