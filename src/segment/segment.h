// The shared segment: one sparse, sealed memfd per job and machine, mapped once by every process of the job.
//
//   offset 0                         the launcher's region: Header page, rank table, the machine (machine.h)
//   offset (slot + 1) * stride       the region of the process in that slot, laid out by itself:
//
//     +--------------+-------+-------+----------------+-------+---------+---------+--------+-------+
//     | control page | queue | lanes | credits, flags | packets | statistics | traffic | blocks | arena |
//     +--------------+-------+-------+----------------+-------+---------+---------+--------+-------+
//       the arena is for MPI_Alloc_mem and windows;
//       every part begins on a page and is written first by the process that owns the region
//
//   offset far_region(slot)          far_stride bytes of addresses for the arena of the process in that slot,
//                                    none where addresses are limited
//   offset huge_region(slot)         where the administrator has reserved huge pages: as many addresses
//                                    again, of a second memfd that is made of those, for the arena's large
//                                    blocks
//
// The regions are small, so that a process to which a tool leaves few addresses (the thread sanitizer) can
// map all of them. It then maps nothing else; under valgrind, which reads through all that is mapped, only
// the first part of each. It says so in the header (`reach`) before it is ready. Nobody allocates before all
// are ready, and from then on every process of the job allocates within what all of them have mapped. So no
// two processes need to map equally much, and none gets an offset that it has not mapped.
//
// So any shareable byte is (owner, offset), and "is it shareable?" is one comparison. Offsets, never
// pointers, stand in shared memory.
//
// Nobody touches a page of another's region before that one's table entry says `ready`: a read of a hole in a
// shared mapping allocates the page on the reader's node.
#pragma once

#include "base/atomic.h"
#include "base/result.h"
#include "os/descriptor.h"
#include "segment/initial_estimates.h"

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
inline constexpr std::uint32_t layout_version = 9;
/// Processes of a job, and rows of its rank table, at most.
inline constexpr std::uint32_t most_slots = 65536;

/// Where a process of the job stands. Written by the process; `dead` by the launcher alone.
enum class Phase : std::uint32_t { empty = 0, launched, ready, finalized, dead };

/// How a process ends its job, in RankEntry::aborting.
enum class Abort : std::uint32_t {
  none = 0,
  called = 1, ///< by MPI_Abort: the launcher says so
  failed = 2, ///< by a fatal error, about which a rank has already written a line
};

/// One row of the rank table, in the launcher's region. 128 bytes: the first line is the launcher's, the
/// second the process's.
struct alignas(128) RankEntry {
  Atomic<std::uint32_t> pid;         ///< 0 until the launcher started it
  Atomic<std::uint32_t> exit_status; ///< as waitpid gives it, once dead
  std::uint32_t application;         ///< index of the program in a `:` list (MPI_APPNUM)
  std::int32_t first_cpu;            ///< lowest processor that it is bound to; -1: not bound
  Atomic<std::uint32_t> died_in;     ///< Phase in which the launcher found it dead
  Place place;          ///< written before the process starts; of all that it may use if not bound
  NearestNodes nearest; ///< likewise
  char unused_1[28];
  Atomic<std::uint32_t> phase;     ///< Phase
  Atomic<std::uint32_t> aborting;  ///< Abort; stored after abort_code
  Atomic<std::int32_t> abort_code; ///< its error code
  Atomic<std::uint32_t> claimed;   ///< pid of the process that took this slot; 0: nobody yet
  Atomic<std::uint32_t> promises;  ///< 1: it has listed a block with promised pages (Block::promised)
  char unused_2[44];
};
static_assert(sizeof(RankEntry) == 128, "two cache lines: the launcher's and the process's");

/// First page of the segment. Readers check magic and version before anything else. Each process of the job
/// can write it, so whoever has mapped a segment goes by what the header said then (Segment::slots() and so
/// on), which was checked.
struct Header {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t slots;           ///< rows of the rank table; job_size now, the rest for spawned processes
  std::uint32_t job_size;        ///< processes that mpiexec started
  std::uint32_t launcher;        ///< pid of mpiexec, or of the singleton itself
  std::uint64_t stride;          ///< bytes of address per region; a power of two
  std::uint64_t started_ns;      ///< CLOCK_REALTIME
  std::uint32_t cores;           ///< processors that the job may use
  char job[64];                  ///< name for people: "nearmpi-<pid>"
  std::uint64_t huge_page_bytes; ///< of the second memfd; 0: there is none
  os::FileIdentity huge_file;    ///< it, and where the launcher has it open
  std::int32_t huge_descriptor;
  Offset machine;                          ///< of the tables in segment/machine.h; 0: none
  std::uint64_t far_stride;                ///< bytes of address per far arena, a power of two; 0: none
  alignas(64) Atomic<std::uint32_t> ready; ///< processes that are ready; futex of MPI_Init
  Atomic<std::uint32_t> fences;            ///< 1: some process has no membarrier, so every sender fences
  Atomic<std::uint32_t> notices;           ///< bits of Notice
  Atomic<std::uint32_t> held;              ///< 1: MPI_Init waits for the launcher, for a debugger's sake
  Atomic<std::uint64_t> reach; ///< bytes of each region that all have mapped; `everything`: the rest as well
  Atomic<std::uint64_t> largest_front;    ///< of all regions, the most bytes before the arena
  alignas(64) InitialEstimates estimates; ///< written before any process of the job starts
};

