// The shared segment: one sparse, sealed memfd per job and machine, mapped once by every process of the job.
//
//   offset 0                         the launcher's region: Header page, rank table, the machine (machine.h)
//   offset (row + 1) * stride        the region of the process in that row, laid out by itself:
//
//     +--------------+-------+---------+--------------+-----------+-------+--------+---------+--
//     | control page | queue | credits | packet flags | area part | lanes | slices | packets | ...
//     +--------------+-------+---------+--------------+-----------+-------+--------+---------+--
//          --+------------+---------+--------+-------+
//        ... | statistics | traffic | blocks | arena |
//          --+------------+---------+--------+-------+
//       area part and slices are for collectives, the arena is for MPI_Alloc_mem and windows;
//       every part begins on a page, and the owner of the region is the first to write it
//
//   offset far_region(row)           far_stride bytes of addresses for the arena of the process in that row;
//                                    none if addresses are limited
//   offset huge_region(row)          if the administrator has reserved huge pages: as many addresses again,
//                                    of a second memfd made of those pages, for the arena's large blocks
//
// The regions are small, so that a process to which a tool leaves few addresses (the thread sanitizer) can map
// all of them. Such a process maps nothing else; under Valgrind, which reads everything that is mapped, it
// maps only the first part of each region. It publishes how much in the header (`reach`) before it is ready.
// Nobody allocates before all processes are ready, and then all allocate only within what every process has
// mapped. So processes need not map the same amount, and none receives an offset that it has not mapped.
//
// The job begins with the processes of the first `job_size` rows. A process that takes a further row joins them
// when all are ready, so it must have mapped the amount on which they have agreed.
//
// Thus (owner, offset) names every shareable byte, and one comparison tells whether an address is shareable.
// Shared memory contains offsets, never pointers.
//
// A process must not touch a page of another process's region before that process's entry in the rank table says
// `ready`: reading a hole in a shared mapping allocates the page, on the reader's node.
#pragma once

#include "base/atomic.h"
#include "base/result.h"
#include "os/descriptor.h"
#include "segment/initial_estimates.h"
#include "segment/reserve.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace near::segment {

using base::Atomic;
using base::Result;
using Offset = std::uint64_t;

inline constexpr std::uint64_t magic = 0x4e6561724d504931; // "NearMPI1"
inline constexpr std::uint32_t layout_version = 20;
/// The largest number of processes of a job, and of rows of its rank table.
inline constexpr std::uint32_t most_rows = 65536;

/// The phase of a process's life. Written by the process, except `dead`, which is written by the launcher, or by a process
/// that watches this one (boot/watch.h).
enum class Phase : std::uint32_t { empty = 0, launched, ready, finalized, dead };

/// How a process ends its job (RankEntry::aborting).
enum class Abort : std::uint32_t {
  none = 0,
  called = 1, ///< by MPI_Abort; the launcher reports it
  failed = 2, ///< by a fatal error, which a rank has already reported
};

/// One row of the rank table, in the launcher's region. It has two cache lines: the launcher writes the first, the
/// process the second.
struct alignas(128) RankEntry {
  Atomic<std::uint32_t> pid;         ///< 0 until the launcher has started the process
  Atomic<std::uint32_t> exit_status; ///< as waitpid(2) returns it; valid if dead
  std::uint32_t rank;                ///< in MPI_COMM_WORLD; set before the process starts
  std::int32_t first_cpu;            ///< lowest processor to which the process is bound; -1 if not bound
  Atomic<std::uint32_t> died_in;     ///< the Phase in which it died
  Location location;    ///< written before the process starts; if not bound, of all that it may use
  NearestNodes nearest; ///< written before the process starts
  char unused_1[28];
  Atomic<std::uint32_t> phase;     ///< Phase
  Atomic<std::uint32_t> aborting;  ///< Abort; stored after abort_code
  Atomic<std::int32_t> abort_code; ///< the error code of the abort
  Atomic<std::uint32_t> claimed;   ///< pid of the process that took this row; 0 if none has
  Atomic<std::uint32_t> promises;  ///< 1 if it has listed a block with promised pages (Block::promised)
  /// The distance from the NIC that the process uses (os::distance_to_node); 0 if unknown. Written before the process is ready.
  Atomic<std::uint32_t> nic_distance;
  char unused_2[40];
};
static_assert(sizeof(RankEntry) == 128, "two cache lines: the launcher's and the process's");

