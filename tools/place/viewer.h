// Fills a snapshot from what runs: reads the kernel's texts and page tables, and of a job the segment's
// header and layout. It stops nobody, writes nothing of theirs, and touches no page that does not exist.
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

  /// The job whose mpiexec (or whose only rank, a singleton) is process `launcher`.
  Result open_job(std::int32_t launcher);
  /// A process by itself.
  Result open_process(std::int32_t pid);

  /// One look. Fails with Code::gone when the job or the process has ended, Code::refused when it may not be
  /// looked at, Code::unsupported where the kernel does not tell where pages lie. A rank that cannot be
  /// looked at while others can has its Process::problem.
  Result sample(Snapshot& snapshot);

  /// What the ranks have sent by now, into a look at the same job; also when it has ended since.
  void read_traffic(Snapshot& snapshot) const;

private:
  segment::Segment segment_;
  int descriptor_ = -1; ///< of the segment: it knows which pages exist
  std::int32_t pid_ = 0;
};

} // namespace near::place
