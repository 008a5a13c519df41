// Takes snapshots of running jobs and processes, from the kernel's files and page tables, and for a job from
// the header and layout of the segment. It stops no process, never writes to its memory, and touches no page
// that does not exist.
#pragma once

#include "place/snapshot.h"
#include "segment/segment.h"

namespace near::place {

class Viewer {
public:
  Viewer() = default;
  Viewer(const Viewer&) = delete;
  Viewer& operator=(const Viewer&) = delete;
  ~Viewer();

  /// Opens the job whose mpiexec (or, for a singleton, whose only rank) is process `launcher`.
  Result open_job(std::int32_t launcher);
  /// Opens a single process.
  Result open_process(std::int32_t pid);

  /// Takes one snapshot. Fails with Code::gone if the job or the process has ended, with Code::refused if it
  /// may not be inspected, and with Code::unsupported if the kernel does not report where pages lie. If only
  /// some ranks cannot be inspected, their Process::problem says why.
  Result sample(Snapshot& snapshot);

  /// Updates the traffic of the ranks in a snapshot of the same job, even after the job has ended.
  void read_traffic(Snapshot& snapshot) const;

private:
  segment::Segment segment_;
  int descriptor_ = -1; ///< of the segment; tells which pages exist
  std::int32_t pid_ = 0;
};

} // namespace near::place