/// The other machines of the job that are lost, in the launcher's numbering. If there are more than fit, all count as lost.
struct alignas(64) LostMachines {
  static constexpr std::uint32_t most = 15;
  Atomic<std::uint32_t> count; ///< stored after the machine
  Atomic<std::uint32_t> machines[most];
};

/// First page of the segment. Readers check magic and version before anything else. Every process of the job
/// can overwrite it, so a process uses the values that it read and checked when it mapped the header
/// (Segment::rows() and so on).
struct Header {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t rows;     ///< rows of the rank table; rows from job_size on are for processes that join later
  std::uint32_t job_size; ///< processes with which the job begins
  std::uint32_t launcher; ///< pid of mpiexec, or of the singleton itself
  std::uint64_t stride;   ///< bytes of address per region; a power of two
  std::uint64_t started_ns;      ///< CLOCK_REALTIME
  std::uint32_t cores;           ///< processors that the job may use
  char job[64];                  ///< name for display: "nearmpi-<pid>"
  std::uint64_t huge_page_bytes; ///< page size of the second memfd; 0 if there is none
  os::FileIdentity huge_file;    ///< the second memfd, and its descriptor in the launcher
  std::int32_t huge_descriptor;
  Offset machine;           ///< of the tables in segment/machine.h; 0 if none
  std::uint64_t far_stride; ///< bytes of address per far arena, a power of two; 0 if none
  /// The most bytes that one rank reserves at start, as far as mpiexec knows; 0 without mpiexec.
  std::uint64_t expected_reserve;
  /// Processes of the first job_size rows that are ready; futex of MPI_Init.
  alignas(64) Atomic<std::uint32_t> ready;
  Atomic<std::uint32_t> fences;  ///< 1 if a process has no membarrier: every sender fences
  Atomic<std::uint32_t> notices; ///< bits of Notice
  Atomic<std::uint32_t> held;    ///< 1 while MPI_Init waits for a debugger to attach
  Atomic<std::uint64_t> reach;   ///< bytes of each region that all have mapped; `everything`: also the rest
  Atomic<std::uint64_t> largest_front;    ///< the largest number of bytes before the arena in any region
  LostMachines lost;                      ///< written by the process in row 0 (boot/watch.h)
  alignas(64) InitialEstimates estimates; ///< written before any process of the job starts
};

/// Header::reach of a job in which every process has mapped the whole segment.
inline constexpr std::uint64_t everything = UINT64_MAX;

inline constexpr std::size_t header_bytes = 4096;
static_assert(sizeof(Header) <= header_bytes);

/// Messages that only one rank of a job prints: bits of Header::notices.
enum class Notice : std::uint32_t { slow_copies = 1, fatal_error = 2, reserve = 4, death = 8 };
/// Returns true for the first rank that calls this with the notice.
inline bool first_to_say(Header& header, Notice notice) {
  return (header.notices.or_relaxed(static_cast<std::uint32_t>(notice)) &
          static_cast<std::uint32_t>(notice)) == 0;
}

/// StateLine::context of MPI_COMM_WORLD.
inline constexpr std::uint64_t world_context = 1u << 4;

/// What a process is doing: written by its generated entry points, read from outside (near top). A seqlock
/// (base/seqlock.h): `sequence` is odd during a write.
struct alignas(128) StateLine {
  Atomic<std::uint32_t> sequence;
  Atomic<std::uint32_t> function; ///< index into the generated function table; 0: outside MPI
  Atomic<std::uint64_t> context;  ///< context of the communicator
  Atomic<std::int32_t> peer;
  Atomic<std::int32_t> tag;
  Atomic<std::uint64_t> bytes;
  Atomic<std::uint64_t> since_ns; ///< CLOCK_MONOTONIC; written only on entering a wait, otherwise 0
  Atomic<std::uint64_t> calls;    ///< MPI calls so far
};
static_assert(sizeof(StateLine) == 128);
inline constexpr int state_lines = 4;

/// Counters of one process, which alone writes them. What it has sent is counted by receiver in
/// segment/traffic.h.
struct Counters {
  Atomic<std::uint64_t> unexpected; ///< messages that arrived before their receives
  Atomic<std::uint64_t> sleeps;
  // Collectives in areas: bytes that this process has read from others' published data, and how many of these the
  // publishing process had written on another NUMA node.
  Atomic<std::uint64_t> area_bytes, area_bytes_of_other_nodes;
  // Messages that this process has sent to other machines, and their payload.
  Atomic<std::uint64_t> network_messages, network_bytes;
  // Short one-sided operations on private memory that this process has handed to their targets, and how many of them it had to
  // carry out itself.
  Atomic<std::uint64_t> handed, taken_back;
};

