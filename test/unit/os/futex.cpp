// Sleeps that end on time.
#include "os/futex.h"

#include <gtest/gtest.h>

#include <sys/prctl.h>
#include <thread>

using namespace near;

namespace {

TEST(punctual_sleep, the_thread_gets_the_slack_back_that_it_had) {
  std::thread([] {
    ASSERT_EQ(prctl(PR_SET_TIMERSLACK, 30'000), 0);
    {
      const os::PunctualSleep punctual;
      EXPECT_EQ(prctl(PR_GET_TIMERSLACK), 1);
      std::uint32_t word = 0;
      os::futex_wait(&word, 0, 1'000); // ends by itself
    }
    EXPECT_EQ(prctl(PR_GET_TIMERSLACK), 30'000);
  }).join();
}

} // namespace
