// Which processors the jobs of one user hold on this machine, so that two jobs do not share some while others
// are free.
//
// A lease is a Unix socket with an abstract name, "nearmpi/<user>/<process>/<processors>": nobody ever
// connects to it, there is no file, and it goes with the last process that has it open. /proc/net/unix lists
// them all. Jobs in another network namespace have other leases; where sockets or the list are forbidden
// there are none.
#pragma once

#include "os/affinity.h"
#include "os/process.h"

#include <iosfwd>
#include <vector>

namespace near::os {

struct Lease {
  Pid owner = 0;
  CpuSet cpus;
};

/// The leases of this user that stand in the kernel's list (/proc/net/unix), one for each owner.
std::vector<Lease> leases_in(std::istream& list, unsigned user);

/// While it lives, no other process of this user plans: what is free when one looks is free when it takes it.
/// Waits for the present planner a second at most, then goes on without.
class LeasePlanning {
public:
  LeasePlanning();
  ~LeasePlanning();
  LeasePlanning(const LeasePlanning&) = delete;
  LeasePlanning& operator=(const LeasePlanning&) = delete;

  /// The leases of this user's other jobs. A job that this process is a part of is none of those.
  std::vector<Lease> others() const;
  /// Holds these processors from now on until this process and its children (exec ends it) have ended. What
  /// cannot be held is not, silently.
  void take(const CpuSet& cpus) const;

private:
  int lock_ = -1;
};

} // namespace near::os