/// A rank's doorbell. The owner sets `sleeping` before it sleeps on `bell`. Processes that are about to sleep
/// until a resource is free set the other fields (queue/flow_control.h).
struct alignas(128) Doorbell {
  Atomic<std::uint32_t> sleeping;
  Atomic<std::uint32_t> bell;           ///< futex word; incremented by each ring
  Atomic<std::uint64_t> slot_waiters;   ///< bits (process mod 64): processes waiting for a slot of this rank
  Atomic<std::uint64_t> packet_waiters; ///< not 0 if this rank waits for one of its own packets
  /// Stack of this rank's descriptors with FINs for it (queue/rts.h): Offset, or 0.
  Atomic<std::uint64_t> left_fins;
};

/// What a block is for.
enum class BlockUse : std::uint32_t {
  allocated = 0,
  window = 1,
  kept = 2, ///< freed, but kept with its pages for the next allocation
};

/// Whole pages of an arena that have been allocated. The owner writes, tools read. A window whose parts are
/// adjacent is in the arena of one process; each process lists the pages that belong to it.
struct Block {
  Atomic<std::uint64_t> bytes; ///< 0 if unused
  Atomic<Offset> begin;
  Atomic<std::int32_t> node; ///< the node that was requested; -1: the owner's
  Atomic<std::uint32_t> use; ///< BlockUse
  /// How many bytes of its pages are allocated only when some process touches them. Until then they count as
  /// used.
  Atomic<std::uint64_t> promised;
};
static_assert(sizeof(Block) == 32);
/// How many blocks of a process are listed; further blocks exist unlisted.
inline constexpr std::uint32_t most_blocks = 1024;

/// First page of a process's region.
struct ControlPage {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t pid;
  /// Offsets from the start of the segment. Parts follow one another; `area_part` is empty unless job_has_area().
  Offset queue, credits, packet_flags, area_part, lanes, slices, packets, statistics, traffic, blocks, arena;
  std::uint64_t queue_slots, lane_count;
  std::uint64_t packet_count; ///< the packets that exist from the start
  std::uint64_t packet_bytes, arena_bytes;
  std::uint64_t probe_address; ///< of `probe_value` in private memory; peers read it to test CMA
  std::uint64_t probe_value;
  /// One bit for each of the first 1024 processes: set if `statistics` has data for it. The pages of other rows may
  /// not exist.
  Atomic<std::uint64_t> with_statistics[16];
  Atomic<std::uint32_t> block_count; ///< how many of `blocks` were ever used; pages after them may not exist
  Doorbell doorbell;
  StateLine state[state_lines];
  alignas(128) Counters counters;
};
static_assert(sizeof(ControlPage) <= 4096);

/// The size in bytes of the header and the rank table, in whole pages.
std::uint64_t table_bytes(std::uint32_t rows);

/// A mapped segment.
class Segment {
public:
  Segment() = default;
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;
  ~Segment();

  /// Makes, sizes and seals the memfd, maps it and writes the header. `rows` is rounded up to a power of two.
  /// The descriptor stays open, and processes inherit it, until close_descriptor(). Takes as many addresses
  /// as it can get: without a limit, it halves the size until the mapping succeeds. If huge pages are
  /// reserved and free, makes a second memfd of those; if that fails, the job has none. `needed` is the
  /// largest size that a process's queue and packets may need, since processes may have different knobs.
  Result create(std::uint32_t rows, std::uint32_t job_size, std::uint32_t cores,
                std::uint64_t needed = bytes_by_knobs({}));
  /// Maps an existing segment. Checks its seals, and everything in the header on which readers rely. If there
  /// are too few addresses, maps only the regions. `writable` is false for tools, which need no second memfd.
  /// The descriptor remains the caller's; this object owns that of the second memfd.
  Result attach(int descriptor, bool writable);
  /// Limits what the processes of the job allocate to what this process has mapped. Call it only before this
  /// process is ready, and only if it is one of the job's initial processes.
  void publish_reach();
  /// Fails with Code::limit if this process has mapped less than the amount in which the processes of the job
  /// may allocate. For processes that map the segment of a job that has already begun.
  Result check_reach() const;
  void unmap();
  void close_descriptor();
  int descriptor() const { return descriptor_; }
  /// The descriptor of the memfd of reserved huge pages; -1 if there is none.
  int huge_descriptor() const { return huge_descriptor_; }

