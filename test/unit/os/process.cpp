// Starting, watching and ending processes.
#include "os/process.h"

#include "os/descriptor.h"
#include "os/memory.h"
#include "os/poller.h"
#include "os/signals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

using namespace near;

namespace {

os::Launch shell(const std::string& script) {
  os::Launch launch;
  launch.program = "/bin/sh";
  launch.arguments = {"sh", "-c", script};
  launch.environment = {"PATH=/usr/bin:/bin", "MARK=7"};
  return launch;
}

TEST(Process, the_environment_that_it_was_started_with_is_seen_from_outside) {
  auto launch = shell("exec sleep 100");
  os::Pid pid = 0;
  ASSERT_TRUE(os::start_process(launch, pid).ok());
  const std::string right[] = {"MARK=7", "PATH=/usr/bin:/bin"}, wrong[] = {"MARK=7", "PATH=/usr"},
                    part[] = {"ARK=7"};
  EXPECT_TRUE(os::started_with(pid, right));
  EXPECT_FALSE(os::started_with(pid, wrong));
  EXPECT_FALSE(os::started_with(pid, part));
  auto rows = os::environment_of(pid);
  for (const auto& row : right) EXPECT_EQ(std::count(rows.begin(), rows.end(), row), 1) << row;
  os::send_signal(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
}

TEST(Process, the_environment_is_seen_also_while_the_process_executes_another_program) {
  alarm(60);
  auto launch = shell("exec sh -c \"$AGAIN\"");
  launch.environment.push_back("AGAIN=exec sh -c \"$AGAIN\""); // forever
  os::Pid pid = 0;
  ASSERT_TRUE(os::start_process(launch, pid).ok());
  const std::string mark[] = {"MARK=7"};
  int unseen = 0;
  for (int look = 0; look < 10000; ++look) unseen += !os::started_with(pid, mark);
  EXPECT_EQ(unseen, 0);
  os::send_signal(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  alarm(0);
}

TEST(Process, the_files_that_it_has_mapped_are_seen_from_outside) {
  std::string name = testing::TempDir() + "a mapped file";
  int file = open(name.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
  ASSERT_GE(file, 0);
  ASSERT_EQ(ftruncate(file, 3 * 4096), 0);
  void* first = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, file, 0);
  void* second = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, file, 8192);
  ASSERT_TRUE(first != MAP_FAILED && second != MAP_FAILED);
  auto names = os::mapped_files(getpid());
  EXPECT_EQ(std::count(names.begin(), names.end(), name), 1);
  munmap(first, 4096);
  munmap(second, 4096);
  close(file);
  unlink(name.c_str());
  names = os::mapped_files(getpid());
  EXPECT_EQ(std::count(names.begin(), names.end(), name), 0);
  EXPECT_TRUE(os::mapped_files(0).empty());
  EXPECT_TRUE(os::environment_of(0).empty());
}

TEST(Pipes, report_space_and_readers_that_have_gone) {
  os::ignore_signal(SIGPIPE);
  int read_end = -1, write_end = -1, source = -1, feed = -1;
  ASSERT_TRUE(os::make_input_pipe(read_end, write_end).ok());
  ASSERT_TRUE(os::make_pipe(source, feed).ok());
  std::vector<char> much(1 << 20, 'x');
  std::size_t bytes = 0;
  ASSERT_EQ(os::write_some(write_end, much.data(), much.size(), bytes), os::Transfer::some);
  EXPECT_LT(bytes, much.size()) << "more than a pipe holds";
  EXPECT_EQ(os::write_some(write_end, much.data(), much.size(), bytes), os::Transfer::nothing_now);

  ASSERT_EQ(write(feed, "x", 1), 1);
  os::Outlet outlet{write_end, true, true, true};
  EXPECT_TRUE(os::wait_for_transfer(source, {&outlet, 1}));
  EXPECT_FALSE(outlet.ready || outlet.gone);
  std::vector<char> taken(1 << 16);
  ASSERT_GT(read(read_end, taken.data(), taken.size()), 0);
  EXPECT_FALSE(os::wait_for_transfer(-1, {&outlet, 1}));
  EXPECT_TRUE(outlet.ready && !outlet.gone);
  close(read_end);
  outlet.wanted = false;
  EXPECT_FALSE(os::wait_for_transfer(-1, {&outlet, 1}));
  EXPECT_TRUE(outlet.gone && !outlet.ready);
  EXPECT_EQ(os::write_some(write_end, much.data(), much.size(), bytes), os::Transfer::ended);
  for (int end : {write_end, source, feed}) close(end);
}

// Returns the standard output of the script and sets its exit status.
std::string output_of(os::Launch launch, int& status) {
  int read_end = -1, write_end = -1;
  EXPECT_TRUE(os::make_pipe(read_end, write_end).ok());
  launch.output = write_end;
  os::Pid pid = 0;
  EXPECT_TRUE(os::start_process(launch, pid).ok()) << base::failure_text();
  close(write_end);
  int raw = 0;
  waitpid(pid, &raw, 0);
  status = os::Ending{pid, raw}.status();
  std::string text;
  char buffer[256];
  std::size_t bytes = 0;
  while (os::read_some(read_end, buffer, sizeof buffer, bytes) == os::Transfer::some)
    text.append(buffer, bytes);
  close(read_end);
  return text;
}

TEST(process, gets_its_environment_directory_and_status) {
  auto launch = shell("echo $MARK; pwd; exit 5");
  launch.directory = "/usr";
  int status = -1;
  EXPECT_EQ(output_of(launch, status), "7\n/usr\n");
  EXPECT_EQ(status, 5);
}

TEST(process, is_bound_before_it_runs) {
  os::CpuSet allowed;
  ASSERT_TRUE(os::affinity_of(0, allowed).ok());
  auto launch = shell("grep Cpus_allowed_list /proc/self/status | tr -d '\\t' | cut -d: -f2");
  launch.cpus.add(static_cast<unsigned>(allowed.first()));
  int status = -1;
  EXPECT_EQ(output_of(launch, status), launch.cpus.text() + "\n");
}

TEST(process, a_missing_program_or_directory_is_named) {
  auto launch = shell("true");
  launch.program = "no-such-program";
  os::Pid pid = 0;
  EXPECT_TRUE(os::start_process(launch, pid).is(base::Code::invalid));
  EXPECT_NE(base::failure_text().find("no-such-program"), std::string::npos);
  launch.program = "/no/such/program";
  EXPECT_TRUE(os::start_process(launch, pid).is(base::Code::invalid));
  EXPECT_NE(base::failure_text().find("No such file"), std::string::npos);
  launch.program = "/bin/sh";
  launch.directory = "/no/such/folder";
  EXPECT_TRUE(os::start_process(launch, pid).is(base::Code::invalid));
  EXPECT_NE(base::failure_text().find("/no/such/folder"), std::string::npos);
}

TEST(process, only_the_kept_descriptor_survives_exec) {
  int kept = fcntl(2, F_DUPFD_CLOEXEC, 0), lost = fcntl(2, F_DUPFD_CLOEXEC, 0);
  ASSERT_GE(kept, 0);
  ASSERT_GE(lost, 0);
  auto launch = shell("test -e /proc/self/fd/" + std::to_string(kept) +
                      " && echo kept; test -e /proc/self/fd/" + std::to_string(lost) + " && echo lost; true");
  launch.keep = {kept, -1};
  int status = -1;
  EXPECT_EQ(output_of(launch, status), "kept\n");
  close(kept);
  close(lost);
}

TEST(process, work_in_a_child_is_ended_if_it_waits_or_crashes) {
  using Work = void (*)();
  const std::pair<Work, int> ends[] = {{[] { pause(); }, SIGALRM}, {[] { std::abort(); }, SIGABRT}};
  for (const auto& [work, signal] : ends) {
    os::Ending ending;
    ASSERT_TRUE(os::try_in_child(work, 1, ending).ok());
    ASSERT_TRUE(ending.by_signal());
    EXPECT_EQ(ending.signal(), signal);
  }
  os::Ending ending;
  ASSERT_TRUE(os::try_in_child([] {}, 1, ending).ok());
  EXPECT_EQ(ending.status(), 0);
}

TEST(process, a_watch_becomes_ready_when_the_process_ends) {
  os::Pid pid = 0;
  ASSERT_TRUE(os::start_process(shell("exec sleep 60"), pid).ok());
  int watch = -1;
  ASSERT_TRUE(os::watch_process(pid, watch).ok());
  os::Poller poller;
  ASSERT_TRUE(poller.open().ok());
  ASSERT_TRUE(poller.add(watch, 42).ok());
  std::vector<std::uint64_t> keys;
  poller.wait(0, keys);
  EXPECT_TRUE(keys.empty());
  os::Ending seen;
  EXPECT_FALSE(os::ending_of(pid, watch, seen)) << "of a living process";
  os::send_signal(pid, SIGTERM);
  poller.wait(20'000, keys);
  EXPECT_EQ(keys, std::vector<std::uint64_t>{42});
  EXPECT_TRUE(os::ending_of(pid, watch, seen)) << "of a zombie";
  int raw = 0;
  waitpid(pid, &raw, 0);
  EXPECT_EQ(seen.pid, pid);
  EXPECT_EQ(seen.raw, raw);
  EXPECT_FALSE(os::ending_of(pid, watch, seen)) << "of a process whose parent was told";
  os::Ending ending{pid, raw};
  EXPECT_TRUE(ending.by_signal());
  EXPECT_EQ(ending.signal(), SIGTERM);
  EXPECT_EQ(ending.status(), 143);
  close(watch);
}

TEST(process, one_child_is_reaped_and_the_others_are_left) {
  os::Pid first = 0, second = 0;
  ASSERT_TRUE(os::start_process(shell("exit 3"), first).ok());
  ASSERT_TRUE(os::start_process(shell("exec sleep 100"), second).ok());
  int watch = -1;
  ASSERT_TRUE(os::watch_process(first, watch).ok());
  ASSERT_TRUE(os::wait_until_readable({&watch, 1}, 10'000'000'000));
  os::close_descriptor(watch);
  os::Ending ending;
  EXPECT_FALSE(os::reap_child(second, ending)) << "it runs";
  ASSERT_TRUE(os::reap_child(first, ending));
  EXPECT_EQ(ending.pid, first);
  EXPECT_EQ(ending.status(), 3);
  EXPECT_FALSE(os::reap_child(first, ending)) << "it is reaped already";
  kill(second, SIGKILL);
  EXPECT_EQ(waitpid(second, nullptr, 0), second);
}

TEST(process, numbers_mean_the_same_to_a_child_in_the_same_namespace) {
  int from = -1, to = -1;
  ASSERT_TRUE(os::make_pipe(from, to).ok());
  os::Pid child = 0;
  ASSERT_TRUE(os::fork_process(child).ok());
  if (child == 0) {
    const std::string space = os::number_space();
    (void)os::write_all(to, space.data(), space.size());
    _exit(0);
  }
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  char said[200] = {};
  EXPECT_GT(read(from, said, sizeof said - 1), 40);
  EXPECT_EQ(os::number_space(), said);
  os::close_descriptor(from);
  os::close_descriptor(to);
}

TEST(process, descendants_are_found_through_generations) {
  os::Pid pid = 0;
  ASSERT_TRUE(os::start_process(shell("sh -c 'sleep 60; true' & sleep 60; true"), pid).ok());
  std::size_t found = 0;
  for (int attempt = 0; attempt < 1000 && found < 3; ++attempt) {
    found = os::descendants_of(pid).size();
    usleep(10'000);
  }
  EXPECT_EQ(found, 3u);
  auto all = os::descendants_of(pid);
  for (auto each : all) {
    EXPECT_TRUE(os::descends_from(each, pid));
    EXPECT_FALSE(os::descends_from(pid, each));
  }
  EXPECT_EQ(os::find_descendant(pid, all.back()), all.back());
  EXPECT_EQ(os::find_descendant(pid, getpid()), 0);
  for (auto each : all) kill(each, SIGKILL);
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
}

TEST(process, known_children_give_way_to_the_process_that_ends_them) {
  os::Pid pid = 0;
  ASSERT_TRUE(os::start_process(shell("exec sleep 60"), pid).ok());
  const os::Pid known[] = {pid, 1};
  const auto priority = [pid] { return getpriority(PRIO_PROCESS, static_cast<id_t>(pid)); };
  const int before = priority();
  EXPECT_GE(os::signal_descendants(SIGCONT, known), 1u);
  EXPECT_EQ(priority(), before);
  os::send_signal(pid, SIGSTOP); // so that SIGTERM waits
  EXPECT_GE(os::signal_descendants(SIGTERM, known), 1u);
  EXPECT_EQ(priority(), 19);
  EXPECT_NE(getpriority(PRIO_PROCESS, 0), 19);
  os::signal_descendants(SIGCONT, known);
  int raw = 0;
  EXPECT_EQ(waitpid(pid, &raw, 0), pid);
  EXPECT_TRUE(WIFSIGNALED(raw) && WTERMSIG(raw) == SIGTERM);
}

TEST(process, dies_with_its_parent) {
  int read_end = -1, write_end = -1;
  ASSERT_TRUE(os::make_pipe(read_end, write_end).ok());
  os::Pid middle = fork();
  if (middle == 0) {
    auto launch = shell("exec sleep 60");
    launch.output = write_end;
    os::Pid pid = 0;
    if (!os::start_process(launch, pid).ok()) _exit(1);
    raise(SIGKILL);
  }
  close(write_end);
  waitpid(middle, nullptr, 0);
  // The pipe reports its end once the sleeper, the last process that holds it, has ended.
  char byte = 0;
  std::size_t bytes = 0;
  auto got = os::Transfer::nothing_now;
  for (int attempt = 0; attempt < 1000 && got == os::Transfer::nothing_now; ++attempt) {
    usleep(10'000);
    got = os::read_some(read_end, &byte, 1, bytes);
  }
  EXPECT_EQ(got, os::Transfer::ended);
  close(read_end);
}

TEST(signals, blocked_ones_arrive_in_the_inbox) {
  os::Pid child = fork();
  if (child == 0) {
    os::SignalInbox inbox;
    const int wanted[] = {SIGUSR1, SIGTERM};
    if (!inbox.open(wanted).ok()) _exit(1);
    kill(getpid(), SIGTERM);
    os::Pid sender = 0;
    bool right = inbox.take(sender) == SIGTERM && sender == getpid() && inbox.take(sender) == 0;
    _exit(right ? 0 : 2);
  }
  int raw = -1;
  waitpid(child, &raw, 0);
  EXPECT_EQ(raw, 0);
}

TEST(signals, have_names) {
  EXPECT_EQ(os::signal_name(SIGKILL), "SIGKILL");
  EXPECT_EQ(os::signal_name(60), "signal 60");
}

} // namespace
