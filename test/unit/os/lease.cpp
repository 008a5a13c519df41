#include "os/lease.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace near::os;

std::string line(const std::string& name) {
  return "0000000000000000: 00000002 00000000 00000000 0002 01 48241 " + name + "\n";
}

TEST(Leases, are_read_from_the_kernels_list) {
  std::string text = "Num       RefCount Protocol Flags    Type St Inode Path\n" +
                     line("@nearmpi/7/120/0-3") + line("/run/dbus/system_bus_socket") +
                     line("@nearmpi/7/120/8,12") + line("@nearmpi/8/130/4") + line("@nearmpi/7/planning") +
                     line("@nearmpi/7/140/5");
  std::istringstream list(text);
  auto found = leases_in(list, 7);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].owner, 120);
  EXPECT_EQ(found[0].cpus.text(), "0-3,8,12");
  EXPECT_EQ(found[1].owner, 140);
  EXPECT_EQ(found[1].cpus.text(), "5");
}

TEST(Leases, that_make_no_sense_are_none) {
  for (const char* name : {"@nearmpi/7/", "@nearmpi/7/x/0", "@nearmpi/7/12", "@nearmpi/7/12/",
                           "@nearmpi/7/-3/0", "@nearmpi/7/0/1", "@nearmpi/7/12/3-",
                           "@nearmpi/7/99999999999999/3", "@nearmpi/77/1/3", "/tmp/@nearmpi/7/12/3"}) {
    std::istringstream list(line(name));
    EXPECT_TRUE(leases_in(list, 7).empty()) << name;
  }
}

/// A child that holds processors until its standard input, a pipe of ours, is closed.
class Holder {
public:
  explicit Holder(const CpuSet& cpus) {
    int ready[2], end[2];
    EXPECT_EQ(pipe(ready), 0);
    EXPECT_EQ(pipe(end), 0);
    pid_ = fork();
    if (pid_ == 0) {
      close(end[1]);
      LeasePlanning().take(cpus);
      char byte = 0;
      bool told = write(ready[1], &byte, 1) == 1 && read(end[0], &byte, 1) == 0;
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
    close(end_);
    end_ = -1;
    int status = -1;
    waitpid(pid_, &status, 0);
    EXPECT_EQ(status, 0);
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

TEST(Leases, last_as_long_as_their_holder) {
  alarm(60);
  CpuSet many;
  for (unsigned cpu = 0; cpu < 600; cpu += 3) many.add(cpu); // more than one name has room for
  Holder holder(many);
  {
    auto leases = LeasePlanning().others();
    const Lease* found = lease_of(holder.pid(), leases);
    if (found == nullptr && leases.empty()) GTEST_SKIP() << "no list of sockets here";
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->cpus, many);
  }
  holder.finish();
  EXPECT_EQ(lease_of(holder.pid(), LeasePlanning().others()), nullptr);
  alarm(0);
}

TEST(Leases, of_a_process_that_this_one_descends_from_are_not_others) {
  alarm(60);
  CpuSet one;
  one.add(1);
  LeasePlanning().take(one); // ours, until this test program ends
  pid_t child = fork();
  if (child == 0) _exit(lease_of(getppid(), LeasePlanning().others()) == nullptr ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  alarm(0);
}

} // namespace
