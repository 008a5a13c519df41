// The processes of this machine, as /proc lists them.
#include "os/process.h"

#include "os/files.h"

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <iterator>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unordered_map>

namespace near::os {

namespace {

// The parent of a process; 0 if the process is gone or a zombie. /proc/<pid>/stat is "pid (name) state parent
// ...", where the name may contain anything.
Pid parent_of(Pid pid) {
  auto text = read_file("/proc/" + std::to_string(pid) + "/stat");
  auto name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 4 > text.size() || text[name_end + 2] == 'Z') return 0;
  Pid parent = 0;
  std::from_chars(text.data() + name_end + 4, text.data() + text.size(), parent);
  return parent;
}

/// Calls act(folder, pid) for each process in /proc; `folder` is a descriptor of /proc.
template <class Act>
void for_each_process(Act&& act) {
  DIR* folder = opendir("/proc");
  if (folder == nullptr) return;
  while (dirent* entry = readdir(folder)) {
    std::string_view name(entry->d_name);
    Pid pid = 0;
    auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error == std::errc{} && end == name.data() + name.size()) act(dirfd(folder), pid);
  }
  closedir(folder);
}

} // namespace

bool ending_of(Pid pid, int watch, Ending& ending) {
  auto text = read_file("/proc/" + std::to_string(pid) + "/stat");
  // Checked after reading: if `watch` still reaches the process, the number was the process's own all along.
  if (syscall(SYS_pidfd_send_signal, watch, 0, nullptr, 0) != 0) return false;
  auto name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= text.size() || text[name_end + 2] != 'Z') return false;
  // The last field has the form of waitpid(2). It also reads 0 for a process that may not be inspected, so 0
  // means nothing.
  auto last = text.find_last_of(' ');
  int raw = 0;
  std::from_chars(text.data() + last + 1, text.data() + text.size(), raw);
  if (raw == 0) return false;
  ending = {pid, raw};
  return true;
}

std::vector<Pid> descendants_of(Pid root) {
  std::unordered_multimap<Pid, Pid> children;
  for_each_process([&children](int, Pid pid) {
    if (Pid parent = parent_of(pid); parent > 0) children.emplace(parent, pid);
  });
  std::vector<Pid> found{root};
  for (std::size_t i = 0; i < found.size(); ++i) {
    auto [first, last] = children.equal_range(found[i]);
    for (auto at = first; at != last; ++at) found.push_back(at->second);
  }
  found.erase(found.begin());
  return found;
}

std::vector<Pid> own_processes() {
  std::vector<Pid> found;
  for_each_process([&found](int folder, Pid pid) {
    struct stat status{};
    bool own = fstatat(folder, std::to_string(pid).c_str(), &status, 0) == 0 && status.st_uid == geteuid();
    if (own) found.push_back(pid);
  });
  return found;
}

std::string arguments_of(Pid pid) {
  auto text = read_file("/proc/" + std::to_string(pid) + "/cmdline");
  while (!text.empty() && text.back() == '\0') text.pop_back();
  std::replace(text.begin(), text.end(), '\0', ' ');
  return text;
}

std::vector<std::string> environment_of(Pid pid) {
  auto text = read_file("/proc/" + std::to_string(pid) + "/environ");
  std::vector<std::string> rows;
  for (std::size_t at = 0, end = 0; (end = text.find('\0', at)) != std::string::npos; at = end + 1)
    rows.push_back(text.substr(at, end - at));
  return rows;
}

std::vector<std::string> mapped_files(Pid pid) {
  auto text = read_file("/proc/" + std::to_string(pid) + "/maps");
  std::vector<std::string> names;
  for (std::size_t at = 0, end = 0; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
    auto path = text.find('/', at); // only a file's name contains one
    if (path >= end) continue;
    auto name = text.substr(path, end - path);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
  }
  return names;
}

Pid find_descendant(Pid root, Pid number) {
  for (Pid pid : descendants_of(root)) {
    auto status = read_file("/proc/" + std::to_string(pid) + "/status");
    auto line = status.find("\nNSpid:");
    if (line == std::string::npos) {
      if (pid == number) return pid;
      continue;
    }
    // "NSpid:\t4026\t17\t1", from this namespace inwards.
    auto end = status.find('\n', line + 1);
    auto last = status.rfind('\t', end);
    Pid innermost = 0;
    std::from_chars(status.data() + last + 1, status.data() + status.size(), innermost);
    if (innermost == number) return pid;
  }
  return 0;
}

