// What a thread that waits knows of its processor.
#include "transport/competition.h"
#include "transport/registry.h"

#include <gtest/gtest.h>

namespace near::transport {
namespace {

/// In a job on several machines one may have fewer processors than ranks, which collectives do not know when they choose.
TEST(Waiting, knows_that_a_machine_has_more_ranks_than_processors) {
  ASSERT_FALSE(processor_is_wanted());
  wait_settings.oversubscribed = true;
  EXPECT_TRUE(processor_is_wanted());
  wait_settings.oversubscribed = false;
}

} // namespace
} // namespace near::transport
