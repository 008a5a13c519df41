#include "os/lease.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace {

using namespace near::os;
namespace fs = std::filesystem;

CpuSet set_of(unsigned first, unsigned last) {
  CpuSet made;
  made.add_range(first, last);
  return made;
}

/// A private folder, and the path of the lease folder inside it, which does not exist yet.
class Leases : public testing::Test {
protected:
  void SetUp() override {
    alarm(60);
    char name[] = "/tmp/lease-test-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    ASSERT_EQ(chmod(name, 0777 | S_ISVTX), 0); // as /tmp
    root = name;
    folders = {{.path = root + "/own", .is_made = true}};
  }
  void TearDown() override {
    end_lease();
    alarm(0);
    fs::remove_all(root);
  }
  std::string root;
  std::vector<LeaseFolder> folders;
};

/// A child that holds processors until it is told to end. Closing a pipe would not tell it, since children
/// that are forked later inherit the other end.
class Holder {
public:
  Holder(const std::vector<LeaseFolder>& folders, const CpuSet& cpus) {
    int ready[2], end[2];
    EXPECT_EQ(pipe(ready), 0);
    EXPECT_EQ(pipe(end), 0);
    pid_ = fork();
    if (pid_ == 0) {
      close(end[1]);
      LeasePlanning(folders).take(cpus);
      char byte = 0;
      bool told = write(ready[1], &byte, 1) == 1 && read(end[0], &byte, 1) == 1;
      end_lease();
      _exit(told ? 0 : 1);
    }
    close(ready[1]);
    close(end[0]);
    char byte = 0;
    EXPECT_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    end_ = end[1];
  }
  ~Holder() { finish(); }
  void finish() {
    if (end_ < 0) return;
    char byte = 0;
    EXPECT_EQ(write(end_, &byte, 1), 1);
    close(end_);
    end_ = -1;
    int status = -1;
    waitpid(pid_, &status, 0);
    EXPECT_EQ(status, 0);
  }
  /// Gives the child no time to release anything.
  void kill_it() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    close(end_);
    end_ = -1;
  }
  Pid pid() const { return pid_; }

private:
  Pid pid_ = -1;
  int end_ = -1;
};

const Lease* lease_of(Pid pid, const std::vector<Lease>& leases) {
  auto at =
      std::find_if(leases.begin(), leases.end(), [&](const Lease& lease) { return lease.owner == pid; });
  return at == leases.end() ? nullptr : &*at;
}

TEST_F(Leases, last_as_long_as_their_holder) {
  CpuSet many;
  for (unsigned cpu = 0; cpu < 6000; cpu += 3) many.add(cpu);
  Holder first(folders, many), second(folders, set_of(2, 4));
  {
    LeasePlanning planning(folders);
    EXPECT_EQ(planning.problem(), "");
    auto leases = planning.others();
    ASSERT_EQ(leases.size(), 2u);
    const Lease *one = lease_of(first.pid(), leases), *other = lease_of(second.pid(), leases);
    ASSERT_TRUE(one != nullptr && other != nullptr);
    EXPECT_EQ(one->cpus, many);
    EXPECT_EQ(other->cpus.text(), "2-4");
  }
  first.finish();
  EXPECT_EQ(LeasePlanning(folders).others().size(), 1u);
  second.finish();
  EXPECT_FALSE(fs::exists(folders[0].path)) << "the last one leaves nothing";
}

TEST_F(Leases, are_all_found_when_an_early_row_was_taken_last) {
  Holder first(folders, set_of(0, 0)), second(folders, set_of(1, 1));
  first.finish();
  Holder third(folders, set_of(2, 2)); // takes the row of the first
  EXPECT_EQ(LeasePlanning(folders).others().size(), 2u);
}

TEST_F(Leases, of_a_killed_process_do_not_count) {
  Holder holder(folders, set_of(0, 0));
  holder.kill_it();
  EXPECT_TRUE(LeasePlanning(folders).others().empty());
  EXPECT_FALSE(fs::exists(folders[0].path)) << "whoever finds nothing held removes what was left";
}

