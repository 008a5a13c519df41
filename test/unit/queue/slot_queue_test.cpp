#include "queue/slot_queue.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <new>
#include <thread>
#include <vector>

namespace {

using namespace near::queue;

constexpr auto nobody_is_dead = [](std::uint32_t) { return false; };

class Fixture {
public:
  explicit Fixture(std::uint64_t slots) : slots_(slots) {
    auto bytes = SlotQueue<>::bytes(slots);
    memory_.reset(static_cast<std::byte*>(::operator new(bytes, std::align_val_t(slot_bytes))));
    queue_ = new (memory_.get()) SlotQueue<>;
    for (std::uint64_t i = 1; i < slots; ++i) new (&queue_->slots[i]) Slot<>;
    consumer.attach(queue_, slots);
  }
  Producer<> producer(std::uint32_t self) { return {queue_, slots_, self}; }
  Consumer<> consumer;

private:
  struct Free {
    void operator()(std::byte* at) const { ::operator delete(at, std::align_val_t(slot_bytes)); }
  };
  std::uint64_t slots_;
  std::unique_ptr<std::byte, Free> memory_;
  SlotQueue<>* queue_;
};

void put(Producer<>& producer, std::uint64_t value) {
  auto claim = producer.claim();
  ASSERT_TRUE(claim);
  std::memcpy(claim.body(), &value, sizeof value);
  claim.commit();
}

std::uint64_t value_of(const Consumer<>::Entry& entry) {
  std::uint64_t value;
  std::memcpy(&value, entry.body, sizeof value);
  return value;
}

TEST(SlotQueue, a_message_arrives_with_its_claimer) {
  Fixture fixture(4);
  auto producer = fixture.producer(7);
  EXPECT_EQ(fixture.consumer.front(nobody_is_dead).body, nullptr);
  put(producer, 42);
  auto entry = fixture.consumer.front(nobody_is_dead);
  ASSERT_NE(entry.body, nullptr);
  EXPECT_EQ(entry.claimer, 7u);
  EXPECT_EQ(value_of(entry), 42u);
  fixture.consumer.pop();
  EXPECT_EQ(fixture.consumer.front(nobody_is_dead).body, nullptr);
}

TEST(SlotQueue, a_full_queue_refuses_and_takes_again_after_a_pop) {
  Fixture fixture(4);
  auto producer = fixture.producer(0);
  for (std::uint64_t i = 0; i < 4; ++i) put(producer, i);
  EXPECT_FALSE(producer.claim());
  ASSERT_NE(fixture.consumer.front(nobody_is_dead).body, nullptr);
  fixture.consumer.pop();
  put(producer, 4);
  EXPECT_FALSE(producer.claim());
  for (std::uint64_t i = 1; i <= 4; ++i) {
    EXPECT_EQ(value_of(fixture.consumer.front(nobody_is_dead)), i);
    fixture.consumer.pop();
  }
}

TEST(SlotQueue, a_claim_dropped_without_commit_is_skipped) {
  Fixture fixture(4);
  auto producer = fixture.producer(0);
  { auto dropped = producer.claim(); }
  put(producer, 5);
  EXPECT_EQ(value_of(fixture.consumer.front(nobody_is_dead)), 5u);
}

TEST(SlotQueue, a_claim_of_a_dead_process_is_skipped_and_a_living_one_is_waited_for) {
  Fixture fixture(4);
  auto doomed = fixture.producer(3);
  auto healthy = fixture.producer(4);
  auto claim = doomed.claim();
  put(healthy, 9);
  EXPECT_EQ(fixture.consumer.front(nobody_is_dead).body, nullptr) << "order among producers must hold";
  auto entry = fixture.consumer.front([](std::uint32_t who) { return who == 3; });
  ASSERT_NE(entry.body, nullptr);
  EXPECT_EQ(value_of(entry), 9u);
  // A dead producer cannot commit; the test's own object must not do so either.
  static Claim<>& never_dropped = *new Claim<>(std::move(claim));
  EXPECT_TRUE(never_dropped);
}

TEST(SlotQueue, a_commit_just_before_death_counts) {
  Fixture fixture(4);
  auto producer = fixture.producer(3);
  auto claim = producer.claim();
  std::uint64_t value = 11;
  std::memcpy(claim.body(), &value, sizeof value);
  auto entry = fixture.consumer.front([&](std::uint32_t) {
    claim.commit(); // between the consumer's first look and the answer
    return true;
  });
  ASSERT_NE(entry.body, nullptr);
  EXPECT_EQ(value_of(entry), 11u);
}

TEST(SlotQueue, producers_keep_their_own_order_over_many_generations) {
  constexpr int producers = 3;
  constexpr std::uint64_t each = 20000;
  Fixture fixture(16);
  std::vector<std::thread> threads;
  for (std::uint32_t p = 0; p < producers; ++p)
    threads.emplace_back([&fixture, p] {
      auto producer = fixture.producer(p);
      for (std::uint64_t i = 0; i < each;) {
        auto claim = producer.claim();
        if (!claim) {
          std::this_thread::yield();
          continue;
        }
        std::memcpy(claim.body(), &i, sizeof i);
        std::memcpy(claim.body() + 100, &i, sizeof i);
        if (i % 97 == 13 && (i ^ p) % 2 == 0) {
          auto again = producer.claim(); // sometimes two claims, committed in reverse order
          if (again) {
            std::uint64_t following = i + 1;
            std::memcpy(again.body(), &following, sizeof following);
            std::memcpy(again.body() + 100, &following, sizeof following);
            again.commit();
            ++i;
          }
        }
        claim.commit();
        ++i;
      }
    });
  std::vector<std::uint64_t> expected(producers, 0);
  std::uint64_t received = 0;
  while (received < producers * each) {
    auto entry = fixture.consumer.front(nobody_is_dead);
    if (entry.body == nullptr) {
      std::this_thread::yield();
      continue;
    }
    std::uint64_t tail;
    std::memcpy(&tail, entry.body + 100, sizeof tail);
    ASSERT_EQ(value_of(entry), expected[entry.claimer]);
    ASSERT_EQ(tail, expected[entry.claimer]);
    ++expected[entry.claimer];
    fixture.consumer.pop();
    ++received;
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(fixture.consumer.front(nobody_is_dead).body, nullptr);
}

} // namespace
