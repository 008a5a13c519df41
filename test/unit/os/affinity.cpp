// Sets of processors and the binding of this thread.
#include "os/affinity.h"
#include "os/clock.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <chrono>
#include <thread>

using namespace near;

namespace {

os::CpuSet parsed(std::string_view text) {
  os::CpuSet cpus;
  EXPECT_TRUE(os::parse_cpus(text, cpus).ok()) << base::failure_text();
  return cpus;
}

TEST(cpu_set, text_and_set_are_the_same_thing) {
  for (const char* text : {"", "0", "0-3", "0,2,4", "0-3,8-11,200"}) EXPECT_EQ(parsed(text).text(), text);
  EXPECT_EQ(parsed("3,2,1").text(), "1-3");
  EXPECT_EQ(parsed("0-1\n").text(), "0-1");
}

TEST(cpu_set, nonsense_is_refused) {
  os::CpuSet cpus;
  for (const char* text : {"a", "1-", "-1", "3-1", "1,,2", "1 2", "0-99999999"})
    EXPECT_TRUE(os::parse_cpus(text, cpus).is(base::Code::invalid)) << text;
}

TEST(cpu_set, sets_combine) {
  EXPECT_EQ((parsed("0-7") & parsed("4-200")).text(), "4-7");
  EXPECT_EQ((parsed("0-1") | parsed("100")).text(), "0-1,100");
  EXPECT_EQ(parsed("5,70").first(), 5);
  EXPECT_EQ(parsed("").first(), -1);
  EXPECT_EQ(parsed("0-63,64-127").count(), 128u);
  EXPECT_TRUE(parsed("0-3") == parsed("0,1,2,3"));
}

TEST(affinity, a_thread_can_be_bound_and_asked) {
  std::thread([] {
    os::CpuSet before, one, after;
    ASSERT_TRUE(os::affinity_of(0, before).ok());
    ASSERT_GE(before.first(), 0);
    one.add(static_cast<unsigned>(before.first()));
    ASSERT_TRUE(os::bind_this_thread(one).ok());
    ASSERT_TRUE(os::affinity_of(0, after).ok());
    EXPECT_EQ(after.text(), one.text());
  }).join();
}

TEST(affinity, a_processor_that_does_not_exist_is_refused) {
  std::thread([] {
    os::CpuSet none;
    none.add(100'000);
    EXPECT_FALSE(os::bind_this_thread(none).ok());
    EXPECT_NE(base::failure_text().find("processors 100000"), std::string::npos);
  }).join();
}

TEST(affinity, idle_time_is_told_for_processors_that_exist) {
  os::CpuSet ours, more;
  ASSERT_TRUE(os::affinity_of(0, ours).ok());
  std::uint64_t before = 0, after = 0, ignored = 0;
  const std::uint64_t start = os::monotonic_ns(), resolution = ours.count() * 3 * os::second_ns / 100;
  ASSERT_TRUE(os::idle_time(ours, before));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  ASSERT_TRUE(os::idle_time(ours, after));
  EXPECT_GT(before, 0U);
  EXPECT_GE(after + resolution, before);
  EXPECT_LE(after, before + ours.count() * (os::monotonic_ns() - start) + resolution);
  more = ours;
  more.add(100'000);
  EXPECT_FALSE(os::idle_time(more, ignored));
}

TEST(clock, tells_the_processor_time_of_a_process) {
  const std::uint64_t before = os::process_cpu_ns(getpid()),
                      deadline = os::monotonic_ns() + 60 * os::second_ns;
  while (os::process_cpu_ns(getpid()) < before + 5 * os::millisecond_ns)
    ASSERT_LT(os::monotonic_ns(), deadline);
  EXPECT_EQ(os::process_cpu_ns(100'000'000), 0u);
}

} // namespace