TEST_F(Leases, of_ancestors_do_not_count_as_those_of_others) {
  LeasePlanning(folders).take(set_of(1, 1));
  pid_t child = fork();
  if (child == 0) _exit(LeasePlanning(folders).others().empty() ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(Leases, a_file_that_makes_no_sense_holds_nothing) {
  Holder holder(folders, set_of(0, 0));
  int file = open((folders[0].path + "/nearmpi-leases").c_str(), O_RDWR);
  ASSERT_GE(file, 0);
  std::string nonsense(4096, '\xff');
  ASSERT_EQ(pwrite(file, nonsense.data(), nonsense.size(), 0), 4096);
  auto leases = LeasePlanning(folders).others();
  ASSERT_EQ(leases.size(), 1u) << "its own user has damaged it";
  EXPECT_EQ(leases[0].owner, 0) << "no process has such a number";
  ASSERT_EQ(ftruncate(file, 0), 0);
  EXPECT_TRUE(LeasePlanning(folders).others().empty());
  close(file);
}

TEST_F(Leases, a_planner_that_does_not_finish_is_reported_and_blocks_nobody) {
  Holder holder(folders, set_of(0, 0));
  LeasePlanning slow(folders), next(folders);
  EXPECT_EQ(slow.intrusion(), "");
  EXPECT_NE(next.intrusion().find(folders[0].path + "/nearmpi-leases"), std::string::npos)
      << next.intrusion();
  EXPECT_EQ(next.problem(), "");
  EXPECT_EQ(next.others().size(), 1u);
}

TEST_F(Leases, without_any_folder_there_are_none) {
  LeasePlanning planning({{.path = root + "/not/there", .is_made = true}});
  EXPECT_NE(planning.problem(), "");
  EXPECT_EQ(planning.intrusion(), "");
  planning.take(set_of(0, 0));
  EXPECT_TRUE(planning.others().empty());
}

TEST_F(Leases, a_folder_that_is_open_to_others_is_passed_over) {
  ASSERT_EQ(mkdir((root + "/open").c_str(), 0755), 0);
  Holder holder({{root + "/open"}, folders[0]}, set_of(0, 0));
  EXPECT_TRUE(fs::is_empty(root + "/open"));
  EXPECT_NE(lease_of(holder.pid(), LeasePlanning(folders).others()), nullptr);
}

TEST_F(Leases, a_cache_that_is_not_there_yet_is_created) {
  folders = {{.path = root + "/home/.cache/own", .is_made = true, .parent_is_made = true}};
  EXPECT_NE(LeasePlanning(folders).problem(), "") << "a home is not created";
  ASSERT_EQ(mkdir((root + "/home").c_str(), 0700), 0);
  Holder holder(folders, set_of(0, 0));
  EXPECT_NE(lease_of(holder.pid(), LeasePlanning(folders).others()), nullptr);
  struct stat status{};
  ASSERT_EQ(stat((root + "/home/.cache").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700u);
  holder.finish();
  EXPECT_TRUE(fs::is_empty(root + "/home/.cache")) << "the last one leaves nothing in it";
}

/// The lease folders, in order of preference, for these values of the variables; nullptr: not set.
std::vector<std::string> folders_with(const char* runtime, const char* cache, const char* home) {
  const std::pair<const char*, const char*> given[] = {
      {"XDG_RUNTIME_DIR", runtime}, {"XDG_CACHE_HOME", cache}, {"HOME", home}};
  std::vector<std::pair<const char*, std::optional<std::string>>> before;
  for (const auto& [name, value] : given) {
    const char* old = std::getenv(name);
    before.emplace_back(name, old != nullptr ? std::optional<std::string>(old) : std::nullopt);
    value != nullptr ? setenv(name, value, 1) : unsetenv(name);
  }
  std::vector<std::string> paths;
  for (const auto& folder : lease_folders()) paths.push_back(folder.path);
  for (const auto& [name, value] : before) value ? setenv(name, value->c_str(), 1) : unsetenv(name);
  return paths;
}

TEST(LeaseFolders, end_with_the_one_that_another_user_can_take) {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  ASSERT_NE(boot, "");
  const std::string user = std::to_string(geteuid()), run = "/run/user/" + user, tmp = "/tmp/nearmpi-" + user;
  auto expected = [&](std::vector<std::string> first, const std::string& cache) {
    first.push_back(run);
    if (geteuid() == 0) first.emplace_back("/run/nearmpi");
    if (!cache.empty()) first.push_back(cache + "/nearmpi-" + boot);
    first.push_back(tmp);
    return first;
  };
  EXPECT_EQ(folders_with("/r", "/c", "/h"), expected({"/r"}, "/c"));
  EXPECT_EQ(folders_with(nullptr, nullptr, "/h"), expected({}, "/h/.cache"));
  EXPECT_EQ(folders_with("relative", "relative", "relative"), expected({}, ""));
  EXPECT_EQ(folders_with(nullptr, nullptr, nullptr), expected({}, ""));
}

// ---- another user ---------------------------------------------------------------------------------------

constexpr uid_t other_user = 65534;

/// Runs `act` in a child as another user and returns the child's exit status. Requires root.
int as_other_user(const std::function<int()>& act) {
  pid_t child = fork();
  if (child == 0)
    _exit(setresgid(other_user, other_user, other_user) == 0 &&
                  setresuid(other_user, other_user, other_user) == 0
              ? act()
              : 99);
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

class LeasesOfOtherUsers : public Leases {
protected:
  void SetUp() override {
    Leases::SetUp();
    if (geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  }
};

TEST_F(LeasesOfOtherUsers, a_folder_of_that_name_is_not_used) {
  ASSERT_EQ(as_other_user([&] { return mkdir(folders[0].path.c_str(), 0700); }), 0);
  LeasePlanning planning(folders);
  EXPECT_NE(planning.problem().find("belongs to user 65534, not to user 0"), std::string::npos)
      << planning.problem();
  planning.take(set_of(0, 0));
  EXPECT_TRUE(fs::is_empty(folders[0].path));
}

TEST_F(LeasesOfOtherUsers, a_link_of_that_name_is_not_followed) {
  ASSERT_EQ(mkdir((root + "/mine").c_str(), 0700), 0);
  ASSERT_EQ(as_other_user([&] { return symlink((root + "/mine").c_str(), folders[0].path.c_str()); }), 0);
  LeasePlanning planning(folders);
  EXPECT_NE(planning.problem(), "");
  EXPECT_NE(planning.intrusion().find("belongs to user 65534, not to user 0"), std::string::npos);
  EXPECT_TRUE(fs::is_empty(root + "/mine"));
}

TEST_F(LeasesOfOtherUsers, the_owner_of_a_taken_folder_is_named_even_if_it_may_not_be_opened) {
  ASSERT_EQ(mkdir(folders[0].path.c_str(), 0700), 0);
  EXPECT_EQ(as_other_user([&] {
              LeasePlanning planning(folders);
              bool told =
                  planning.intrusion().find("belongs to user 0, not to user 65534") != std::string::npos;
              return told && planning.intrusion().starts_with(planning.problem()) ? 0 : 1;
            }),
            0);
}

TEST_F(LeasesOfOtherUsers, a_taken_folder_is_not_reported_if_there_is_another) {
  ASSERT_EQ(as_other_user([&] { return mkdir((root + "/taken").c_str(), 0700); }), 0);
  LeasePlanning planning({{root + "/taken"}, folders[0]});
  EXPECT_EQ(planning.problem() + planning.intrusion(), "");
}

TEST_F(LeasesOfOtherUsers, a_file_of_another_user_is_not_used) {
  ASSERT_EQ(mkdir(folders[0].path.c_str(), 0700), 0);
  std::string name = folders[0].path + "/nearmpi-leases";
  close(open(name.c_str(), O_CREAT | O_RDWR, 0600));
  ASSERT_EQ(chown(name.c_str(), other_user, other_user), 0);
  EXPECT_NE(LeasePlanning(folders).problem().find("belongs to user 65534"), std::string::npos);
  ASSERT_EQ(chown(name.c_str(), 0, 0), 0);
  ASSERT_EQ(chmod(name.c_str(), 0666), 0);
  LeasePlanning planning(folders);
  EXPECT_NE(planning.problem().find("open to others"), std::string::npos);
  EXPECT_EQ(planning.intrusion(), ""); // the user can correct this
}

TEST_F(LeasesOfOtherUsers, nobody_else_can_hold_the_lock_or_a_row) {
  Holder holder(folders, set_of(0, 0));
  std::string name = folders[0].path + "/nearmpi-leases";
  EXPECT_EQ(as_other_user([&] { return open(name.c_str(), O_RDONLY) < 0 && errno == EACCES ? 0 : 1; }), 0);
  EXPECT_EQ(as_other_user([&] {
              LeasePlanning planning(folders);
              planning.take(set_of(1, 1));
              return planning.problem().empty() || !planning.others().empty() ? 1 : 0;
            }),
            0);
  EXPECT_EQ(LeasePlanning(folders).others().size(), 1u);
}

} // namespace
