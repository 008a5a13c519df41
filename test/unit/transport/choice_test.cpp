// The choice of ways and of stores, without any copy: costs are told, not measured.
#include "transport/choice.h"

#include <gtest/gtest.h>

#include <array>

namespace {

using namespace near::transport;

constexpr Choice::Mask all = Choice::bit(Way::direct) | Choice::bit(Way::ring) | Choice::bit(Way::cma);

/// Sends `messages` and tells what each took; returns how many took each way.
std::array<int, Choice::ways> run(Choice& choice, std::uint64_t bytes, int messages, Choice::Mask possible,
                                  std::array<double, Choice::ways> nanoseconds_per_kib) {
  std::array<int, Choice::ways> taken{};
  for (int i = 0; i < messages; ++i) {
    auto way = static_cast<std::size_t>(choice.choose(bytes, possible));
    ++taken[way];
    choice.learn(static_cast<Way>(way), bytes,
                 static_cast<std::uint64_t>(nanoseconds_per_kib[way] * static_cast<double>(bytes) / 1024));
  }
  return taken;
}

constexpr std::size_t direct = 0, ring = 1, cma = 2;

TEST(Choice, settles_on_the_cheapest_way_and_looks_at_the_others_now_and_then) {
  for (std::size_t cheapest : {direct, ring, cma}) {
    Choice choice;
    std::array<double, Choice::ways> cost = {100, 100, 100};
    cost[cheapest] = 50;
    run(choice, 65536, 100, all, cost);
    auto taken = run(choice, 65536, 10000, all, cost);
    EXPECT_GT(taken[cheapest], 9800);
    for (std::size_t way : {direct, ring, cma}) EXPECT_GT(taken[way], 0);
  }
}

TEST(Choice, never_takes_a_way_that_is_not_possible) {
  Choice choice;
  auto taken = run(choice, 1 << 20, 1000, Choice::bit(Way::ring), {1, 100, 1});
  EXPECT_EQ(taken[ring], 1000);
  taken = run(choice, 1 << 20, 1000, Choice::bit(Way::ring) | Choice::bit(Way::cma), {1, 100, 10});
  EXPECT_EQ(taken[direct], 0);
  EXPECT_GT(taken[cma], 900);
}

TEST(Choice, does_not_alternate_between_two_that_are_alike) {
  Choice choice;
  run(choice, 65536, 100, all, {100, 97, 100});
  int changes = 0;
  Way before = choice.choose(65536, all);
  choice.learn(before, 65536, 6400);
  for (int i = 0; i < 5000; ++i) {
    Way way = choice.choose(65536, all);
    changes += way != before;
    before = way;
    choice.learn(way, 65536, static_cast<std::uint64_t>(6400 + (i * 37 % 11) * 20)); // noise of a few percent
  }
  EXPECT_LT(changes, 40);
}

TEST(Choice, notices_that_the_present_way_got_worse) {
  Choice choice;
  run(choice, 1 << 20, 3000, all, {400, 50, 80});
  auto taken = run(choice, 1 << 20, 200, all, {400, 500, 80});
  EXPECT_GT(taken[cma], 150);
}

TEST(Choice, gives_up_looking_at_a_way_that_is_far_behind) {
  Choice choice;
  auto taken = run(choice, 1 << 20, 2000, all, {10000, 50, 80});
  EXPECT_LE(taken[direct], 10);
  EXPECT_GT(taken[ring], 1700);
}

TEST(Choice, begins_a_new_size_with_what_its_neighbour_knows) {
  Choice choice;
  run(choice, 1 << 16, 1000, all, {500, 50, 500});
  auto taken = run(choice, 1 << 18, 20, all, {500, 50, 500});
  EXPECT_GT(taken[ring], 11);
}

} // namespace
