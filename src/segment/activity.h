// What each process of a job is doing, read from outside: for the launcher's reports and `near top`. It works
// for jobs that hang or are dying, since nothing here waits for a process.
#pragma once

#include "segment/segment.h"

#include <span>
#include <string>

namespace near::segment {

/// A copy of one state line.
struct Activity {
  std::uint32_t function = 0; ///< 0: outside MPI
  std::uint64_t context = 0;
  std::int32_t peer = 0;
  std::int32_t tag = 0;
  std::uint64_t bytes = 0;
  std::uint64_t since_ns = 0; ///< CLOCK_MONOTONIC at the beginning of the wait; 0 if it does not wait
  std::uint64_t calls = 0;
  /// False if the process was in the middle of writing the line, or was killed there: the fields may not
  /// belong together.
  bool consistent = true;
};

/// What is known about functions, by their numbers in state lines; null: nothing.
struct Functions {
  const char* (*name)(std::uint32_t function) = nullptr; ///< such as "MPI_Recv"; nullptr for unknown numbers
  /// Whether the function writes its peer, tag and bytes into the state line; otherwise the line holds those of an earlier call.
  bool (*tells)(std::uint32_t function) = nullptr;
};

/// Whether the process in `row` has a region that may be read.
bool has_region(const Segment& segment, std::uint32_t row);
/// The most interesting state line of the process in `row`: one that is inside a call, if there is one.
/// Requires has_region().
Activity activity_of(const Segment& segment, std::uint32_t row);

/// Describes an activity: "MPI_Recv from rank 1, tag 7, for 2.3 s", or "its own code". `now_ns` is CLOCK_MONOTONIC.
std::string activity_text(const Activity& activity, const Functions& functions, std::uint64_t now_ns);
/// The name of a phase for display: "launched", "in MPI" and so on.
const char* phase_name(Phase phase);

/// A table with a line for each process of the job: rank, pid, phase, calls, messages and bytes sent, unexpected
/// messages, activity. `descriptor` is the segment's. `pids` (0: not started) and `ranks` describe the processes, for
/// callers with more reliable information than the rank table, which every process can write.
std::string job_table(const Segment& segment, int descriptor, const Functions& functions,
                      std::uint64_t now_ns, std::span<const std::int32_t> pids = {},
                      std::span<const unsigned> ranks = {});

} // namespace near::segment