/// Header::reach of a job in which every process has mapped the whole segment.
inline constexpr std::uint64_t everything = UINT64_MAX;

inline constexpr std::size_t header_bytes = 4096;
static_assert(sizeof(Header) <= header_bytes);

/// Remarks that one rank makes for all of its job: bits of Header::notices.
enum class Notice : std::uint32_t { slow_copies = 1, fatal_error = 2 };
/// True for the first rank that asks.
inline bool first_to_say(Header& header, Notice notice) {
  return (header.notices.or_relaxed(static_cast<std::uint32_t>(notice)) &
          static_cast<std::uint32_t>(notice)) == 0;
}

/// StateLine::context of MPI_COMM_WORLD.
inline constexpr std::uint64_t world_context = 1u << 4;

/// What a process is doing: written by its generated entry points, read from outside (near top). A seqlock
/// with one writer: odd while it is written.
struct alignas(128) StateLine {
  Atomic<std::uint32_t> sequence;
  Atomic<std::uint32_t> function; ///< index into the generated function table; 0: outside MPI
  Atomic<std::uint64_t> context;  ///< communicator
  Atomic<std::int32_t> peer;
  Atomic<std::int32_t> tag;
  Atomic<std::uint64_t> bytes;
  Atomic<std::uint64_t> since_ns; ///< CLOCK_MONOTONIC; written only on entering a wait, else 0
  Atomic<std::uint64_t> calls;    ///< MPI calls so far
};
static_assert(sizeof(StateLine) == 128);
inline constexpr int state_lines = 4;

/// Plain counters of one process. One writer. What it sent is counted by receiver: segment/traffic.h.
struct Counters {
  Atomic<std::uint64_t> unexpected; ///< arrived before their receives
  Atomic<std::uint64_t> sleeps;
};

/// A rank's doorbell: `sleeping` is set by its owner before it sleeps on `bell`. The others are set by who
/// will sleep until there is room (queue/flow_control.h).
struct alignas(128) Doorbell {
  Atomic<std::uint32_t> sleeping;
  Atomic<std::uint32_t> bell;         ///< futex word; increases with each ring
  Atomic<std::uint64_t> slot_waiters; ///< bits (process mod 64): processes that wait for a slot of this rank
  Atomic<std::uint64_t> packet_waiters; ///< not 0: this rank waits for one of its own packets
};

/// What a block is for.
enum class BlockUse : std::uint32_t {
  allocated = 0,
  window = 1,
  kept = 2, ///< freed, with its pages, for the next allocation
};

/// Whole pages of an arena that have been handed out. The owner writes, tools read. A window whose parts lie
/// one behind the other is in one process's arena, and each process lists the pages that are its own.
struct Block {
  Atomic<std::uint64_t> bytes; ///< 0: none
  Atomic<Offset> begin;
  Atomic<std::int32_t> node; ///< that was asked for; -1: the owner's
  Atomic<std::uint32_t> use; ///< BlockUse
  /// Of its pages, so many bytes come into being when they are touched, by any process. Until then they are
  /// counted as taken.
  Atomic<std::uint64_t> promised;
};
static_assert(sizeof(Block) == 32);
/// Listed of a process; further ones are there all the same.
inline constexpr std::uint32_t most_blocks = 1024;

/// First page of a process's region.
struct ControlPage {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t pid;
  /// From the segment's start.
  Offset queue, lanes, credits, packet_flags, packets, statistics, traffic, blocks, arena;
  std::uint64_t queue_slots, lane_count, packet_count, packet_bytes, arena_bytes;
  std::uint64_t probe_address; ///< of `probe_value` in this process's private memory: how peers try CMA
  std::uint64_t probe_value;
  /// Bits: the processes (of the first 1024) of which `statistics` has something; other rows' pages may not
  /// exist.
  Atomic<std::uint64_t> with_statistics[16];
  Atomic<std::uint32_t> block_count; ///< so many of `blocks` were ever used; pages behind them may not exist
  Doorbell doorbell;
  StateLine state[state_lines];
  alignas(128) Counters counters;
};
static_assert(sizeof(ControlPage) <= 4096);

