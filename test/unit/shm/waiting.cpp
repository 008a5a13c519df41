// What a thread that waits knows of its processor.
#include "transport/competition.h"
#include "transport/registry.h"

#include <gtest/gtest.h>

namespace near::transport {
namespace {

/// One of several machines may have more ranks than processors. The choice of collectives cannot depend on that, but waiting does.
TEST(Waiting, knows_that_a_machine_has_more_ranks_than_processors) {
  ASSERT_FALSE(processor_is_wanted());
  wait_settings.oversubscribed = true;
  EXPECT_TRUE(processor_is_wanted());
  wait_settings.oversubscribed = false;
}

} // namespace
} // namespace near::transport
