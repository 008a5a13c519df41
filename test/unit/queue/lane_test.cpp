#include "queue/lane.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <new>
#include <thread>

namespace {

using namespace near::queue;

constexpr std::uint64_t slots = 8;

struct Free {
  void operator()(LaneRing<>* ring) const { ::operator delete(ring, std::align_val_t{slot_bytes}); }
};

std::unique_ptr<LaneRing<>, Free> make_ring() {
  void* at = ::operator new(LaneRing<>::bytes(slots), std::align_val_t{slot_bytes});
  auto* ring = new (at) LaneRing<>;
  for (std::uint64_t i = 1; i < slots; ++i) new (&ring->slots[i]) Slot<>;
  return std::unique_ptr<LaneRing<>, Free>(ring);
}

void put(Claim<> claim, std::uint64_t value) {
  std::memcpy(claim.body(), &value, sizeof value);
  claim.commit();
}

std::uint64_t value_of(const std::byte* body) {
  std::uint64_t value;
  std::memcpy(&value, body, sizeof value);
  return value;
}

TEST(Lane, takes_messages_in_order_and_refuses_when_it_is_full) {
  auto ring = make_ring();
  LaneWriter<> writer(ring.get(), slots, 3, 0);
  LaneReader<> reader;
  reader.attach(ring.get(), slots);
  reader.expect(3);
  EXPECT_EQ(reader.front(), nullptr);
  for (std::uint64_t i = 0; i < slots; ++i) put(writer.claim(), i);
  EXPECT_FALSE(writer.claim());
  EXPECT_TRUE(reader.has_message());
  for (std::uint64_t i = 0; i < slots; ++i) {
    ASSERT_NE(reader.front(), nullptr);
    EXPECT_EQ(value_of(reader.front()), i);
    reader.pop();
  }
  EXPECT_EQ(reader.front(), nullptr);
  EXPECT_TRUE(writer.claim());
}

TEST(Lane, skips_a_claim_that_was_dropped) {
  auto ring = make_ring();
  LaneWriter<> writer(ring.get(), slots, 3, 0);
  LaneReader<> reader;
  reader.attach(ring.get(), slots);
  reader.expect(3);
  { auto dropped = writer.claim(); }
  EXPECT_TRUE(reader.has_message());
  put(writer.claim(), 7);
  ASSERT_NE(reader.front(), nullptr);
  EXPECT_EQ(value_of(reader.front()), 7u);
}

TEST(Lane, looks_once_for_many_claims) {
  auto ring = make_ring();
  LaneWriter<> writer(ring.get(), slots, 3, 5);
  LaneReader<> reader;
  reader.attach(ring.get(), slots);
  EXPECT_EQ(writer.left(), 0u);
  EXPECT_EQ(LaneWriter<>().find_free(7), 0u) << "no ring";
  for (std::uint64_t i = 0; i < 5; ++i) reader.pop(); // up to where this writer begins
  reader.expect(3);
  EXPECT_EQ(writer.find_free(2), 2u);
  EXPECT_EQ(writer.find_free(7), 3u) << "up to the end of the ring";
  put(writer.claim_left(), 0);
  put(writer.claim(), 1);
  EXPECT_EQ(writer.left(), 1u);
  EXPECT_EQ(writer.give_up_left(), 1u);
  EXPECT_EQ(writer.left(), 0u);
  std::uint64_t sent = 2;
  for (auto claim = writer.claim(); claim; claim = writer.claim()) put(std::move(claim), sent++);
  EXPECT_EQ(sent, 7u) << "the reader has given the first quarter of each round back";
  for (std::uint64_t i = 0; i < sent; ++i) {
    ASSERT_NE(reader.front(), nullptr);
    EXPECT_EQ(value_of(reader.front()), i);
    reader.pop();
  }
  EXPECT_EQ(reader.front(), nullptr);
}

TEST(Lane, goes_on_with_another_writer_where_the_first_one_stopped) {
  auto ring = make_ring();
  LaneReader<> reader;
  reader.attach(ring.get(), slots);
  for (std::uint32_t user = 1; user <= 30; ++user) {
    reader.expect(user);
    EXPECT_EQ(reader.front(), nullptr) << "of user " << user - 1;
    LaneWriter<> writer(ring.get(), slots, user, reader.position());
    for (std::uint64_t i = 0; i < user % slots; ++i) put(writer.claim(), user * 100 + i);
    for (std::uint64_t i = 0; i < user % slots; ++i) {
      ASSERT_NE(reader.front(), nullptr);
      EXPECT_EQ(value_of(reader.front()), user * 100 + i);
      reader.pop();
    }
  }
}

TEST(Lane, carries_messages_between_threads_whole_and_in_order) {
  constexpr std::uint64_t messages = 200000;
  auto ring = make_ring();
  LaneReader<> reader;
  reader.attach(ring.get(), slots);
  reader.expect(1);
  std::thread sender([&] {
    LaneWriter<> writer(ring.get(), slots, 1, 0);
    for (std::uint64_t i = 0; i < messages;) {
      Claim<> claim = writer.claim();
      if (!claim) {
        std::this_thread::yield();
        continue;
      }
      std::memset(claim.body(), static_cast<int>(i & 0xff), slot_body_bytes);
      put(std::move(claim), i++);
    }
  });
  for (std::uint64_t i = 0; i < messages;) {
    const std::byte* body = reader.front();
    if (body == nullptr) {
      std::this_thread::yield();
      continue;
    }
    ASSERT_EQ(value_of(body), i);
    ASSERT_EQ(std::to_integer<std::uint64_t>(body[slot_body_bytes - 1]), i & 0xff);
    reader.pop();
    ++i;
  }
  sender.join();
}

} // namespace
