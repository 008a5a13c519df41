#include "os/process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dirent.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unordered_map>

namespace near::os {
namespace {

// What the child could not do. Sent as it is through a pipe that exec closes.
enum class Step : int { none = 0, group, parent, descriptors, affinity, directory, execute };
struct Failure {
  Step step = Step::none;
  int error = 0;
};

// What the processes that we start shall have: programs that use select(2) break above 1024.
rlimit descriptor_limit{};
bool descriptor_limit_raised = false;

bool is_program(const std::string& path) {
  struct stat status{};
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && access(path.c_str(), X_OK) == 0;
}

// PATH first, then the working directory, as other launchers do: `mpiexec a.out` means ./a.out.
std::string find_program(const Launch& launch) {
  if (launch.program.find('/') != std::string::npos) return launch.program;
  const char* path = getenv("PATH");
  std::string_view rest = path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
  while (true) {
    auto colon = rest.find(':');
    std::string folder(rest.substr(0, colon));
    if (folder.empty()) folder = ".";
    if (auto candidate = folder + "/" + launch.program; is_program(candidate)) return candidate;
    if (colon == std::string_view::npos) break;
    rest.remove_prefix(colon + 1);
  }
  auto here = (launch.directory.empty() ? std::string(".") : launch.directory) + "/" + launch.program;
  return is_program(here) ? (launch.directory.empty() ? here : "./" + launch.program) : std::string();
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> list;
  list.reserve(texts.size() + 1);
  for (const auto& text : texts) list.push_back(const_cast<char*>(text.c_str()));
  list.push_back(nullptr);
  return list;
}

[[noreturn]] void give_up(int report, Step step) {
  Failure failure{step, errno};
  (void)!write(report, &failure, sizeof failure);
  _exit(127);
}

// A descriptor above the three standard ones, so that placing one of them cannot destroy another.
int lift(int descriptor) { return fcntl(descriptor, F_DUPFD_CLOEXEC, 3); }

void restore_signals() {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int number : {SIGPIPE, SIGTTOU, SIGTTIN, SIGCHLD, SIGURG, SIGXFSZ}) signal(number, SIG_DFL);
}

// Only system calls from here to exec: another thread of the parent may have held a lock at fork.
[[noreturn]] void become(const Launch& launch, const char* program, char* const* arguments,
                         char* const* shell_arguments, char* const* environment, Pid parent, int report) {
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) give_up(report, Step::parent);
  if (launch.own_group && setpgid(0, 0) != 0) give_up(report, Step::group);
  if (!launch.own_group && launch.join_group != 0 && setpgid(0, launch.join_group) != 0)
    give_up(report, Step::group);

  int input = lift(launch.input), output = lift(launch.output), error = lift(launch.error);
  if (input < 0 || output < 0 || error < 0 || dup2(input, 0) < 0 || dup2(output, 1) < 0 || dup2(error, 2) < 0)
    give_up(report, Step::descriptors);
  for (int keep : launch.keep)
    if (keep >= 0 && fcntl(keep, F_SETFD, 0) != 0) give_up(report, Step::descriptors);

  if (!launch.cpus.words().empty() &&
      syscall(SYS_sched_setaffinity, 0, launch.cpus.words().size() * sizeof(std::uint64_t),
              launch.cpus.words().data()) < 0)
    give_up(report, Step::affinity);
  // Refused in some containers; the kernel's default is nearly the same, so this is no reason to stop.
  if (launch.local_memory) syscall(SYS_set_mempolicy, MPOL_LOCAL, nullptr, 0);
  if (!launch.directory.empty() && chdir(launch.directory.c_str()) != 0) give_up(report, Step::directory);

  if (descriptor_limit_raised) setrlimit(RLIMIT_NOFILE, &descriptor_limit);
  restore_signals();
  execve(program, arguments, environment);
  if (errno == ENOEXEC) execve("/bin/sh", shell_arguments, environment); // a script without "#!"
  give_up(report, Step::execute);
}

