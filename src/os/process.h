// Processes: starting one with its settings, watching it, and ending it with all of its descendants.
//
// All functions are for one machine and one parent. A process handle is a pidfd; where one is used, a number
// that the kernel has reused is never signalled by mistake.
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
  int raw = 0;            ///< the status from waitpid(2)
  bool by_signal() const; ///< otherwise it has exited with a status
  int signal() const;     ///< valid if by_signal()
  int status() const;     ///< as shown by a shell: the exit status, or 128 + signal
};

/// A process to start. All decisions are made before fork; the child only makes system calls.
struct Launch {
  std::string program;                    ///< a path; without a slash, searched in PATH, then in `directory`
  std::vector<std::string> arguments;     ///< including argv[0]
  std::vector<std::string> environment;   ///< NAME=value
  std::string directory;                  ///< working directory; empty: the parent's
  int input = 0, output = 1, error = 2;   ///< descriptors that become 0, 1 and 2
  std::array<int, 3> keep = {-1, -1, -1}; ///< descriptors to keep open across exec; -1: none
  CpuSet cpus;                            ///< processors to run on; empty: the parent's
  bool local_memory = false;              ///< set the memory policy "local" before exec
  bool own_group = true;                  ///< make it the leader of a new process group
  Pid join_group = 0;                     ///< otherwise the group to join; 0: the parent's
};

/// The file that start_process would execute for this program in this directory; "" if there is none.
std::string program_file(const std::string& program, const std::string& directory);

/// Runs `work` in a child with limited processor time, in seconds (less if this process's own limit is lower), and with
/// standard error redirected to /dev/null. For code that may crash, loop or wait on untrusted input: SIGALRM ends the
/// child after somewhat more than `seconds`, whether it uses the processor or not. `ending` is how the child ended, with
/// status 0 if `work` has returned.
Result try_in_child(const std::function<void()>& work, unsigned seconds, Ending& ending);

/// Forks, applies the settings and executes the program. The child gets SIGKILL when the calling thread ends.
/// A failure names the step: the program that was not found, the directory, the processor set.
Result start_process(const Launch& launch, Pid& pid);

/// Raises this process's limit of open descriptors to `count` if the hard limit permits. Processes made by
/// start_process get the old limit. Fails with Code::limit if the limit stays below `count`.
Result allow_descriptors(unsigned count);

/// fork(2); `child` is 0 in the child.
Result fork_process(Pid& child);

/// Makes orphaned descendants children of this process from now on.
Result become_subreaper();
/// Sends `signal` to this process when the thread of its parent that forked it ends. Fails with Code::gone if
/// `parent` is no longer the parent.
Result end_with_parent(int signal, Pid parent);
/// Moves this process into a process group of its own, so that it does not get the signals that a terminal
/// sends to the caller's group.
Result lead_own_group();

/// Gets a descriptor that becomes readable when process `pid` has ended. Close-on-exec.
Result watch_process(Pid pid, int& descriptor);

/// Gets how `pid`, which `watch` watches, has ended, as long as its parent has not reaped it. Returns false
/// if the parent has, or if /proc does not say.
bool ending_of(Pid pid, int watch, Ending& ending);

/// Reaps an ended child without waiting. Returns false if there is none; `none_left` is set if there are no
/// children at all.
bool reap(Ending& ending, bool& none_left);
/// Reaps only this child, without waiting. Returns false if it has not ended.
bool reap_child(Pid pid, Ending& ending);

/// Whether /proc is mounted and shows this process's namespace. If not, descendants cannot be found.
bool processes_are_listed();
/// All living descendants of `root` (without `root`), parents before their children.
std::vector<Pid> descendants_of(Pid root);
/// The living descendant of `root` whose number is `number` in its own process namespace, which may differ
/// from its number here; 0 if there is none.
Pid find_descendant(Pid root, Pid number);
/// Whether the environment with which `pid` was started contains all these "NAME=value". Returns false for a
/// process that may not be inspected.
bool started_with(Pid pid, std::span<const std::string> variables);
/// Whether `pid` is `root` or descends from it.
bool descends_from(Pid pid, Pid root);
/// Sends `signal` to every descendant of this process; returns their number. If processes are not listed, signals those
/// of `known` that are children of this process, and their process groups. If the signal ends them, first lowers the
/// priority of these children: hundreds of computing processes would keep this one from the processors for seconds.
std::size_t signal_descendants(int signal, std::span<const Pid> known);
/// Like signal_descendants(), for a signal that asks processes to end:
/// those that ignore it get SIGTERM instead, and priorities are unchanged.
std::size_t ask_descendants(int signal, std::span<const Pid> known);

/// Asks the launcher `pid` to check the rank table (boot/boot.h), by a signal that other programs ignore.
void send_notice_signal(Pid pid);

/// The processes of this user in /proc.
std::vector<Pid> own_processes();
/// The arguments with which the process was started, separated by spaces; "" if they may not be read.
std::string arguments_of(Pid pid);

/// The entries NAME=value of the environment with which the process was started; empty if they may not be
/// read.
std::vector<std::string> environment_of(Pid pid);
/// The files that the process has mapped, including its program and libraries, each listed once; empty if
/// they may not be read.
std::vector<std::string> mapped_files(Pid pid);

/// The name of the program that the process executes, without its folder; "" if the process is gone.
std::string name_of(Pid pid);

/// Identifies this boot of the machine's kernel; "" if the system does not report it.
std::string boot_id();
/// Two processes that get the same text, other than "", share one namespace of process numbers on one machine, so that a number
/// means the same process to both.
std::string number_space();

/// The node name from uname(2); it is not looked up in the network.
std::string machine_name();

} // namespace near::os
