// Processes: start one prepared for its place, watch it, end it with everything that it started.
//
// Everything here is for one machine and one parent: a process handle is a pidfd, so a number that the kernel
// gave to somebody else in the meantime is never signalled by mistake where a handle exists.
#pragma once

#include "base/result.h"
#include "os/affinity.h"

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace near::os {

using base::Result;
using Pid = std::int32_t;

/// How a process ended.
struct Ending {
  Pid pid = 0;
  int raw = 0;            ///< as waitpid(2) gives it
  bool by_signal() const; ///< else it exited
  int signal() const;     ///< when by_signal()
  int status() const;     ///< what a shell shows: exit status, or 128 + signal
};

/// A process to start. Everything is decided before fork; the child only makes system calls.
struct Launch {
  std::string program;                  ///< a path; with no slash, looked up in PATH, then in `directory`
  std::vector<std::string> arguments;   ///< with argv[0]
  std::vector<std::string> environment; ///< NAME=value
  std::string directory;                ///< working directory; empty: the parent's
  int input = 0, output = 1, error = 2; ///< descriptors that become 0, 1 and 2
  std::array<int, 2> keep = {-1, -1};   ///< descriptors that stay open across exec; -1: none
  CpuSet cpus;                          ///< processors to run on; empty: the parent's
  bool local_memory = false;            ///< memory policy "local" before exec
  bool own_group = true;                ///< leads a process group of its own
  Pid join_group = 0;                   ///< else: joins this group; 0: keeps the parent's
};

/// The file that start_process would execute for this program in this directory; "" when there is none.
std::string program_file(const std::string& program, const std::string& directory);

/// Runs `work` in a child with at most so many seconds of processor time, and with its standard error closed
/// to /dev/null, to learn whether it ends at all: for code that may crash or loop on input that nobody
/// vouches for. `ending` says how the child ended; status 0 when `work` returned.
Result try_in_child(const std::function<void()>& work, unsigned seconds, Ending& ending);

/// Forks, prepares, executes. The child gets SIGKILL when the calling thread ends. A failure names the step:
/// the program that was not found, the directory, the processor set.
Result start_process(const Launch& launch, Pid& pid);

/// Raises this process's limit of open descriptors to `count` where its hard limit permits; the processes
/// that start_process makes get the old one back. Fails with Code::limit when it is too low.
Result allow_descriptors(unsigned count);

/// fork(2): `child` is 0 in the child.
Result fork_process(Pid& child);

/// Orphaned descendants become children of this process from now on.
Result become_subreaper();
/// This process gets `signal` when its parent's thread that forked it ends; fails with Code::gone when the
/// parent is not `parent` any more.
Result end_with_parent(int signal, Pid parent);
/// Leaves the caller's process group, so that what the terminal sends to that group does not reach it.
Result lead_own_group();

/// A descriptor that is readable once process `pid` ended. Close-on-exec.
Result watch_process(Pid pid, int& descriptor);

/// How `pid`, which `watch` watches, has ended, as long as its parent has not been told: false once that has,
/// or when /proc does not say it.
bool ending_of(Pid pid, int watch, Ending& ending);

/// One ended child, without waiting; false when there is none now. `none_left` says that there are no
/// children at all.
bool reap(Ending& ending, bool& none_left);

/// Whether /proc is there and shows this process's namespace. Without it no descendant can be found.
bool processes_are_listed();
/// All living descendants of `root` (not itself), parents before children.
std::vector<Pid> descendants_of(Pid root);
/// The living descendant of `root` that knows itself as process `number`, which differs from its number here
/// when it lives in a process namespace of its own; 0 when there is none.
Pid find_descendant(Pid root, Pid number);
/// Whether every one of these ("NAME=value") stood in the environment that `pid` was started with; false for
/// a process that may not be looked at.
bool started_with(Pid pid, std::span<const std::string> variables);
/// Whether `pid` is `root` or descends from it.
bool descends_from(Pid pid, Pid root);
/// Sends `signal` to every descendant of this process; returns how many there were. Where processes are not
/// listed: to those of `known` that are its children, with their process groups.
std::size_t signal_descendants(int signal, std::span<const Pid> known);

/// Asks the launcher `pid` to look at the rank table (boot/boot.h). The signal is one that a stranger
/// ignores.
void send_look_signal(Pid pid);
int look_signal();

/// The processes of this user that /proc shows.
std::vector<Pid> own_processes();
/// The arguments that the process was started with, each behind the other with a space; "" when they may not
/// be known.
std::string arguments_of(Pid pid);

/// The rows NAME=value of the environment that the process was started with; none when they may not be known.
std::vector<std::string> environment_of(Pid pid);
/// The files that the process has mapped, its program and libraries among them, each once; none when they may
/// not be known.
std::vector<std::string> mapped_files(Pid pid);

/// The last path component of what the process executes, or "" when it is gone.
std::string name_of(Pid pid);

/// The uname(2) node name; no lookup.
std::string machine_name();

} // namespace near::os
