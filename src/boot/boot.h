// The contract between the launcher and the library: what a process learns at its start, and how it
// communicates with the launcher afterwards. MPI-5.0 section 11 (process initialization, MPI_Abort).
//
//   mpiexec                                       a process of the job
//     create segment, keep its descriptor open
//     write_environment() ---- NEAR_BOOT_* -----> read_start(): descriptor, rank, size
//     fork, bind, exec                            transport::start(): map, lay out, phase = ready
//     polls the rank table    <--- signal ------- tell_launcher()
//     ends the job            <--- signal ------- abort_job(): RankEntry::abort_code, aborting
//     phase = dead, rings every doorbell
//
// In a job on several machines mpiexec also keeps a table, which all processes share through PMI-1. Other launchers
// communicate everything through PMI-1 or PMIx (by_table.h):
//
//   read_start()   who this process is; under other launchers the first one on each machine makes the segment
//   meet()         publishes this process's address on the network; opens the segment
//   address_of()   the address of a process on another machine
//   leave()        says goodbye
//
// A process without either is a singleton, unless it was evidently started by a launcher with some other protocol.
#pragma once

#include "base/result.h"
#include "os/descriptor.h"
#include "segment/segment.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace near::boot {

using base::Result;

inline constexpr int contract_version = 1;

/// What a process learns at its start.
struct Start {
  bool singleton = true;         ///< not started as part of a job; the fields below keep their defaults
  int segment_descriptor = -1;   ///< the job's segment, open in this process
  os::FileIdentity segment;      ///< the identity that this file must have
  std::int32_t launcher = 0;     ///< process id of mpiexec
  std::uint32_t rank = 0;        ///< the rank in MPI_COMM_WORLD
  std::uint32_t size = 1;        ///< number of processes started together
  std::uint32_t application = 0; ///< index of the program in a `:` list (MPI_APPNUM)
  // On this machine:
  std::uint32_t row = 0;            ///< row in the segment's rank table
  std::uint32_t here = 1;           ///< number of processes of the job
  std::vector<std::uint32_t> ranks; ///< their ranks, by row, in ascending order; empty if equal to the rows
  std::uint32_t machine = 0;        ///< number of this machine, in the launcher's numbering
  std::uint32_t machines = 1;       ///< number of machines of the job
  std::vector<std::uint32_t>
      machine_of;            ///< of each rank, in the launcher's numbering; empty if the job has one machine
  bool by_other = false;     ///< started by another launcher
  int table_descriptor = -1; ///< under mpiexec, in a job on several machines: the socket for PMI-1
  std::uint64_t secret = 0;  ///< shared by the processes of the job, if it has several machines
  std::string binding; ///< for people: where mpiexec bound this process, e.g. "core 3 (cpus 3,19), node 0"
};

/// Library: reads NEAR_BOOT_* from `environment`.
/// - If none is set, the process is a singleton.
/// - If a wrapper closed or replaced the descriptor, it is recovered through /proc/<launcher>/fd.
/// - If none is set, but another MPI's launcher that starts several processes is recognised: fails with
/// Code::unsupported; the text names that launcher and says what to do.
/// The caller owns the descriptor: it maps the segment, then closes the descriptor unless this process made the segment.
Result read_start(char** environment, Start& start);

/// Whether the launcher keeps a table that all processes of the job share.
inline bool has_table(const Start& start) { return start.by_other || start.machines > 1; }

/// Library, after read_start: publishes this process's address on the network, which is empty if the job has one machine.
/// If the launcher keeps a table, waits for all other processes of the job. Afterwards the segment's descriptor is open.
Result meet(Start& start, std::span<const std::byte> address);
/// Library: gets the address that a process has published.
Result address_of(const Start& start, std::uint32_t rank, std::vector<std::byte>& address);
/// Library: the first call says that this process has nothing left to send. Returns whether all processes of the job have said
/// so. For jobs on several machines.
bool all_leave(const Start& start);
/// Library: the last call, when this process has finished all communication.
void leave(const Start& start);
/// Whether this process has made the segment, and keeps its descriptor open so that tools can find the job.
inline bool made_segment(const Start& start) { return start.by_other && start.row == 0; }

/// Library: the number of processes that mpiexec started together with this one, found without joining
/// them; 1 for a singleton. 0 if unknown, because the variables are invalid or belong to another launcher.
std::uint32_t size_of_job(char** environment);

/// Library, after read_start: removes NEAR_BOOT_*, and other launchers' variables that name their table and the rank, from the
/// environment of this process. So a program that this rank starts is a job of its own and not a second process of the same
/// rank.
void forget_start();

/// Launcher: the variables of the contract, as NAME=value.
std::vector<std::string> write_environment(const Start& start);

/// Launcher: sets the variables by which scripts and libraries distinguish the ranks on a machine, and
/// replaces any that the environment contains: NEAR_RANK, NEAR_SIZE, NEAR_LOCAL_RANK, NEAR_LOCAL_SIZE, and
/// the last two again as MPI_LOCALRANKID and MPI_LOCALNRANKS, which programs for other libraries know. The
/// library reads none of them, and they remain after forget_start().
void give_rank_variables(const Start& start, std::vector<std::string>& environment);

/// Launcher: those variables that distinguish a process of this rank from every other process, including
/// those of jobs that the rank starts.
std::vector<std::string> marks_of(std::int32_t launcher, std::uint32_t rank);

/// Library: asks the launcher to poll the rank table now instead of at its next poll (it polls twice a
/// second). Called after the phase becomes ready, and after it becomes finalized. Never fails.
void tell_launcher(const Start& start);

/// Library: MPI_Abort. Records the code where the launcher finds it, notifies the launcher, flushes standard
/// output, and ends this process immediately without running exit handlers. The launcher then ends the job;
/// its status is exit_status_of_abort(code). `segment` may be unmapped (a singleton, or before the segment is
/// mapped). `how` is Abort::failed if the reason has already been printed, so that the launcher adds nothing.
[[noreturn]] void abort_job(const Start& start, const segment::Segment& segment, int code,
                            segment::Abort how = segment::Abort::called);

/// The exit status for an abort code: its low eight bits, but never 0, since an aborted job did not
/// succeed.
int exit_status_of_abort(int code);

/// Recognises a launcher of another MPI that started this process together with others. Returns its name with
/// the evidence, e.g. "MPICH's Hydra (PMI_RANK=1, PMI_SIZE=4)"; empty if there is none.
std::string foreign_launcher(char** environment);

} // namespace near::boot