Result explain(const Launch& launch, const Failure& failure) {
  switch (failure.step) {
  case Step::none: break;
  case Step::group: return base::fail_system("setpgid", failure.error);
  case Step::parent: return base::fail(base::Code::gone, "the launcher ended while it started a process");
  case Step::descriptors: return base::fail_system("dup2", failure.error, "standard input, output, error");
  case Step::affinity:
    return base::fail_system("sched_setaffinity", failure.error, "processors " + launch.cpus.text());
  case Step::directory:
    return base::fail(base::Code::invalid, "cannot enter the working directory '{}': {}", launch.directory,
                      strerror(failure.error));
  case Step::execute:
    return base::fail(base::Code::invalid, "cannot run '{}': {}", launch.program, strerror(failure.error));
  }
  return base::fail(base::Code::internal, "a process could not be started");
}

std::string read_file(const std::string& path) {
  std::string text;
  std::array<char, 4096> buffer;
  int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return text;
  for (ssize_t got; (got = read(descriptor, buffer.data(), buffer.size())) > 0;)
    text.append(buffer.data(), static_cast<std::size_t>(got));
  close(descriptor);
  return text;
}

// 0 when it is gone or a zombie: /proc/<pid>/stat is "pid (name) state parent ...", and the name may hold
// anything.
Pid parent_of(Pid pid) {
  auto text = read_file("/proc/" + std::to_string(pid) + "/stat");
  auto name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 4 > text.size() || text[name_end + 2] == 'Z') return 0;
  Pid parent = 0;
  std::from_chars(text.data() + name_end + 4, text.data() + text.size(), parent);
  return parent;
}

} // namespace

bool Ending::by_signal() const { return WIFSIGNALED(raw); }
int Ending::signal() const { return WTERMSIG(raw); }
int Ending::status() const { return by_signal() ? 128 + signal() : WEXITSTATUS(raw); }

std::string program_file(const std::string& program, const std::string& directory) {
  Launch launch;
  launch.program = program;
  launch.directory = directory;
  std::string found = find_program(launch);
  bool relative = !found.empty() && found.front() != '/' && !directory.empty();
  return relative ? directory + "/" + found : found;
}

Result try_in_child(const std::function<void()>& work, unsigned seconds, Ending& ending) {
  std::fflush(nullptr);
  Pid child = fork();
  if (child < 0) return base::fail_system("fork", errno, "too many processes?");
  if (child == 0) {
    rlimit time{seconds, seconds}, none{0, 0};
    setrlimit(RLIMIT_CPU, &time);
    setrlimit(RLIMIT_CORE, &none);
    for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGXCPU}) signal(number, SIG_DFL);
    if (int null = open("/dev/null", O_WRONLY | O_CLOEXEC); null >= 0) dup2(null, 2);
    work();
    _exit(0);
  }
  int raw = 0;
  Pid ended;
  do ended = waitpid(child, &raw, 0);
  while (ended < 0 && errno == EINTR);
  if (ended != child) return base::fail_system("waitpid", errno);
  ending = {child, raw};
  return {};
}

Result start_process(const Launch& launch, Pid& pid) {
  std::string program = find_program(launch);
  if (program.empty())
    return base::fail(base::Code::invalid,
                      "cannot run '{}': no program of that name is in PATH or in the working directory",
                      launch.program);
  auto arguments = pointers(launch.arguments);
  auto environment = pointers(launch.environment);
  std::vector<char*> shell_arguments{const_cast<char*>("/bin/sh"), program.data()};
  for (std::size_t i = 1; i < arguments.size(); ++i) shell_arguments.push_back(arguments[i]);
  if (arguments.size() == 1) shell_arguments.push_back(nullptr);

  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0) return base::fail_system("pipe2", errno);
  Pid parent = getpid();
  Pid child = fork();
  if (child == 0)
    become(launch, program.c_str(), arguments.data(), shell_arguments.data(), environment.data(), parent,
           lift(report[1]));
  int fork_error = errno;
  close(report[1]);
  if (child < 0) {
    close(report[0]);
    return base::fail_system("fork", fork_error, "too many processes?");
  }
  Failure failure;
  ssize_t got;
  do got = read(report[0], &failure, sizeof failure);
  while (got < 0 && errno == EINTR);
  close(report[0]);
  if (got != sizeof failure) {
    pid = child;
    return {};
  }
  waitpid(child, nullptr, 0);
  return explain(launch, failure);
}

Result allow_descriptors(unsigned count) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return base::fail_system("getrlimit", errno, "RLIMIT_NOFILE");
  if (limit.rlim_cur >= count) return {};
  if (limit.rlim_max < count)
    return base::fail(base::Code::limit, "{} open files are needed and {} allowed (ulimit -Hn)", count,
                      limit.rlim_max);
  if (!descriptor_limit_raised) descriptor_limit = limit;
  limit.rlim_cur = count;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return base::fail_system("setrlimit", errno, "RLIMIT_NOFILE");
  descriptor_limit_raised = true;
  return {};
}

