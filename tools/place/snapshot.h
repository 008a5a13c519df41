// A snapshot of where the pages of a job or of a process lie: plain data. Viewer::sample() fills it from a
// running job; warnings, text, JSON and page are functions of it alone.
//
// The owner of a page: private pages (anonymous pages that no other process maps) belong to their process,
// and pages in a region of the job's segment belong to the region's rank. These are judged: each should lie
// on one of the nodes for which it is intended. Pages of files (programs, libraries) belong to the system;
// they are shown, not judged.
#pragma once

#include "os/pages.h"
#include "place/maps.h"
#include "segment/initial_estimates.h"
#include "segment/traffic.h"

#include <string>
#include <vector>

namespace near::place {

/// The kinds of mappings.
enum class Kind { program, library, heap, stack, anonymous, segment, shared, file, kernel };
/// "program", "library", ...
const char* kind_name(Kind kind);
/// Determines the kind of a mapping from its entry in smaps; `program` is the path of the executable.
Kind kind_of(const SmapsEntry& entry, const std::string& program);

/// A range of adjacent pages on one node.
struct Range {
  std::uint64_t begin = 0, end = 0; ///< addresses in the process; offsets within the segment
  int node = 0;
  bool wrong = false; ///< judged, and not on an intended node
};

/// Judged bytes, and how many of them lie on an intended node.
struct Share {
  std::uint64_t judged = 0, local = 0;
  double percent() const {
    return judged == 0 ? 100 : 100 * static_cast<double>(local) / static_cast<double>(judged);
  }
  Share& operator+=(const Share& other) {
    judged += other.judged;
    local += other.local;
    return *this;
  }
};

/// A mapping of a process.
struct Mapping {
  Kind kind = Kind::anonymous;
  SmapsEntry entry;                ///< end is 0 if smaps no longer had it
  NumaLine line;                   ///< from numa_maps, including the totals
  std::vector<int> intended;       ///< nodes for private pages; empty: any
  Share own;                       ///< private pages
  std::uint64_t copy_on_write = 0; ///< bytes that are still shared with a parent or child until one writes
  std::uint64_t zeros = 0;         ///< read before they were written: the kernel's one page of zeros
  std::uint64_t not_in_core = 0;   ///< bytes in swap
  bool located = false;            ///< each page was located: the values above and the ranges are valid
  std::vector<Range> ranges;
};

/// A process, of a job or on its own.
struct Process {
  std::int32_t pid = 0;
  int rank = -1;       ///< in the job; -1: not part of one
  std::string program; ///< path; "" when unknown
  std::string problem; ///< why nothing below is known; "" if there is no problem
  bool unseen = false; ///< the process exists, but its memory could not be read
  std::string phase;   ///< for a rank: "running", ...
  os::CpuSet allowed;  ///< processors on which at least one of its threads may run now
  int processor = -1;  ///< where its first thread ran last
  unsigned threads = 0;
  std::vector<int> nodes; ///< of `allowed`
  int planned = -1;       ///< the lowest processor to which mpiexec bound it; -1: not bound
  int node = -1;          ///< the intended node of its pages; -1: any
  bool left = false;      ///< it may now run on processors other than those to which mpiexec had bound it
  std::vector<Mapping> mappings;
  BytesOn bytes_on;               ///< the sum of numa_maps
  segment::Amount sent_elsewhere; ///< to other machines

  Share own() const;
};

/// A part of a region of the job's segment.
struct Part {
  int owner = -1;                   ///< rank; -1: mpiexec or none
  std::string role;                 ///< "queue", "lanes", ...
  std::uint64_t begin = 0, end = 0; ///< offsets in the segment
  int node = -1; ///< the intended node of its pages: the owner's, or one that was requested; -1: any
  std::uint64_t page_bytes = 0;
  std::uint64_t huge = 0; ///< of `bytes_on`, in huge pages
  BytesOn bytes_on;
  Share share;
  std::uint64_t foreign =
      0; ///< bytes that exist although the owner does not map them: another process created them
  std::uint64_t not_in_core = 0; ///< bytes that exist but that no process maps: in swap, or no longer used
  std::vector<Range> ranges;
  std::vector<int> mapped_by; ///< ranks that map wrong or foreign pages
};

/// What one rank has sent to another.
struct Flow {
  int from = 0, to = 0;
  segment::Distance distance = segment::Distance::machine;
  segment::ByPath sent;

  segment::Amount total() const;
};

struct Snapshot {
  std::string job;           ///< "nearmpi-<pid>"; "" for a single process
  std::int32_t launcher = 0; ///< mpiexec, or the process
  std::string at;            ///< UTC, "2026-11-21T18:00:00Z"
  double took_s = 0;
  std::uint64_t page_bytes = 0;
  std::vector<os::Node> nodes;
  std::vector<Process> processes;
  std::vector<Part> parts; ///< those that have pages
  std::vector<Flow> flows; ///< between ranks that have communicated, ordered by `from` and `to`

  /// The sum of numa_maps over all processes. A page that several processes map counts for each.
  BytesOn bytes_on() const;
  std::string program() const; ///< of the first process that has one
  /// The process with this rank, which must exist.
  const Process& process_of(int rank) const;
};

/// How informative a snapshot is: first, whether it is of a job and not only of the launcher; then the number of ranks between
/// MPI_Init and MPI_Finalize; then the amount of memory.
struct Weight {
  bool job = false;
  std::size_t ranks = 0;
  std::uint64_t bytes = 0;
  auto operator<=>(const Weight&) const = default;
};
Weight weight_of(const Snapshot& snapshot);

/// The nodes of a set of processors, in order.
std::vector<int> nodes_of(const std::vector<os::Node>& nodes, const os::CpuSet& cpus);

/// Appends a page to ordered ranges: extends the last one or adds a new one.
void append_page(std::vector<Range>& ranges, std::uint64_t begin, std::uint64_t bytes, int node, bool wrong);

/// A warning, and what to do about it.
struct Warning {
  enum class What { wrong_node, left_binding, foreign_page } what = What::wrong_node;
  int rank = -1;
  std::int32_t pid = 0;
  std::string where;  ///< role, or kind of memory; "" for a rank as a whole
  Share share;        ///< for wrong_node
  std::string text;   ///< the problem
  std::string advice; ///< what to do
};
const char* warning_name(Warning::What what);
std::vector<Warning> warnings_of(const Snapshot& snapshot);

/// What --assert-local checks: the judged pages of one owner in one role, or of its private memory.
struct Row {
  int rank = -1;
  std::int32_t pid = 0;
  std::string where;
  Share share;
};
std::vector<Row> rows_of(const Snapshot& snapshot);
/// The rows with less than `percent` local. `judged` says whether anything was judged at all.
std::vector<Row> offenders(const Snapshot& snapshot, double percent, bool& judged);

} // namespace near::place
