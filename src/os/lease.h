// The processors that the jobs of one user hold on this machine, so that two jobs do not share processors
// while others are free.
//
// All leases of a user are in one file, nearmpi-leases, which only that user can open. It is in the first of
// these folders that belongs to the user, is closed to others and supports locks (lease_folders):
//
//   | folder | who can create it |
//   |---|---|
//   | $XDG_RUNTIME_DIR, /run/user/<user> | the system, when the user logs in |
//   | /run/nearmpi, if the user is root | root |
//   | nearmpi-<boot id> in $XDG_CACHE_HOME or ~/.cache | the user |
//   | /tmp/nearmpi-<user> | anybody, so another user can take the name; it is the last resort |
//
// A row of the file is valid as long as some process holds the kernel's lock on its bytes. Such a lock
// disappears with the last process that has the file open, however that process ends:
//
//   | row 0: process, its namespace, processors | row 1 | ... | planning lock, beyond all rows |
//
// The last job to end removes the file. If there is no such folder, there are no leases.
//
// A home may be on a network file system that many machines share. The boot id in the name makes sure that
// all jobs that use one file run on one kernel, which is what leases need. The processors are those of that
// machine; and whatever the file system does between machines, one kernel gives all its processes the same
// view of a file's bytes, names and locks. If it passes locks on to a server, they hold there too; if it
// keeps them to itself (nolock, localflock), no other machine would have asked for them. If locks are refused
// (a server without a lock service), the next folder is used.
#pragma once

#include "base/result.h"
#include "os/affinity.h"
#include "os/process.h"

#include <string>
#include <vector>

namespace near::os {

using base::Result;

struct Lease {
  Pid owner = 0; ///< 0 if it is in another process namespace, where its number means nothing to us
  CpuSet cpus;
};

/// A folder that may contain the leases of a user.
struct LeaseFolder {
  std::string path;
  bool is_made = false;        ///< LeasePlanning creates it if it is missing; the last job to end removes it
  bool parent_is_made = false; ///< its parent is created too, and stays
};

/// The folders that may contain this user's leases, in order of preference.
std::vector<LeaseFolder> lease_folders();

/// While this object exists, no other process of this user plans, so processors that are found free are still
/// free when they are taken. Waits for another planner for at most a second, then continues without
/// exclusion.
class LeasePlanning {
public:
  LeasePlanning() : LeasePlanning(lease_folders()) {}
  explicit LeasePlanning(const std::vector<LeaseFolder>& folders);
  ~LeasePlanning();
  LeasePlanning(const LeasePlanning&) = delete;
  LeasePlanning& operator=(const LeasePlanning&) = delete;

  /// Why there are no leases; "" if there are.
  const std::string& problem() const { return problem_; }
  /// A problem caused by others that the user should know about, and what to do about it: another user owns
  /// the last folder or the file in it, or another process of this user does not stop planning, so that two
  /// may plan at once. "" if there is none.
  const std::string& intrusion() const { return intrusion_; }
  /// The leases of the user's other jobs, except any job to which this process belongs.
  std::vector<Lease> others() const;
  /// Holds these processors until end_lease(), or until this process and the children that share its open
  /// file have ended (exec closes it). If this fails, the processors are not held; no error is reported.
  void take(const CpuSet& cpus);

private:
  Result open(const LeaseFolder& folder, bool& again);

  std::string problem_, intrusion_, made_;
  int folder_ = -1, file_ = -1;
};

/// Releases what take() held, and removes the file if no other process holds a lease.
void end_lease();

} // namespace near::os