  bool mapped() const { return base_ != nullptr; }
  /// The bytes of each region that this process has mapped, or `everything`.
  std::uint64_t reach() const { return reach_; }
  std::byte* base() const { return base_; }
  std::uint64_t bytes() const { return bytes_; }
  /// The present contents of the header, which any process may have overwritten. Rely on the accessors below
  /// instead.
  Header& header() const { return *reinterpret_cast<Header*>(base_); }
  // The values in the header when this segment was made or mapped.
  std::uint32_t rows() const { return facts_.rows; }
  std::uint32_t job_size() const { return facts_.job_size; } ///< at most rows()
  std::uint32_t cores() const { return facts_.cores; }
  std::int32_t launcher() const { return facts_.launcher; }
  std::uint64_t started_ns() const { return facts_.started_ns; } ///< CLOCK_REALTIME
  std::uint64_t stride() const { return facts_.stride; }
  std::uint64_t far_stride() const { return facts_.far_stride; }
  std::uint64_t huge_stride() const { return facts_.far_stride != 0 ? facts_.far_stride : facts_.stride; }
  std::uint64_t huge_page_bytes() const { return facts_.huge_page_bytes; }
  const std::string& name() const { return facts_.name; } ///< of the job, printable on a terminal
  RankEntry& entry(std::uint32_t row) const {
    return reinterpret_cast<RankEntry*>(base_ + header_bytes)[row];
  }
  Offset region(std::uint32_t row) const { return (row + 1ull) * facts_.stride; }
  /// The far arena of the process in this row. Valid only if far_stride() is not 0. All processes have mapped
  /// it if they reach everything.
  Offset far_region(std::uint32_t row) const {
    return (facts_.rows + 1ull) * facts_.stride + row * facts_.far_stride;
  }
  /// The huge_stride() bytes of reserved huge pages of the process in this row. Valid only if
  /// huge_page_bytes() is not 0.
  Offset huge_region(std::uint32_t row) const { return far_region(facts_.rows) + row * huge_stride(); }
  /// Returns the phase of the process in this row.
  Phase phase_of(std::uint32_t row) const {
    // SYNC: rank-phase. Acquire: what the process has written before it entered the phase is visible.
    return static_cast<Phase>(entry(row).phase.load_acquire());
  }
  /// Returns true if the process in this row has laid out its region, even if it has ended since.
  bool has_region(std::uint32_t row) const;
  /// Valid only if has_region(row).
  ControlPage& control(std::uint32_t row) const { return *at<ControlPage>(region(row)); }

  template <class T>
  T* at(Offset offset) const {
    return reinterpret_cast<T*>(base_ + offset);
  }
  bool contains(const void* address) const {
    return static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - base_) < bytes_;
  }
  Offset offset_of(const void* address) const {
    return static_cast<Offset>(static_cast<const std::byte*>(address) - base_);
  }

  /// The data on which readers rely, in memory that no other process can write.
  struct Facts {
    std::uint32_t rows = 0, job_size = 0, cores = 0;
    std::int32_t launcher = 0;
    std::uint64_t started_ns = 0;
    std::uint64_t stride = 0, far_stride = 0, huge_page_bytes = 0;
    std::int32_t huge_descriptor = -1;
    os::FileIdentity huge_file;
    std::string name;
  };

private:
  /// Bytes of address per region and per far arena.
  struct Sizes {
    std::uint64_t stride = 0, far_stride = 0;
  };
  Result create_file(std::uint32_t rows, std::uint64_t needed, Sizes& sizes);
  Header& write_header(std::uint32_t rows, const Sizes& sizes);
  void create_huge_part();
  Result attach_huge_part(int descriptor);
  Result map_both(int first, int second);

  std::byte* base_ = nullptr;
  std::uint64_t bytes_ = 0; ///< of the whole mapping, including the second memfd
  std::uint64_t reach_ = everything;
  Facts facts_;
  int descriptor_ = -1, huge_descriptor_ = -1;
};

/// Finds the segment of a running job from outside, through /proc/<launcher pid>/fd; for tools. Fails if the
/// process is not a launcher of this user.
Result open_job(std::int32_t launcher, int& descriptor);
/// The pids of the launchers of all running jobs of this user, in ascending order.
std::vector<std::int32_t> running_jobs();
/// Finds the segment like open_job() and maps it for reading.
Result attach_job(std::int32_t launcher, Segment& segment);

} // namespace near::segment