namespace {

/// During an exec a process briefly has no environment, for as long as others keep it from its processor. Processes that have
/// ended, and kernel threads, never have one, nor a program.
std::string environment_text(Pid pid) {
  const std::string folder = "/proc/" + std::to_string(pid);
  constexpr timespec moment{0, 100'000};
  constexpr int usual_looks = 20, most_looks = 1000;
  char program[8];
  std::string rows;
  for (int look = 0; look < most_looks; ++look) {
    rows = read_file(folder + "/environ");
    if (!rows.empty()) break;
    if (look >= usual_looks && readlink((folder + "/exe").c_str(), program, sizeof program) < 0) break;
    nanosleep(&moment, nullptr);
  }
  return rows;
}

} // namespace

bool started_with(Pid pid, std::span<const std::string> variables) {
  std::string rows = environment_text(pid);
  rows.insert(0, 1, '\0');
  return std::all_of(variables.begin(), variables.end(), [&rows](const std::string& variable) {
    return rows.find('\0' + variable + '\0') != std::string::npos;
  });
}

bool descends_from(Pid pid, Pid root) {
  for (int depth = 0; pid > 1 && depth < 1024; ++depth) {
    if (pid == root) return true;
    pid = parent_of(pid);
  }
  return false;
}

bool processes_are_listed() {
  char target[16] = {};
  ssize_t length = readlink("/proc/self", target, sizeof target - 1);
  return length > 0 && std::string_view(target, static_cast<std::size_t>(length)) == std::to_string(getpid());
}

namespace {

/// Whether the process is our child; otherwise the number may belong to another process by now.
bool is_child(Pid pid) {
  siginfo_t unused{};
  return pid > 0 && waitid(P_PID, static_cast<id_t>(pid), &unused, WEXITED | WNOHANG | WNOWAIT) == 0;
}

std::vector<Pid> children_of(std::span<const Pid> known) {
  std::vector<Pid> children;
  std::copy_if(known.begin(), known.end(), std::back_inserter(children), is_child);
  return children;
}

/// Whether the process ignores the signal, as a shell's background processes ignore SIGINT.
bool ignores(Pid pid, int number) {
  constexpr std::string_view name = "\nSigIgn:\t";
  const std::string status = read_file("/proc/" + std::to_string(pid) + "/status");
  const auto line = status.find(name);
  if (line == std::string::npos) return false;
  std::uint64_t mask = 0;
  std::from_chars(status.data() + line + name.size(), status.data() + status.size(), mask, 16);
  return (mask >> (number - 1) & 1) != 0;
}

/// Sends each process the signal that `signal_of(pid)` returns.
template <class SignalOf>
std::size_t signal_each(const std::vector<Pid>& children, SignalOf signal_of) {
  if (!processes_are_listed()) {
    for (Pid pid : children) {
      if (getpgid(pid) == pid) kill(-pid, signal_of(pid));
      kill(pid, signal_of(pid));
    }
    return children.size();
  }
  auto all = descendants_of(getpid());
  for (Pid pid : all) kill(pid, signal_of(pid));
  return all.size();
}

} // namespace

std::size_t signal_descendants(int number, std::span<const Pid> known) {
  constexpr int lowest_priority = 19;
  const auto children = children_of(known);
  if (number == SIGTERM || number == SIGKILL)
    for (Pid pid : children) setpriority(PRIO_PROCESS, static_cast<id_t>(pid), lowest_priority);
  return signal_each(children, [number](Pid) { return number; });
}

std::size_t ask_descendants(int number, std::span<const Pid> known) {
  return signal_each(children_of(known),
                     [number](Pid pid) { return ignores(pid, number) ? SIGTERM : number; });
}

// A process that does not expect SIGURG ignores it. That matters if the number belongs to another process
// here, as with a wrapper that has a process namespace of its own.
void send_notice_signal(Pid pid) {
  if (pid > 1) kill(pid, SIGURG);
}

std::string name_of(Pid pid) {
  auto text = read_file("/proc/" + std::to_string(pid) + "/comm");
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

std::string boot_id() {
  const std::string text = read_file("/proc/sys/kernel/random/boot_id");
  const auto words = words_of(text);
  return words.empty() ? "" : std::string(words.front());
}

std::string number_space() {
  char target[64] = {};
  const ssize_t length = readlink("/proc/self/ns/pid", target, sizeof target - 1);
  const std::string boot = boot_id();
  return length <= 0 || boot.empty() ? "" : boot + ' ' + target;
}

std::string machine_name() {
  utsname names{};
  return uname(&names) == 0 ? names.nodename : "localhost";
}

} // namespace near::os
