#include "os/process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace near::os {
namespace {

// The step at which the child failed. Sent as it is through a pipe that exec closes.
enum class Step : int { none = 0, group, parent, descriptors, affinity, directory, execute };
struct Failure {
  Step step = Step::none;
  int error = 0;
};

// The limit for processes that we start: programs that use select(2) fail with more than 1024 descriptors.
rlimit descriptor_limit{};
bool descriptor_limit_raised = false;

bool is_program(const std::string& path) {
  struct stat status{};
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && access(path.c_str(), X_OK) == 0;
}

// Searches PATH first, then the working directory, as other launchers do: `mpiexec a.out` means ./a.out.
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

// Duplicates a descriptor above the standard ones, so that moving one of these into position cannot overwrite
// another.
int lift(int descriptor) { return fcntl(descriptor, F_DUPFD_CLOEXEC, 3); }

void restore_signals() {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int number : {SIGPIPE, SIGTTOU, SIGTTIN, SIGCHLD, SIGURG, SIGXFSZ}) signal(number, SIG_DFL);
}

// Makes only system calls until exec, since another thread of the parent may have held a lock at the fork.
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
  // Some containers forbid this. The kernel's default is nearly the same, so continue.
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
    rlimit time{}, none{0, 0};
    getrlimit(RLIMIT_CPU, &time); // the user's own limit may be lower
    time.rlim_cur = std::min<rlim_t>(time.rlim_cur, seconds);
    time.rlim_max = std::min<rlim_t>(time.rlim_max, seconds);
    setrlimit(RLIMIT_CPU, &time);
    setrlimit(RLIMIT_CORE, &none);
    for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGXCPU, SIGALRM}) signal(number, SIG_DFL);
    sigset_t expired;
    sigemptyset(&expired);
    sigaddset(&expired, SIGALRM);
    sigprocmask(SIG_UNBLOCK, &expired, nullptr);
    alarm(seconds + seconds / 2 + 1);
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

/// waitpid(2) without waiting; -1: there is no such child.
static Pid reap_one(Pid which, Ending& ending) {
  int raw = 0;
  Pid pid;
  do pid = waitpid(which, &raw, WNOHANG);
  while (pid < 0 && errno == EINTR);
  if (pid > 0) ending = {pid, raw};
  return pid;
}

bool reap(Ending& ending, bool& none_left) {
  const Pid pid = reap_one(-1, ending);
  none_left = pid < 0;
  return pid > 0;
}

bool reap_child(Pid pid, Ending& ending) { return reap_one(pid, ending) > 0; }

} // namespace near::os
