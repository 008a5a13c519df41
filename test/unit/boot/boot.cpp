// The start-up contract: the library reads what mpiexec writes.
#include "boot/boot.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace near;

namespace {

struct Environment {
  explicit Environment(std::vector<std::string> rows) : texts(std::move(rows)) {
    for (auto& text : texts) pointers.push_back(text.data());
    pointers.push_back(nullptr);
  }
  char** get() { return pointers.data(); }
  std::vector<std::string> texts;
  std::vector<char*> pointers;
};

boot::Start example(int descriptor) {
  boot::Start start;
  start.singleton = false;
  start.segment_descriptor = descriptor;
  EXPECT_TRUE(os::identify(descriptor, start.segment).ok());
  start.launcher = getpid();
  start.rank = 2;
  start.size = 4;
  start.application = 1;
  start.binding = "core 2 (cpus 2,6)";
  return start;
}

TEST(boot, an_empty_environment_is_a_singleton) {
  Environment empty({"PATH=/bin"});
  boot::Start start;
  ASSERT_TRUE(boot::read_start(empty.get(), start).ok());
  EXPECT_TRUE(start.singleton);
  EXPECT_EQ(start.size, 1u);
  EXPECT_EQ(start.segment_descriptor, -1);
}

TEST(boot, what_the_launcher_writes_is_what_the_library_reads) {
  int file = open("/dev/null", O_RDWR);
  Environment environment(boot::write_environment(example(file)));
  boot::Start start;
  ASSERT_TRUE(boot::read_start(environment.get(), start).ok()) << base::failure_text();
  EXPECT_FALSE(start.singleton);
  EXPECT_EQ(start.segment_descriptor, file);
  EXPECT_EQ(start.launcher, getpid());
  EXPECT_EQ(start.rank, 2u);
  EXPECT_EQ(start.size, 4u);
  EXPECT_EQ(start.application, 1u);
  EXPECT_EQ(start.binding, "core 2 (cpus 2,6)");
  close(file);
}

TEST(boot, a_descriptor_that_a_wrapper_replaced_is_recovered_from_the_launcher) {
  int file = open("/dev/zero", O_RDWR);
  auto start = example(file);
  // The variables name a descriptor that is open in the launcher but refers to another file in this process.
  // The child replaces the descriptor; only a look-up through /proc finds the right file.
  Environment environment(boot::write_environment(start));
  pid_t child = fork();
  if (child == 0) {
    int other = open("/dev/null", O_RDWR);
    dup2(other, file);
    boot::Start read;
    bool good = boot::read_start(environment.get(), read).ok() && read.segment_descriptor != file;
    os::FileIdentity identity;
    good = good && os::identify(read.segment_descriptor, identity).ok() && identity == start.segment;
    _exit(good ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  close(file);
}

TEST(boot, variables_of_a_job_that_has_ended_say_so) {
  auto start = example(0);
  start.segment_descriptor = 999;
  start.launcher = 1 << 30;
  Environment environment(boot::write_environment(start));
  boot::Start read;
  base::Result result = boot::read_start(environment.get(), read);
  EXPECT_TRUE(result.is(base::Code::gone));
  EXPECT_NE(base::failure_text().find("unset all NEAR_BOOT_"), std::string::npos);
}

TEST(boot, a_rank_outside_the_job_is_refused) {
  auto start = example(0);
  start.rank = 4;
  Environment environment(boot::write_environment(start));
  boot::Start read;
  EXPECT_TRUE(boot::read_start(environment.get(), read).is(base::Code::invalid));
}

TEST(boot, forgetting_removes_every_variable) {
  for (const auto& row : boot::write_environment(example(0))) {
    auto equals = row.find('=');
    setenv(row.substr(0, equals).c_str(), row.substr(equals + 1).c_str(), 1);
  }
  boot::forget_start();
  for (char** entry = environ; *entry != nullptr; ++entry)
    EXPECT_FALSE(std::string_view(*entry).starts_with("NEAR_BOOT_")) << *entry;
}

TEST(boot, an_abort_code_is_never_a_success) {
  EXPECT_EQ(boot::exit_status_of_abort(0), 1); // the job did not succeed
  EXPECT_EQ(boot::exit_status_of_abort(5), 5);
  EXPECT_EQ(boot::exit_status_of_abort(256), 255);
  EXPECT_EQ(boot::exit_status_of_abort(-1), 255);
}

struct Foreign {
  std::vector<std::string> environment;
  const char* expected; ///< part of the name; "" for a singleton
};

class foreign : public testing::TestWithParam<Foreign> {};

TEST_P(foreign, launchers_are_named) {
  Environment environment(GetParam().environment);
  auto name = boot::foreign_launcher(environment.get());
  if (*GetParam().expected == 0) {
    EXPECT_EQ(name, "");
    return;
  }
  EXPECT_NE(name.find(GetParam().expected), std::string::npos) << name;
  boot::Start start;
  EXPECT_TRUE(boot::read_start(environment.get(), start).is(base::Code::unsupported));
  EXPECT_NE(base::failure_text().find(GetParam().expected), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(
    environments, foreign,
    testing::Values(
        Foreign{{"PMI_RANK=1", "PMI_SIZE=4"}, "Hydra (PMI_RANK=1, PMI_SIZE=4)"},
        Foreign{{"PMI_RANK=0", "PMI_SIZE=1", "PMI_FD=7"}, ""},
        Foreign{{"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=2", "PMIX_RANK=0"}, "Open MPI's mpirun"},
        Foreign{{"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=1", "PMIX_RANK=0"}, ""},
        Foreign{{"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=2"}, ""}, // the child of a rank
        Foreign{{"PMIX_RANK=3"}, "PMIx launcher (PMIX_RANK=3)"},
        Foreign{{"SLURM_STEP_ID=0", "SLURM_PROCID=1", "SLURM_NTASKS=8", "PMI_RANK=1"}, "Slurm's srun"},
        Foreign{{"SLURM_STEP_ID=0", "SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=1", "SLURM_NTASKS=8"}, ""},
        Foreign{{"SLURM_PROCID=0", "SLURM_NTASKS=8"}, ""},
        Foreign{{"SLURM_STEP_ID=4294967291", "SLURM_PROCID=0", "SLURM_NTASKS=8"}, ""},
        Foreign{{"FLUX_TASK_RANK=1", "FLUX_JOB_SIZE=2"}, "Flux"}));

} // namespace
