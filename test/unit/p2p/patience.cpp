// Which empty polls yield: with simulated times, and in p2p::poll() over the fake transport.
#include "p2p/patience.h"
#include "fixture.h"
#include "transport/polling.h"

#include <utility>

namespace near::p2p {
namespace {

constexpr int in_vain = Patience::most_in_vain;

/// A thread that polls: each poll takes `poll_ns`, each yield `away_ns`.
struct Poller {
  Patience patience;
  std::uint64_t now = 1'000'000'000, calls = 0, poll_ns = 50, away_ns = 2000;
  int yields = 0;
  bool always = false, naps = false;

  /// Returns whether it yields.
  bool poll(std::uintptr_t what, std::uint64_t looks = 1) {
    now += poll_ns * looks;
    ++calls;
    if (!patience.polled(what, looks) || !patience.gives_way(what, now, calls, always)) return false;
    now += away_ns;
    patience.came_back(now, naps);
    ++yields;
    return true;
  }
  /// Returns how many of `count` such polls yield.
  int polls(int count, std::uintptr_t what) {
    int before = yields;
    for (int i = 0; i < count; ++i) poll(what);
    return yields - before;
  }
};

/// Polls 5 us apart, with this number of other MPI calls in between, yield once in a turn.
void expect_one_yield_in_a_turn(std::uint64_t other_calls) {
  constexpr std::uint64_t polls = 1000, apart_ns = 5000;
  Poller poller;
  poller.poll(8);
  for (std::uint64_t i = 0; i < polls; ++i) {
    poller.calls += other_calls;
    poller.now += apart_ns;
    poller.poll(8);
  }
  int turns = static_cast<int>(polls * apart_ns / Patience::turn_ns);
  EXPECT_LE(poller.yields, turns + 1);
  EXPECT_GE(poller.yields, turns / 2);
}

TEST(Patience, yields_from_the_second_empty_poll_on) {
  Poller poller;
  EXPECT_FALSE(poller.poll(8));
  EXPECT_EQ(poller.polls(in_vain, 8), in_vain);
  EXPECT_FALSE(poller.poll(8)) << "it has had the processor for 50 ns";
}

/// Returns how many of `polls` polls yield, each after `piece_ns` of work.
int yields_between_pieces(Poller& poller, std::uint64_t piece_ns, int polls) {
  const int before = poller.yields;
  for (int i = 0; i < polls; ++i) {
    poller.now += piece_ns;
    poller.poll(8);
  }
  return poller.yields - before;
}

TEST(Patience, yields_less_and_less_in_vain) {
  Poller poller;
  const int early = yields_between_pieces(poller, 50, 400);
  EXPECT_GE(early, in_vain);
  EXPECT_LE(early, 2 * in_vain);
  EXPECT_LE(yields_between_pieces(poller, 50, 400), early - in_vain);
}

TEST(Patience, in_vain_never_ends) {
  Poller poller;
  yields_between_pieces(poller, 50, 100'000);
  constexpr int polls = 2 * Patience::longest_in_vain_ns / 100;
  for (int i = 0; i < 100; ++i) EXPECT_GE(yields_between_pieces(poller, 50, polls), 1);
}

TEST(Patience, after_yields_in_vain_a_message_begins_anew) {
  Poller poller;
  poller.polls(1000, 8);
  poller.patience.something_moved();
  EXPECT_FALSE(poller.poll(8));
  EXPECT_EQ(poller.polls(in_vain, 8), in_vain);
}

TEST(Patience, after_yields_in_vain_a_computation_begins_anew) {
  Poller poller;
  poller.polls(1000, 8);
  poller.now += 5000;
  poller.poll(8);
  EXPECT_EQ(poller.polls(in_vain - 1, 8), in_vain - 1);
}

TEST(Patience, after_yields_in_vain_another_request_begins_anew) {
  Poller poller;
  poller.polls(1000, 8);
  for (int polls = 0; !poller.poll(9); ++polls) ASSERT_LT(polls, 10);
  EXPECT_EQ(poller.polls(in_vain - 1, 9), in_vain - 1);
}

TEST(Patience, naps_are_not_in_vain) {
  Poller poller;
  poller.naps = true;
  EXPECT_FALSE(poller.poll(8));
  EXPECT_EQ(poller.polls(1000, 8), 1000);
}

TEST(Patience, begins_anew_when_something_has_moved) {
  Poller poller;
  for (int i = 0; i < 100; ++i) {
    poller.poll(8);
    poller.patience.something_moved();
  }
  EXPECT_EQ(poller.yields, 0);
  EXPECT_FALSE(poller.poll(8));
  EXPECT_TRUE(poller.poll(8));
}

TEST(Patience, yields_once_for_each_sweep_over_many_requests) {
  Poller poller;
  auto sweep = [&] {
    for (std::uintptr_t request = 1; request <= 1000; ++request) poller.poll(request);
  };
  for (int i = 0; i < 3; ++i) sweep(); // its length is found
  EXPECT_LE(poller.yields, 2);
  for (int i = 0; i < 10; ++i) {
    const int before = poller.yields;
    sweep();
    EXPECT_EQ(poller.yields - before, 1);
  }
}

TEST(Patience, seldom_needs_the_clock_within_a_sweep) {
  Patience patience;
  std::uint64_t now = 0;
  auto looks_in_a_sweep = [&] {
    int looks = 0;
    for (std::uintptr_t request = 1; request <= 1000; ++request, ++now)
      if (patience.polled(request, 1)) {
        ++looks;
        patience.gives_way(request, now, now);
      }
    return looks;
  };
  EXPECT_LE(looks_in_a_sweep(), 11) << "after 1, 2, 4 ... polls";
  looks_in_a_sweep();
  looks_in_a_sweep();
  for (int i = 0; i < 10; ++i) EXPECT_EQ(looks_in_a_sweep(), 1);
}

/// A program that waits for one thing after the other polls each of them in a loop.
TEST(Patience, soon_yields_when_the_program_has_gone_on_to_another_request) {
  Poller poller;
  for (int i = 0; i < 10; ++i)
    for (std::uintptr_t request = 1; request <= 8; ++request) poller.poll(request);
  for (std::uintptr_t request = 100; request < 200; ++request) {
    int polls = 0;
    while (!poller.poll(request)) ASSERT_LT(++polls, request == 100 ? 10 : 4);
  }
}

TEST(Patience, yields_though_the_first_request_is_never_polled_again) {
  Poller poller;
  poller.naps = true; // so that none is in vain
  poller.poll(1);
  int polls = 0;
  while (poller.yields == 0 && polls < 10'000) poller.poll(static_cast<std::uintptr_t>(2 + polls++ % 2));
  EXPECT_LE(polls, 8);
  int before = poller.yields;
  for (int i = 0; i < 100; ++i) poller.poll(static_cast<std::uintptr_t>(2 + i % 2));
  EXPECT_EQ(poller.yields - before, 50) << "one of the others is the mark now";
}

TEST(Patience, does_not_mistake_a_poll_of_a_large_array_for_computation) {
  Poller poller;
  poller.poll(8, 1000);
  EXPECT_TRUE(poller.poll(8, 1000));
}

TEST(Patience, of_a_program_that_computes_yields_once_in_a_turn) { expect_one_yield_in_a_turn(0); }

TEST(Patience, does_not_mistake_short_calls_between_polls_for_computation) {
  Poller poller;
  poller.naps = true; // so that none is in vain
  poller.poll(8);
  for (int i = 0; i < 1000; ++i) {
    poller.calls += 2; // such as MPI_Comm_rank and a test of a null request
    poller.now += 300;
    poller.poll(8);
  }
  EXPECT_EQ(poller.yields, 1000);
}

TEST(Patience, of_a_program_whose_other_calls_take_long_yields_once_in_a_turn) {
  expect_one_yield_in_a_turn(1); // it sends
}

TEST(Patience, turns_stay_short_however_long_the_others_take) {
  Poller poller;
  poller.away_ns = 3'000'000; // the other process also computes and does not yield
  poller.poll(8);
  for (int i = 0; i < 10'000; ++i) {
    poller.now += 5000;
    poller.poll(8);
  }
  EXPECT_GE(poller.yields, static_cast<int>(10'000 * 5000 / Patience::longest_turn_ns / 2));
}

TEST(Patience, turns_do_not_grow_if_ranks_poll_and_work_on_one_processor) {
  // Each of three ranks gets the processor when the previous one has yielded.
  Poller ranks[3];
  std::uint64_t now = 1'000'000'000, longest = 0;
  for (int turn = 0; turn < 300; ++turn) {
    Poller& rank = ranks[turn % 3];
    std::uint64_t begin = now;
    rank.away_ns = 0;
    rank.now = now;
    if (turn >= 3) rank.patience.came_back(now);
    do rank.now += 3000;
    while (!rank.poll(8));
    now = rank.now;
    longest = std::max(longest, now - begin);
  }
  EXPECT_LE(longest, 2 * Patience::longest_turn_ns);
}

TEST(Patience, can_be_told_to_yield_always) {
  Poller poller;
  poller.always = true;
  poller.poll(8);
  for (int i = 0; i < 100; ++i) {
    poller.now += 5000;
    EXPECT_TRUE(poller.poll(8));
  }
}

class Polls : public Messages {
protected:
  void TearDown() override {
    let_polls_yield(false);
    Messages::TearDown();
  }
};

TEST_F(Polls, give_way_only_when_they_are_told_to) {
  for (int i = 0; i < 10; ++i) poll(this);
  EXPECT_EQ(fake::world().yields, 0);
  let_polls_yield(true);
  for (int i = 0; i < 10; ++i) poll(this);
  EXPECT_GE(fake::world().yields, 1);
  EXPECT_LE(fake::world().yields, 9);
  int before = fake::world().yields;
  let_polls_yield(false);
  for (int i = 0; i < 10; ++i) poll(this);
  EXPECT_EQ(fake::world().yields, before);
}

TEST_F(Polls, find_what_came_while_they_gave_way) {
  let_polls_yield(true);
  std::string buffer(5, '.');
  Request* request = nullptr;
  ASSERT_TRUE(start_receive(text(buffer), 1, 7, communicator, request).ok());
  fake::world().when_yielding = [this] {
    if (fake::world().yields == 3) arrive(1, 7, "hello");
  };
  int yields = 0;
  while (!request->complete && yields < 3) {
    poll(request);
    yields = fake::world().yields;
  }
  EXPECT_TRUE(request->complete);
  EXPECT_TRUE(wait(request).ok());
  EXPECT_EQ(buffer, "hello");
}

TEST_F(Polls, begin_again_when_something_has_come) {
  static bool comes;
  const auto before = std::exchange(transport::advance_all, [] { return std::exchange(comes, false); });
  let_polls_yield(true);
  const auto first_of_two = [this](bool something_comes) {
    const int first = fake::world().first_yields;
    comes = something_comes;
    const int end = fake::world().yields + 2;
    for (int i = 0; i < 100'000 && fake::world().yields < end; ++i) poll(this);
    EXPECT_EQ(fake::world().yields, end);
    return fake::world().first_yields - first;
  };
  EXPECT_EQ(first_of_two(true), 1);
  EXPECT_EQ(first_of_two(false), 0);
  EXPECT_EQ(first_of_two(true), 1);
  transport::advance_all = before;
}

} // namespace
} // namespace near::p2p
