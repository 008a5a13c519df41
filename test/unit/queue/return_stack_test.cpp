#include "queue/return_stack.h"

#include <gtest/gtest.h>

#include <array>
#include <mutex>
#include <thread>
#include <vector>

namespace {

using namespace near;

TEST(ReturnStack, everything_pushed_comes_back_once) {
  queue::ReturnStack<> stack;
  std::array<base::Atomic<std::uint32_t>, 8> links{};
  auto next = [&](std::uint32_t index) -> auto& { return links[index]; };
  EXPECT_EQ(stack.take_all(), 0u);
  stack.push_chain(3, 3, next);
  links[5].store_relaxed(6 + 1);
  stack.push_chain(5, 6, next);
  std::vector<std::uint32_t> taken;
  for (auto link = stack.take_all(); link != 0; link = links[link - 1].load_relaxed())
    taken.push_back(link - 1);
  EXPECT_EQ(taken, (std::vector<std::uint32_t>{5, 6, 3}));
  EXPECT_EQ(stack.take_all(), 0u);
}

TEST(ReturnStack, packets_travel_round_between_an_owner_and_two_readers_without_loss) {
  constexpr std::uint32_t packets = 64;
  constexpr int rounds = 5000;
  queue::ReturnStack<> stack;
  std::array<base::Atomic<std::uint32_t>, packets> links{};
  std::array<std::uint64_t, packets> payload{}; // plain memory: the sanitizer sees a missing ordering
  auto next = [&](std::uint32_t index) -> auto& { return links[index]; };
  std::array<std::vector<std::uint32_t>, 2> mail;
  std::array<std::mutex, 2> lock;
  base::Atomic<std::uint32_t> over{0};

  std::vector<std::thread> readers;
  for (std::size_t r = 0; r < 2; ++r)
    readers.emplace_back([&, r] {
      std::vector<std::uint32_t> batch;
      for (;;) {
        bool last = over.load_acquire() != 0;
        {
          std::lock_guard guard(lock[r]);
          batch.swap(mail[r]);
        }
        for (std::size_t i = 0; i < batch.size(); ++i) {
          ++payload[batch[i]];
          if (i + 1 < batch.size()) links[batch[i]].store_relaxed(batch[i + 1] + 1);
        }
        if (!batch.empty())
          stack.push_chain(batch.front(), batch.back(), next);
        else if (last)
          return;
        batch.clear();
      }
    });

  std::vector<std::uint32_t> free_list(packets);
  for (std::uint32_t i = 0; i < packets; ++i) free_list[i] = i;
  auto collect = [&] {
    for (auto link = stack.take_all(); link != 0;) {
      std::uint32_t index = link - 1;
      link = links[index].load_relaxed();
      free_list.push_back(index);
    }
  };
  for (int sent = 0; sent < rounds;) {
    if (free_list.empty()) {
      collect();
      std::this_thread::yield();
      continue;
    }
    std::uint32_t index = free_list.back();
    free_list.pop_back();
    ++payload[index];
    std::lock_guard guard(lock[sent % 2]);
    mail[sent % 2].push_back(index);
    ++sent;
  }
  over.store_release(1);
  for (auto& reader : readers) reader.join();
  collect();
  EXPECT_EQ(free_list.size(), packets);
  std::uint64_t total = 0;
  for (auto value : payload) total += value;
  EXPECT_EQ(total, 2ull * rounds);
}

} // namespace
