// One look at where the pages of a job, or of a process, lie: plain data. look() in snapshot.h fills it from a
// running job; judgement, text, JSON and page are functions of it alone.
//
// Whose page is it? The pages of a process's own (anonymous ones that no other process maps) belong to it;
// the pages of a region of the job's segment to the rank whose region it is. Those are judged: each should
// lie on one of the nodes that it is intended for. Pages of files (programs, libraries) are the system's;
// they are shown, not judged.
#pragma once

#include "os/pages.h"
#include "place/maps.h"
#include "segment/initial_estimates.h"
#include "segment/traffic.h"

#include <string>
#include <vector>

namespace near::place {

/// What a mapping is.
enum class Kind { program, library, heap, stack, anonymous, segment, shared, file, kernel };
/// "program", "library", ...
const char* kind_name(Kind kind);
/// By its line in smaps; `program` is the path of what the process executes.
Kind kind_of(const SmapsEntry& entry, const std::string& program);

/// Neighbouring pages on one node.
struct Range {
  std::uint64_t begin = 0, end = 0; ///< addresses in the process; offsets within the segment
  int node = 0;
  bool wrong = false; ///< they are judged, and not where they are intended
};

/// Judged bytes, and those of them that lie where they are intended.
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
  SmapsEntry entry;                ///< end is 0 when smaps did not have it any more
  NumaLine line;                   ///< what numa_maps says; the totals are made of this
  std::vector<int> intended;       ///< nodes for pages of the process's own; empty: any
  Share own;                       ///< pages of the process's own
  std::uint64_t copy_on_write = 0; ///< bytes that are still shared with a parent or child until one writes
  std::uint64_t zeros = 0;         ///< read before they were written: the kernel's one page of zeros
  std::uint64_t not_in_core = 0;   ///< bytes in swap
  bool located = false;            ///< page by page: the figures above and the ranges are there
  std::vector<Range> ranges;
};

/// A process, of a job or alone.
struct Process {
  std::int32_t pid = 0;
  int rank = -1;       ///< -1: of no job
  std::string program; ///< path; "" when unknown
  std::string problem; ///< why nothing below is known; "" when all is well
  bool unseen = false; ///< it is there all the same: its memory may lie anywhere
  std::string phase;   ///< of a rank: "running", ...
  os::CpuSet allowed;  ///< processors on which any of its threads may run now
  int processor = -1;  ///< on which its first thread ran last
  unsigned threads = 0;
  std::vector<int> nodes; ///< of `allowed`
  int planned = -1;       ///< the processor that mpiexec bound it to, the lowest of them; -1: not bound
  int node = -1;          ///< where its pages are intended; -1: anywhere
  bool left = false;      ///< it may run now where mpiexec had not bound it to
  std::vector<Mapping> mappings;
  BytesOn bytes_on; ///< the sum of numa_maps

  Share own() const;
};

/// A part of a region of the job's segment.
struct Part {
  int owner = -1;                   ///< rank; -1: mpiexec, or nobody
  std::string role;                 ///< "queue", "lanes", ...
  std::uint64_t begin = 0, end = 0; ///< offsets in the segment
  int node = -1; ///< where its pages are intended, the owner's or one that was asked for; -1: anywhere
  std::uint64_t page_bytes = 0;
  std::uint64_t huge = 0; ///< of `bytes_on`, in huge pages
  BytesOn bytes_on;
  Share share;
  std::uint64_t foreign = 0; ///< bytes that exist without the owner's mapping them: another has made them
  std::uint64_t not_in_core =
      0; ///< bytes that exist, and that no process maps: in swap, or not used any more
  std::vector<Range> ranges;
  std::vector<int> mapped_by; ///< ranks that map pages which are wrong or foreign
};

/// What one rank has sent to another.
struct Flow {
  int from = 0, to = 0;
  segment::Distance distance = segment::Distance::machine;
  segment::ByPath sent;

  segment::Amount total() const;
};

struct Snapshot {
  std::string job;           ///< "nearmpi-<pid>"; "" for a process alone
  std::int32_t launcher = 0; ///< mpiexec, or the process
  std::string at;            ///< UTC, "2026-11-21T18:00:00Z"
  double took_s = 0;
  std::uint64_t page_bytes = 0;
  std::vector<os::Node> nodes;
  std::vector<Process> processes;
  std::vector<Part> parts; ///< those that have pages
  std::vector<Flow> flows; ///< of ranks that talk, in the order of `from` and `to`

  /// The sum over processes of numa_maps. A page that several processes map counts in each.
  BytesOn bytes_on() const;
  std::string program() const; ///< of the first process that has one
};

/// The nodes of a set of processors, in order.
std::vector<int> nodes_of(const std::vector<os::Node>& nodes, const os::CpuSet& cpus);

/// Appends a page to ranges that are in order: longer the last one, or a new one.
void append_page(std::vector<Range>& ranges, std::uint64_t begin, std::uint64_t bytes, int node, bool wrong);

/// What somebody should know, and what to do about it.
struct Warning {
  enum class What { wrong_node, left_binding, foreign_page } what = What::wrong_node;
  int rank = -1;
  std::int32_t pid = 0;
  std::string where;  ///< role, or kind of memory; "" of a rank as a whole
  Share share;        ///< of wrong_node
  std::string text;   ///< what is the matter
  std::string advice; ///< what to do
};
const char* warning_name(Warning::What what);
std::vector<Warning> warnings_of(const Snapshot& snapshot);

/// What --assert-local looks at: the judged pages of one owner in one role, or of its private memory.
struct Row {
  int rank = -1;
  std::int32_t pid = 0;
  std::string where;
  Share share;
};
std::vector<Row> rows_of(const Snapshot& snapshot);
/// The rows of which less than `percent` is local. Whether anything was judged at all: `judged`.
std::vector<Row> offenders(const Snapshot& snapshot, double percent, bool& judged);

} // namespace near::place
