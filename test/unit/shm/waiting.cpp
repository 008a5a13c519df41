// What a thread that waits knows of its processor.
#include "os/affinity.h"
#include "os/clock.h"
#include "transport/competition.h"
#include "transport/job_share.h"
#include "transport/long_turns.h"
#include "transport/polling.h"
#include "transport/registry.h"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

namespace near::transport {
namespace {

/// One of several machines may have more ranks than processors. The choice of collectives cannot depend on that, but waiting does.
TEST(Waiting, knows_that_a_machine_has_more_ranks_than_processors) {
  ASSERT_FALSE(processor_is_wanted());
  wait_settings.oversubscribed = true;
  EXPECT_TRUE(processor_is_wanted());
  wait_settings.oversubscribed = false;
}

TEST(Waiting, does_not_count_the_turns_of_other_ranks) {
  EXPECT_EQ(turn_of_rank_ns(1'000), 0u)
      << "nobody else needs the processor, or others only look for messages";
  EXPECT_EQ(turn_of_rank_ns(300'000), 290'000u) << "so that a wait that only yields ends in a sleep, too";
  EXPECT_EQ(turn_of_rank_ns(3'000'000), 0u) << "a time slice of a process that computes";
}

/// Waits of a process that shares its processor and starts with nothing measured; everything is restored at the end.
class SharedProcessor {
public:
  SharedProcessor() {
    wait_settings.oversubscribed = true;
    wait_settings.spin_ns = 100'000;
    wait_settings.sleeps = &sleeps_;
    long_turns = long_turns_of_polls = {};
    competition = {};
  }
  ~SharedProcessor() {
    wait_settings = before_;
    long_turns = long_turns_of_polls = {};
    competition = {};
  }
  SharedProcessor(const SharedProcessor&) = delete;
  SharedProcessor& operator=(const SharedProcessor&) = delete;

  /// It is alone on its machine, and others may share the processor.
  static void of_several_machines() {
    wait_settings.oversubscribed = false;
    wait_settings.may_yield_to_learn = true;
  }
  /// A wait that is over after two polls that took 2 ms.
  static void wait_for_long() { wait_until_asked(4, 2'000'000); }
  /// The number of sleeps in 16 waits that are over when they are asked for the fifth time.
  std::uint64_t sleeps_in_short_waits() {
    const std::uint64_t before = sleeps_.load_relaxed();
    for (int i = 0; i < 16; ++i) wait_until_asked(5, 0);
    return sleeps_.load_relaxed() - before;
  }

  /// The number of sleeps in the first polls after each of 16 messages.
  std::uint64_t sleeps_in_polls() {
    const std::uint64_t before = sleeps_.load_relaxed();
    for (int i = 0; i < 16; ++i) give_way_between_polls(true);
    return sleeps_.load_relaxed() - before;
  }

private:
  struct Asked {
    int times;
    std::uint64_t sleep_ns;
  };
  static void wait_until_asked(int times, std::uint64_t sleep_ns) {
    Asked asked{times, sleep_ns};
    wait_until(
        [](void* argument) {
          Asked& self = *static_cast<Asked*>(argument);
          if (self.sleep_ns != 0) std::this_thread::sleep_for(std::chrono::nanoseconds(self.sleep_ns));
          return --self.times <= 0;
        },
        &asked);
  }

  WaitSettings before_ = wait_settings;
  base::Atomic<std::uint64_t> sleeps_{0};
};

/// A process that computes on the processor of this thread while this object lives.
class OtherProgram {
public:
  OtherProgram() {
    EXPECT_TRUE(os::affinity_of(0, before_).ok());
    os::CpuSet one;
    one.add(static_cast<unsigned>(before_.first()));
    EXPECT_TRUE(os::bind_this_thread(one).ok());
    child_ = fork();
    if (child_ == 0) {
      alarm(60);
      for (volatile bool computes = true; computes;) {}
    }
  }
  ~OtherProgram() {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
    EXPECT_TRUE(os::bind_this_thread(before_).ok());
  }
  OtherProgram(const OtherProgram&) = delete;
  OtherProgram& operator=(const OtherProgram&) = delete;

  /// Lets time pass until a further long yield tells who runs.
  static void becomes_known() { std::this_thread::sleep_for(std::chrono::milliseconds(200)); }

private:
  os::CpuSet before_;
  pid_t child_ = -1;
};

TEST(Waiting, sleeps_after_yields_that_took_long) {
  const OtherProgram other;
  SharedProcessor processor;
  SharedProcessor::wait_for_long();
  OtherProgram::becomes_known();
  for (int i = 0; i < 2; ++i) SharedProcessor::wait_for_long();
  EXPECT_TRUE(long_turns.asleep());
  EXPECT_GE(processor.sleeps_in_short_waits(), 16U);
}

TEST(Waiting, tells_other_programs_from_ranks) {
  constexpr std::uint64_t ms = os::millisecond_ns;
  EXPECT_FALSE(JobShare::others_ran(1, {.time = 100 * ms, .idle = 0, .ranks = 100 * ms}));
  EXPECT_FALSE(JobShare::others_ran(1, {.time = 100 * ms, .idle = 10 * ms, .ranks = 100 * ms})); // rounded up
  EXPECT_FALSE(JobShare::others_ran(2, {.time = 100 * ms, .idle = 100 * ms, .ranks = 70 * ms}));
  EXPECT_TRUE(JobShare::others_ran(2, {.time = 100 * ms, .idle = 0, .ranks = 150 * ms}));
  EXPECT_TRUE(JobShare::others_ran(1, {.time = 100 * ms, .idle = 0, .ranks = 50 * ms}));
  EXPECT_TRUE(JobShare::others_ran(64, {.time = 1000 * ms, .idle = 3000 * ms, .ranks = 60'000 * ms}));
}

TEST(Waiting, knows_of_other_programs_after_a_while) {
  const OtherProgram other;
  JobShare share;
  EXPECT_FALSE(share.others_run());
  OtherProgram::becomes_known();
  EXPECT_TRUE(share.others_run());
}

TEST(Waiting, of_jobs_on_several_machines_sleeps_after_yields_that_took_long) {
  SharedProcessor processor;
  SharedProcessor::of_several_machines();
  competition.yielded(5'000'000);
  ASSERT_TRUE(processor_is_wanted());
  ASSERT_FALSE(long_turns.begins_asleep(os::monotonic_ns)); // the first wait beside another program
  for (int i = 0; i < 2; ++i) long_turns.yielded(5'000'000, os::monotonic_ns());
  EXPECT_GE(processor.sleeps_in_short_waits(), 48U); // three in each
}

TEST(Waiting, of_jobs_on_several_machines_ends_its_sleeps_when_nobody_competes) {
  SharedProcessor processor;
  SharedProcessor::of_several_machines();
  competition.yielded(5'000'000);
  ASSERT_FALSE(long_turns.begins_asleep(os::monotonic_ns));
  for (int i = 0; i < 2; ++i) long_turns.yielded(5'000'000, os::monotonic_ns());
  competition = {};
  ASSERT_FALSE(processor_is_wanted());
  (void)processor.sleeps_in_short_waits(); // all of them
  SharedProcessor::wait_for_long();
  EXPECT_FALSE(long_turns.asleep());
}

TEST(Waiting, a_long_wait_does_not_count) {
  SharedProcessor processor;
  for (int i = 0; i < 2; ++i) long_turns.yielded(5'000'000, os::monotonic_ns());
  ASSERT_TRUE(long_turns.asleep());
  const std::uint64_t since = os::monotonic_ns();
  wait_until(
      [](void* argument) {
        return os::monotonic_ns() - *static_cast<const std::uint64_t*>(argument) > 150'000'000;
      },
      const_cast<std::uint64_t*>(&since));
  for (std::uint32_t i = 1; i < LongTurns::fewest_sleeps; ++i)
    ASSERT_TRUE(long_turns.begins_asleep(os::monotonic_ns));
  ASSERT_FALSE(long_turns.begins_asleep(os::monotonic_ns));
  // The sleeps took less time than the yields, so the next ones last twice as long.
  for (int i = 0; i < 2; ++i) long_turns.yielded(5'000'000, os::monotonic_ns());
  std::uint32_t asleep = 0;
  while (long_turns.begins_asleep(os::monotonic_ns)) ++asleep;
  EXPECT_EQ(asleep, 2 * LongTurns::fewest_sleeps);
}

TEST(Waiting, polls_nap_after_yields_that_took_long) {
  SharedProcessor processor;
  ASSERT_FALSE(long_turns_of_polls.begins_asleep(os::monotonic_ns));
  for (int i = 0; i < 2; ++i) long_turns_of_polls.yielded(5'000'000, os::monotonic_ns());
  EXPECT_EQ(processor.sleeps_in_polls(), 16U);
}

TEST(Waiting, polls_that_find_nothing_yield_again) {
  SharedProcessor processor;
  ASSERT_FALSE(long_turns_of_polls.begins_asleep(os::monotonic_ns));
  for (int i = 0; i < 2; ++i) long_turns_of_polls.yielded(5'000'000, os::monotonic_ns());
  give_way_between_polls(true);
  ASSERT_TRUE(long_turns_of_polls.asleep());
  const std::uint64_t end = os::monotonic_ns() + 200'000'000;
  while (long_turns_of_polls.asleep() && os::monotonic_ns() < end) give_way_between_polls(false);
  EXPECT_FALSE(long_turns_of_polls.asleep());
}

TEST(Waiting, polls_of_jobs_on_several_machines_give_way) {
  SharedProcessor processor;
  wait_settings.oversubscribed = false;
  EXPECT_FALSE(polls_should_yield());
  wait_settings.may_yield_to_learn = true;
  EXPECT_TRUE(polls_should_yield());
}

TEST(Waiting, yields_always_where_sleeps_may_not_be_tried) {
  SharedProcessor processor;
  wait_settings.may_sleep_at_once = false;
  for (int i = 0; i < 2; ++i) SharedProcessor::wait_for_long();
  EXPECT_EQ(processor.sleeps_in_short_waits(), 0U);
}

} // namespace
} // namespace near::transport