/// Packets have at least this size, whatever the eager limit: fragments of large messages are that long.
inline constexpr std::uint64_t smallest_packet = 16u << 10;
/// What the knobs make of a process's region: one packet's bytes, the bytes of queue and packets that exist
/// from the beginning, and the addresses that both have with the packets that come with traffic.
std::uint64_t packet_bytes();
std::uint64_t reserved_by_knobs();
std::uint64_t room_by_knobs();

/// Header and rank table, in whole pages.
std::uint64_t table_bytes(std::uint32_t slots);

/// A mapped segment.
class Segment {
public:
  Segment() = default;
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;
  ~Segment();

  /// Makes the memfd, sizes and seals it, maps it and writes the header. `slots` is rounded up to a power of
  /// two. The descriptor stays open (it is inherited by the processes) until close_descriptor().
  /// Takes as many addresses as it can get: without a limit, halves what it asks for until they can be mapped.
  /// Where huge pages are reserved and free, also makes the memfd of those; a job does without when that
  /// fails.
  /// `room`: the most that a process's queue and packets may need; processes may have different knobs.
  Result create(std::uint32_t slots, std::uint32_t job_size, std::uint32_t cores,
                std::uint64_t room = room_by_knobs());
  /// Maps an existing one; checks seals, and all of the header that a reader builds on. Where there are too
  /// few addresses, maps the regions only, and says in the header how much, if it may. `writable` false: for
  /// tools that only look, and that need no second memfd. The descriptor stays the caller's; that of the
  /// second memfd is then this object's.
  Result attach(int descriptor, bool writable);
  void unmap();
  void close_descriptor();
  int descriptor() const { return descriptor_; }
  /// Of reserved huge pages; -1: there are none.
  int huge_descriptor() const { return huge_descriptor_; }

  bool mapped() const { return base_ != nullptr; }
  /// Bytes of each region that this process has mapped, or `everything`.
  std::uint64_t reach() const { return reach_; }
  std::byte* base() const { return base_; }
  std::uint64_t bytes() const { return bytes_; }
  /// What stands in the segment now: nothing to build on, see the next ones.
  Header& header() const { return *reinterpret_cast<Header*>(base_); }
  // What the header said when this segment was made or mapped.
  std::uint32_t slots() const { return facts_.slots; }
  std::uint32_t job_size() const { return facts_.job_size; } ///< at most slots()
  std::uint32_t cores() const { return facts_.cores; }
  std::int32_t launcher() const { return facts_.launcher; }
  std::uint64_t started_ns() const { return facts_.started_ns; } ///< CLOCK_REALTIME
  std::uint64_t stride() const { return facts_.stride; }
  std::uint64_t far_stride() const { return facts_.far_stride; }
  std::uint64_t huge_stride() const { return facts_.far_stride != 0 ? facts_.far_stride : facts_.stride; }
  std::uint64_t huge_page_bytes() const { return facts_.huge_page_bytes; }
  const std::string& name() const { return facts_.name; } ///< of the job, as a terminal may show it
  RankEntry& entry(std::uint32_t slot) const {
    return reinterpret_cast<RankEntry*>(base_ + header_bytes)[slot];
  }
  Offset region(std::uint32_t slot) const { return (slot + 1ull) * facts_.stride; }
  /// Only where far_stride() is not 0; mapped by all processes if they reach everything.
  Offset far_region(std::uint32_t slot) const {
    return (facts_.slots + 1ull) * facts_.stride + slot * facts_.far_stride;
  }
  /// Of reserved huge pages, huge_stride() bytes; only where huge_page_bytes() is not 0.
  Offset huge_region(std::uint32_t slot) const { return far_region(facts_.slots) + slot * huge_stride(); }
  /// Only once entry(slot) is ready or later.
  ControlPage& control(std::uint32_t slot) const { return *at<ControlPage>(region(slot)); }

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

  /// What a reader builds on, in memory that no other process can write.
  struct Facts {
    std::uint32_t slots = 0, job_size = 0, cores = 0;
    std::int32_t launcher = 0;
    std::uint64_t started_ns = 0;
    std::uint64_t stride = 0, far_stride = 0, huge_page_bytes = 0;
    std::int32_t huge_descriptor = -1;
    os::FileIdentity huge_file;
    std::string name;
  };

private:
  void create_huge_part();
  Result attach_huge_part(int descriptor);
  Result map_both(int first, int second);

  std::byte* base_ = nullptr;
  std::uint64_t bytes_ = 0; ///< that are mapped, with the second memfd's
  std::uint64_t reach_ = everything;
  Facts facts_;
  int descriptor_ = -1, huge_descriptor_ = -1;
};

/// Finds the segment of a running job from outside, through /proc/<launcher pid>/fd; for tools.
Result open_job(std::int32_t launcher, int& descriptor);
/// The launchers (processes as for open_job) of all running jobs of this user, by number.
std::vector<std::int32_t> running_jobs();
/// Finds it like open_job, and maps it for reading.
Result attach_job(std::int32_t launcher, Segment& segment);

} // namespace near::segment
