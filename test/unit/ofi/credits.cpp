// What messages cost in credits, and which may leave.
#include "ofi/state.h"

#include <gtest/gtest.h>

namespace near::ofi {
namespace {

/// A peer of which this process has so many credits left.
Peer peer_with_credits(std::uint32_t left) {
  Peer made;
  made.credits_left = left;
  return made;
}

TEST(Credits, are_counted_by_length_in_packets_of_16_KiB) {
  ASSERT_EQ(longest_body(), 16384u);
  EXPECT_EQ(credits_for(0), 1u);
  EXPECT_EQ(credits_for(credit_bytes - 1), 1u);
}

TEST(Credits, of_a_message_that_may_keep_its_packet_are_those_of_the_packet) {
  EXPECT_EQ(credits_for(kept_from()), 4u);
  EXPECT_EQ(credits_for(longest_body()), 4u);
}

TEST(Credits, of_a_message_longer_than_a_packet_are_those_of_its_bytes) {
  EXPECT_EQ(credits_for(longest_body() + 1), 5u);
  EXPECT_EQ(credits_for(512 << 10), 128u);
}

TEST(Credits, that_are_reserved_are_left_to_messages_that_take_one) {
  EXPECT_TRUE(affords(peer_with_credits(all_credits), all_credits - reserved_credits));
  EXPECT_FALSE(affords(peer_with_credits(all_credits), all_credits - reserved_credits + 1));
  EXPECT_TRUE(affords(peer_with_credits(reserved_credits + 4), 4));
  EXPECT_FALSE(affords(peer_with_credits(reserved_credits + 3), 4));
  EXPECT_TRUE(affords(peer_with_credits(reserved_credits), 1));
  EXPECT_TRUE(affords(peer_with_credits(1), 1));
  EXPECT_FALSE(affords(peer_with_credits(0), 1));
}

} // namespace
} // namespace near::ofi
