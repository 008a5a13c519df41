// What is done with a planned job: it is explained, or started.
#pragma once

#include "launch/job.h"
#include "os/lease.h"

namespace near::launch {

/// Prints the latest failure as a message of mpiexec, and returns `status`.
int complain(int status);

/// Releases the processors that the job holds, however its scope is left.
struct LeaseEnd {
  LeaseEnd() = default;
  LeaseEnd(const LeaseEnd&) = delete;
  LeaseEnd& operator=(const LeaseEnd&) = delete;
  ~LeaseEnd() { os::end_lease(); }
};

/// Prints the warnings about the job, then either prints its plan
/// (--explain), or starts it and waits for its end. Returns the exit status.
int run_planned(Job& job, char** environment);

} // namespace near::launch