Result fork_process(Pid& child) {
  Pid made = fork();
  if (made < 0) return base::fail_system("fork", errno, "too many processes?");
  child = made;
  return {};
}

Result become_subreaper() {
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
    return base::fail_system("prctl", errno, "PR_SET_CHILD_SUBREAPER");
  return {};
}

Result end_with_parent(int number, Pid parent) {
  if (prctl(PR_SET_PDEATHSIG, number) != 0) return base::fail_system("prctl", errno, "PR_SET_PDEATHSIG");
  if (getppid() != parent) return base::fail(base::Code::gone, "process {} has ended", parent);
  return {};
}

Result lead_own_group() {
  if (setpgid(0, 0) != 0) return base::fail_system("setpgid", errno);
  return {};
}

Result watch_process(Pid pid, int& descriptor) {
  int made = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (made < 0) return base::fail_system("pidfd_open", errno, "process " + std::to_string(pid));
  descriptor = made;
  return {};
}

bool ending_of(Pid pid, int watch, Ending& ending) {
  auto text = read_file("/proc/" + std::to_string(pid) + "/stat");
  // Only now: a process that its watch still reaches had this number all the time.
  if (syscall(SYS_pidfd_send_signal, watch, 0, nullptr, 0) != 0) return false;
  auto name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= text.size() || text[name_end + 2] != 'Z') return false;
  // The last field, in the form of waitpid(2). It reads 0 for who may not know it, and so may mean nothing.
  auto last = text.find_last_of(' ');
  int raw = 0;
  std::from_chars(text.data() + last + 1, text.data() + text.size(), raw);
  if (raw == 0) return false;
  ending = {pid, raw};
  return true;
}

bool reap(Ending& ending, bool& none_left) {
  none_left = false;
  int raw = 0;
  Pid pid;
  do pid = waitpid(-1, &raw, WNOHANG);
  while (pid < 0 && errno == EINTR);
  if (pid <= 0) {
    none_left = pid < 0;
    return false;
  }
  ending = {pid, raw};
  return true;
}

namespace {

/// Calls act(folder, pid) for each process in /proc, whose descriptor `folder` is.
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
    auto path = text.find('/', at); // a line has one only where a file's name begins
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
    // "NSpid:\t4026\t17\t1": from here inwards.
    auto end = status.find('\n', line + 1);
    auto last = status.rfind('\t', end);
    Pid innermost = 0;
    std::from_chars(status.data() + last + 1, status.data() + status.size(), innermost);
    if (innermost == number) return pid;
  }
  return 0;
}

bool started_with(Pid pid, std::span<const std::string> variables) {
  std::string path = "/proc/" + std::to_string(pid) + "/environ", rows;
  // In the midst of an exec a process has no environment for a moment.
  constexpr timespec moment{0, 100'000};
  for (int i = 0; i < 20 && (rows = read_file(path)).empty(); ++i) nanosleep(&moment, nullptr);
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

std::size_t signal_descendants(int number, std::span<const Pid> known) {
  if (!processes_are_listed()) {
    std::size_t reached = 0;
    for (Pid pid : known) {
      // A number that is not our child's may be a stranger's by now.
      siginfo_t unused{};
      if (pid <= 0 || waitid(P_PID, static_cast<id_t>(pid), &unused, WEXITED | WNOHANG | WNOWAIT) != 0)
        continue;
      ++reached;
      if (getpgid(pid) == pid) kill(-pid, number);
      kill(pid, number);
    }
    return reached;
  }
  auto all = descendants_of(getpid());
  for (Pid pid : all) kill(pid, number);
  return all.size();
}

// A process that does not expect it ignores SIGURG, which matters when the number means another process, as
// in a wrapper's own process namespace.
int look_signal() { return SIGURG; }
void send_look_signal(Pid pid) {
  if (pid > 1) kill(pid, SIGURG);
}

std::string name_of(Pid pid) {
  auto text = read_file("/proc/" + std::to_string(pid) + "/comm");
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

std::string machine_name() {
  utsname names{};
  return uname(&names) == 0 ? names.nodename : "localhost";
}

} // namespace near::os
