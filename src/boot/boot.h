// The contract between the launcher and the library: what a process learns at its start, and how it speaks to
// the launcher afterwards. MPI-5.0 section 11 (process initialization, MPI_Abort).
//
//   mpiexec                                       a process of the job
//     create segment, keep its descriptor open
//     write_environment() ---- NEAR_BOOT_* -----> read_start(): descriptor, slot, size
//     fork, bind, exec                            transport::start(): map, lay out, phase = ready
//     looks at the table      <--- signal ------- tell_launcher()
//     ends the job            <--- signal ------- abort_job(): RankEntry::abort_code, aborting
//     phase = dead, epoch + 1, rings every doorbell
//
// A process without NEAR_BOOT_* is a singleton, unless another launcher evidently started it.
#pragma once

#include "base/result.h"
#include "os/descriptor.h"
#include "segment/segment.h"

#include <cstdint>
#include <string>
#include <vector>

namespace near::boot {

using base::Result;

inline constexpr int contract_version = 1;

/// What a process learns at its start.
struct Start {
  bool singleton = true;         ///< nobody started it as part of a job; the fields below keep their defaults
  int segment_descriptor = -1;   ///< the job's segment, open in this process
  os::FileIdentity segment;      ///< which file that must be
  std::int32_t launcher = 0;     ///< process number of mpiexec
  std::uint32_t slot = 0;        ///< row of the rank table; the rank in MPI_COMM_WORLD
  std::uint32_t size = 1;        ///< processes that mpiexec started together
  std::uint32_t application = 0; ///< index of the program in a `:` list (MPI_APPNUM)
  std::string binding; ///< for people: where mpiexec bound this process, e.g. "core 3 (cpus 3,19), node 0"
};

/// Library: reads NEAR_BOOT_* from `environment`.
/// - None of them: a singleton.
/// - The descriptor was closed or replaced by a wrapper: recovered through /proc/<launcher>/fd.
/// - None of them, but a launcher of another MPI that starts several processes is recognised: fails with
///   Code::unsupported; the text names that launcher and says what to do.
/// The descriptor is the caller's: it maps the segment, then closes it.
Result read_start(char** environment, Start& start);

/// Library: how many processes mpiexec started together with this one, without joining them; 1 for a
/// singleton. 0: unknown, since the variables are wrong or another launcher's.
std::uint32_t size_of_job(char** environment);

/// Library, after read_start: takes NEAR_BOOT_* out of this process's environment, so that a program which
/// this rank starts is a job of its own and not a second process in the same slot.
void forget_start();

/// Launcher: the contract's variables, as NAME=value.
std::vector<std::string> write_environment(const Start& start);

/// Launcher: gives an environment the variables from which scripts and libraries tell the ranks of a machine
/// apart, instead of any that it holds: NEAR_RANK, NEAR_SIZE, NEAR_LOCAL_RANK, NEAR_LOCAL_SIZE, and as
/// MPI_LOCALRANKID and MPI_LOCALNRANKS, which other libraries' programs know, the last two again. They are
/// for people: the library reads none of them, and they stay when forget_start() has taken the contract away.
void give_rank_variables(const Start& start, std::vector<std::string>& environment);

/// Launcher: those of the variables that tell a process of this rank from every other, its own jobs'
/// included.
std::vector<std::string> marks_of(std::int32_t launcher, std::uint32_t slot);

/// Library: asks the launcher to look at the rank table now instead of at its next look (it looks twice a
/// second anyway). After phase became ready, and after it became finalized. Never fails.
void tell_launcher(const Start& start);

/// Library: MPI_Abort. Records the code where the launcher finds it, tells the launcher, flushes standard
/// output and ends this process at once without running its exit handlers. The launcher then ends the job;
/// its status is exit_status_of_abort(code). `segment` may be unmapped (a singleton, or before the map is
/// made).
/// `how` is Abort::failed when the reason is written already, so that the launcher does not add to it.
[[noreturn]] void abort_job(const Start& start, const segment::Segment& segment, int code,
                            segment::Abort how = segment::Abort::called);

/// The process status for an abort code: its low eight bits, but never 0: a job that was aborted did not
/// succeed.
int exit_status_of_abort(int code);

/// The name of a recognised launcher of another MPI that started this process together with others, with the
/// evidence, e.g. "MPICH's Hydra (PMI_RANK=1, PMI_SIZE=4)"; empty when there is none.
std::string foreign_launcher(char** environment);

} // namespace near::boot
