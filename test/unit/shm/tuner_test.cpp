// The tuner of protocols, with simulated costs and no copies.
#include "shm/tuner.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <vector>

namespace {

using namespace near::shm;
namespace segment = near::segment;

constexpr Tuner::Mask all =
    Tuner::bit(Protocol::direct) | Tuner::bit(Protocol::pipelined) | Tuner::bit(Protocol::cma);

/// How long the program pauses after a transfer by this protocol, in nanoseconds.
using Pause = std::function<std::uint64_t(std::size_t protocol)>;

/// Simulates `messages` transfers and reports their times to the tuner; returns how many took each protocol.
std::array<int, Tuner::protocols> run(
    Tuner& tuner, std::uint64_t bytes, int messages, Tuner::Mask possible,
    std::array<double, Tuner::protocols> nanoseconds_per_kib,
    const Pause& pause = [](std::size_t) { return 1000; }) {
  static std::uint64_t now = 1; // the clock goes on from run to run
  std::array<int, Tuner::protocols> taken{};
  for (int i = 0; i < messages; ++i) {
    auto protocol = static_cast<std::size_t>(tuner.choose(bytes, possible));
    ++taken[protocol];
    std::uint64_t began = now;
    now += static_cast<std::uint64_t>(nanoseconds_per_kib[protocol] * static_cast<double>(bytes) / 1024);
    tuner.learn(static_cast<Protocol>(protocol), bytes, began, now);
    now += pause(protocol);
  }
  return taken;
}

constexpr std::size_t direct = 0, pipelined = 1, cma = 2;

TEST(Tuner, settles_on_the_cheapest_protocol_and_tries_the_others_now_and_then) {
  for (std::size_t cheapest : {direct, pipelined, cma}) {
    Tuner tuner;
    std::array<double, Tuner::protocols> cost = {100, 100, 100};
    cost[cheapest] = 50;
    run(tuner, 65536, 1000, all, cost);
    auto taken = run(tuner, 65536, 20000, all, cost);
    EXPECT_GT(taken[cheapest], 19500);
    for (std::size_t protocol : {direct, pipelined, cma}) EXPECT_GT(taken[protocol], 0);
  }
}

TEST(Tuner, never_takes_a_protocol_that_is_not_possible) {
  Tuner tuner;
  auto taken = run(tuner, 1 << 20, 1000, Tuner::bit(Protocol::pipelined), {1, 100, 1});
  EXPECT_EQ(taken[pipelined], 1000);
  taken =
      run(tuner, 1 << 20, 1000, Tuner::bit(Protocol::pipelined) | Tuner::bit(Protocol::cma), {1, 100, 10});
  EXPECT_EQ(taken[direct], 0);
  EXPECT_GT(taken[cma], 900);
}

TEST(Tuner, does_not_alternate_between_two_that_are_alike) {
  Tuner tuner;
  run(tuner, 65536, 100, all, {100, 97, 100});
  int changes = 0;
  Protocol before = tuner.choose(65536, all);
  std::uint64_t now = 1'000'000'000;
  tuner.learn(before, 65536, now, now + 6400);
  for (int i = 0; i < 5000; ++i) {
    Protocol protocol = tuner.choose(65536, all);
    changes += protocol != before;
    before = protocol;
    const std::uint64_t began = now += 10'000;
    tuner.learn(protocol, 65536, began,
                began + static_cast<std::uint64_t>(6400 + (i * 37 % 11) * 20)); // a few percent of noise
  }
  EXPECT_LT(changes, 40);
}

TEST(Tuner, charges_transfers_that_overlap_for_their_share_of_the_time) {
  // A window of messages is accepted at once. CMA copies them one by one; pipelined messages wait for each
  // other, although the pair is faster with them.
  constexpr int window = 16;
  constexpr std::uint64_t bytes = 65536, by_cma = 6000, by_pipeline = 2000;
  const Tuner::Mask private_memory = Tuner::bit(Protocol::pipelined) | Tuner::bit(Protocol::cma);
  Tuner tuner;
  std::uint64_t now = 1'000'000'000;
  int by_pipeline_count = 0;
  for (int round = 0; round < 1000; ++round) {
    std::vector<std::uint64_t> waiting; // start times of the pipelined messages
    for (int i = 0; i < window; ++i) {
      const std::uint64_t began = now;
      if (tuner.choose(bytes, private_memory) == Protocol::pipelined) {
        waiting.push_back(began);
        continue;
      }
      now += by_cma;
      tuner.learn(Protocol::cma, bytes, began, now);
    }
    for (std::uint64_t began : waiting) tuner.learn(Protocol::pipelined, bytes, began, now += by_pipeline);
    if (round >= 100) by_pipeline_count += static_cast<int>(waiting.size());
  }
  EXPECT_GT(by_pipeline_count, 900 * window * 9 / 10);
}

TEST(Tuner, transfers_that_end_together_are_charged_their_mean) {
  // Pipelined transfers end in pairs: taken alone, the second would seem to cost nothing.
  constexpr std::uint64_t bytes = 65536;
  const Tuner::Mask private_memory = Tuner::bit(Protocol::pipelined) | Tuner::bit(Protocol::cma);
  Tuner tuner;
  std::uint64_t now = 1'000'000'000;
  int by_cma = 0;
  for (int round = 0; round < 2000; ++round) {
    std::array<Protocol, 8> taken;
    std::array<std::uint64_t, 8> began;
    for (std::size_t i = 0; i < taken.size(); ++i) {
      taken[i] = tuner.choose(bytes, private_memory);
      began[i] = now;
      if (taken[i] == Protocol::cma) tuner.learn(Protocol::cma, bytes, began[i], now += 4000);
      if (round >= 200) by_cma += taken[i] == Protocol::cma;
    }
    for (std::size_t i = 0; i < taken.size(); ++i)
      if (taken[i] == Protocol::pipelined)
        tuner.learn(Protocol::pipelined, bytes, began[i], now += i % 2 == 0 ? 16'000 : 0);
  }
  EXPECT_GT(by_cma, 1800 * 8 * 8 / 10);
}

TEST(Tuner, notices_that_the_present_protocol_got_worse) {
  Tuner tuner;
  run(tuner, 1 << 20, 3000, all, {400, 50, 80});
  auto taken = run(tuner, 1 << 20, 200, all, {400, 500, 80});
  EXPECT_GT(taken[cma], 150);
}

TEST(Tuner, compares_the_least_of_its_messages_when_the_present_protocol_got_worse) {
  // It has become slower, another one faster, and every other message takes twice as long, whatever the protocol.
  for (const int first : {0, 1}) {
    Tuner tuner;
    run(tuner, 1 << 20, 3000, all, {4000, 50, 3000});
    std::array<int, Tuner::protocols> taken{};
    for (int i = 0; i < 40; ++i) {
      const double slower = (i + first) % 2 == 0 ? 2 : 1;
      auto each = run(tuner, 1 << 20, 1, all, {4000 * slower, 500 * slower, 600 * slower});
      for (std::size_t protocol : {direct, pipelined, cma}) taken[protocol] += each[protocol];
    }
    EXPECT_GE(taken[pipelined], 40 - 2 * 8) << "all but one trial of each of the others";
  }
}

constexpr Tuner::Mask private_memory = Tuner::bit(Protocol::pipelined) | Tuner::bit(Protocol::cma);

TEST(Tuner, counts_what_a_protocol_leaves_behind) {
  // The program rewrites its buffer in 10 us, or in 60 us after another processor has read it.
  Tuner tuner;
  Pause rewriting = [](std::size_t protocol) { return protocol == cma ? 60'000 : 10'000; };
  run(tuner, 1 << 18, 200, private_memory, {0, 60, 40}, rewriting);
  auto taken = run(tuner, 1 << 18, 5000, private_memory, {0, 60, 40}, rewriting);
  EXPECT_GT(taken[pipelined], 4500);
}

TEST(Tuner, counts_pauses_only_as_long_as_transfers_matter) {
  // The program computes for milliseconds, never equally long, and longer after the faster protocol.
  Tuner tuner;
  unsigned seed = 1;
  Pause computing = [&seed](std::size_t protocol) {
    seed = seed * 1664525 + 1013904223;
    return (protocol == cma ? 2'500'000 : 2'000'000) + seed % 100'000;
  };
  run(tuner, 1 << 18, 200, private_memory, {0, 60, 40}, computing);
  auto taken = run(tuner, 1 << 18, 5000, private_memory, {0, 60, 40}, computing);
  EXPECT_GT(taken[cma], 4500);
}

TEST(Tuner, is_not_misled_by_pauses_that_vary) {
  // Short and long pauses alternate, independently of the protocol: the shortest ones are compared.
  Tuner tuner;
  int number = 0;
  Pause varying = [&number](std::size_t) { return ++number % 3 == 0 ? 5'000 : 100'000; };
  run(tuner, 1 << 18, 200, private_memory, {0, 60, 40}, varying);
  auto taken = run(tuner, 1 << 18, 5000, private_memory, {0, 60, 40}, varying);
  EXPECT_GT(taken[cma], 4500);
}

TEST(Tuner, tries_again_a_protocol_whose_pauses_were_long_in_its_last_trial) {
  // The program computes at first. Later it only rewrites, which is expensive after the chosen protocol.
  Tuner tuner;
  Pause computing = [](std::size_t) { return 500'000; };
  auto taken = run(tuner, 1 << 18, 200, private_memory, {0, 60, 40}, computing);
  EXPECT_GT(taken[cma], 100);
  Pause rewriting = [](std::size_t protocol) { return protocol == cma ? 60'000 : 10'000; };
  taken = run(tuner, 1 << 18, 10000, private_memory, {0, 60, 40}, rewriting);
  EXPECT_GT(taken[pipelined], 9000);
}

TEST(Tuner, tries_every_protocol_of_a_new_size_however_long_the_neighbours_pauses_were) {
  // The same pause costs a short message more for each KiB than a long one.
  Tuner tuner;
  Pause computing = [](std::size_t) { return 100'000; };
  run(tuner, 1 << 16, 1000, private_memory, {0, 60, 40}, computing);
  auto taken = run(tuner, 1 << 20, 1000, private_memory, {0, 20, 40}, computing);
  EXPECT_GT(taken[pipelined], 900);
}

TEST(Tuner, gives_up_a_trial_of_a_protocol_that_is_far_behind) {
  Tuner tuner;
  auto taken = run(tuner, 1 << 20, 2000, all, {10000, 50, 80});
  EXPECT_LE(taken[direct], 10);
  EXPECT_GT(taken[pipelined], 1700);
}

/// The same estimates for all sizes, in nanoseconds per KiB.
segment::PairEstimates estimates_of(std::array<unsigned, Tuner::protocols> nanoseconds_per_kib) {
  segment::PairEstimates made{};
  for (auto& row : made.cost)
    for (std::size_t protocol = 0; protocol < row.size(); ++protocol)
      row[protocol] = nanoseconds_per_kib[protocol] * 1024;
  return made;
}

TEST(Tuner, takes_with_its_first_message_the_protocol_that_is_estimated_fastest) {
  for (std::size_t cheapest : {direct, pipelined, cma})
    for (Basis basis : {Basis::built_in, Basis::profile}) {
      std::array<unsigned, Tuner::protocols> cost = {500, 500, 500};
      cost[cheapest] = 50;
      auto estimates = estimates_of(cost);
      Tuner tuner(nullptr, &estimates, basis);
      EXPECT_EQ(tuner.choose(1 << 20, all), static_cast<Protocol>(cheapest));
    }
}

TEST(Tuner, does_not_look_at_others_soon_where_a_profile_is_right) {
  auto estimates = estimates_of({500, 50, 100});
  Tuner tuner(nullptr, &estimates, Basis::profile);
  auto taken = run(tuner, 1 << 20, 30, all, {500, 50, 100});
  EXPECT_EQ(taken[pipelined], 30);
  taken = run(tuner, 1 << 20, 1000, all, {500, 50, 100});
  EXPECT_GT(taken[cma], 0);
}

TEST(Tuner, leaves_what_was_estimated_best_for_what_was_measured) {
  auto estimates = estimates_of({0, 100, 1});
  Tuner tuner(nullptr, &estimates, Basis::profile);
  auto taken = run(tuner, 1 << 20, 100, private_memory, {1, 50, 100});
  EXPECT_LT(taken[cma], 25);
  EXPECT_GT(taken[pipelined], 75);
}

TEST(Tuner, tries_at_last_what_the_estimates_call_hopeless) {
  auto estimates = estimates_of({0, 50, 5000});
  Tuner tuner(nullptr, &estimates, Basis::profile);
  run(tuner, 1 << 20, 100, private_memory, {1, 50, 10});
  run(tuner, 1 << 20, 20000, private_memory, {1, 50, 10}); // the trial seems to cost 800 messages
  auto taken = run(tuner, 1 << 20, 100, private_memory, {1, 50, 10});
  EXPECT_GT(taken[cma], 80);
}

TEST(Tuner, distrusts_a_profile_that_was_wrong_about_the_fastest_protocol) {
  auto estimates = estimates_of({0, 50, 5000});
  Tuner tuner(nullptr, &estimates, Basis::profile);
  run(tuner, 1 << 20, 100, private_memory, {1, 500, 60});
  auto taken = run(tuner, 1 << 20, 100, private_memory, {1, 500, 60});
  EXPECT_GT(taken[cma], 80);
}

TEST(Tuner, repeats_trials_only_while_they_cost_little) {
  Tuner tuner;
  run(tuner, 1 << 20, 200, private_memory, {0, 50, 250}); // both have been measured
  auto taken = run(tuner, 1 << 20, 1000, private_memory, {0, 50, 250});
  EXPECT_LE(taken[cma] * (250 - 50), 1200 * 50 * 2 / 100);
  taken = run(tuner, 1 << 20, 100000, private_memory, {0, 50, 250});
  EXPECT_GT(taken[cma], 0);
}

TEST(Tuner, ends_a_trial_of_the_kernels_copy_that_is_clearly_slower) {
  const auto tried = [](std::uint64_t bytes, double by_kernel) {
    Tuner tuner;
    run(tuner, bytes, 300, Tuner::bit(Protocol::pipelined), {0, 50, 0});
    return run(tuner, bytes, 16, private_memory, {0, 50, by_kernel})[cma];
  };
  EXPECT_EQ(tried(16 << 20, 110), 1);
  EXPECT_EQ(tried(16 << 20, 80), 2);
  EXPECT_EQ(tried(16 << 20, 70), 4);
  EXPECT_EQ(tried(64 << 10, 110), 2);
  EXPECT_EQ(tried(64 << 10, 70), 3);
  EXPECT_EQ(tried(64 << 10, 60), 8);
}

TEST(Tuner, tries_the_kernels_copy_again_although_its_first_message_had_to_wait_for_a_processor) {
  const std::uint64_t bytes = 1 << 20;
  Tuner tuner;
  run(tuner, bytes, 100, Tuner::bit(Protocol::pipelined), {0, 50, 0});
  int by_kernel = 0;
  std::uint64_t now = 1'000'000'000'000;
  for (int i = 0; i < 2000; ++i) {
    const Protocol protocol = tuner.choose(bytes, private_memory);
    std::uint64_t took = 50 * 1024;
    if (protocol == Protocol::cma) took = by_kernel++ == 0 ? 4'000'000 : 30 * 1024;
    tuner.learn(protocol, bytes, now, now + took);
    now += took + 1000;
  }
  EXPECT_GT(by_kernel, 1000);
}

TEST(Tuner, tries_a_protocol_with_no_more_messages_than_it_needs) {
  // A window of 64 is accepted before the first of them ends.
  const std::uint64_t bytes = 1 << 20;
  Tuner tuner;
  run(tuner, bytes, 8, Tuner::bit(Protocol::cma), {0, 0, 50});
  std::array<int, Tuner::protocols> taken{};
  for (int i = 0; i < 64; ++i) ++taken[static_cast<std::size_t>(tuner.choose(bytes, private_memory))];
  EXPECT_EQ(taken[pipelined], 8);
  EXPECT_EQ(taken[cma], 56);
}

TEST(Tuner, follows_its_peer_and_knows_afterwards_what_that_costs) {
  const std::uint64_t bytes = 1 << 20;
  Tuner tuner;
  run(tuner, bytes, 100, private_memory, {0, 50, 60}); // both have been measured: pipelined is taken
  std::uint64_t now = 1'000'000'000'000;
  for (int i = 0; i < 100; ++i, now += 1000) {
    tuner.follow(Protocol::cma, bytes);
    tuner.learn(Protocol::cma, bytes, now, now + 20 * 1024);
    now += 20 * 1024;
  }
  auto taken = run(tuner, bytes, 100, private_memory, {0, 50, 20});
  EXPECT_GT(taken[cma], 90);
}

TEST(Tuner, a_stream_in_which_one_message_waits_for_the_rest_of_its_window_is_charged_the_mean) {
  // The first message of each window of 64 takes 100 times as long as the others, three times what CMA takes together.
  const std::uint64_t bytes = 65536;
  constexpr std::uint64_t each_by_pipeline = 1000, first_by_pipeline = 500'000, each_by_cma = 3000;
  Tuner tuner;
  std::uint64_t now = 1'000'000'000;
  int by_cma = 0;
  for (int round = 0; round < 400; ++round) {
    std::vector<std::uint64_t> waiting;
    for (int i = 0; i < 64; ++i) {
      const std::uint64_t began = now;
      if (tuner.choose(bytes, private_memory, 64) == Protocol::pipelined) {
        waiting.push_back(began);
        continue;
      }
      tuner.learn(Protocol::cma, bytes, began, now += each_by_cma);
      by_cma += round >= 100;
    }
    for (std::size_t i = 0; i < waiting.size(); ++i)
      tuner.learn(Protocol::pipelined, bytes, waiting[i],
                  now += i == 0 ? first_by_pipeline : each_by_pipeline);
  }
  EXPECT_GT(by_cma, 300 * 64 * 9 / 10);
}

TEST(Tuner, notices_in_a_stream_that_the_present_protocol_got_worse) {
  const std::uint64_t bytes = 1 << 20;
  for (int single : {0, 1, 2, 3}) { // suspicious messages one by one, before the stream
    Tuner tuner;
    run(tuner, bytes, 2000, private_memory, {0, 50, 80});
    run(tuner, bytes, single, private_memory, {0, 200, 80});
    std::uint64_t now = 1'000'000'000'000;
    int by_cma = 0;
    for (int i = 0; i < 2000; ++i) {
      const Protocol protocol = tuner.choose(bytes, private_memory, 64);
      by_cma += protocol == Protocol::cma;
      const std::uint64_t began = now;
      tuner.learn(protocol, bytes, began, now += (protocol == Protocol::cma ? 80u : 500u) * 1024);
    }
    EXPECT_GT(by_cma, 1400) << "after " << single << " messages";
  }
}

TEST(Tuner, ends_the_trial_of_a_protocol_that_refuses_a_message) {
  Tuner tuner;
  Protocol tried = tuner.choose(1 << 20, private_memory);
  tuner.refused(tried, 1 << 20);
  const Tuner::Mask others = private_memory & ~Tuner::bit(tried);
  EXPECT_NE(tuner.choose(1 << 20, others), tried);
  std::array<double, Tuner::protocols> cost = {50, 50, 50};
  EXPECT_EQ(run(tuner, 1 << 20, 100, others, cost)[static_cast<std::size_t>(tried)], 0);
}

TEST(Tuner, shows_what_its_statistics_rest_on) {
  auto estimates = estimates_of({1, 50, 100});
  auto shown = std::make_unique<segment::PairStatistics>();
  Tuner tuner(shown.get(), &estimates, Basis::profile);
  const auto& row = shown->from_it[Tuner::class_of(1 << 20)];
  auto basis = [&](std::size_t protocol) { return static_cast<Basis>(row.basis[protocol].load_relaxed()); };
  run(tuner, 1 << 20, 20, private_memory, {1, 50, 100});
  EXPECT_EQ(basis(pipelined), Basis::measured);
  EXPECT_EQ(basis(cma), Basis::profile);
  EXPECT_EQ(row.cost[cma].load_relaxed(), 100u * 1024);
  EXPECT_EQ(row.cost[direct].load_relaxed(), 0u) << "it was never possible";
  run(tuner, 1 << 20, 300, private_memory, {1, 50, 100});
  EXPECT_EQ(basis(cma), Basis::measured);
  tuner.take(Protocol::pipelined, 1 << 20);
  tuner.learn(Protocol::pipelined, 1 << 20, 0, 50 << 10);
  EXPECT_EQ(basis(pipelined), Basis::named);
}

/// Faces of a grid go in turns, some of which have gaps. Their protocols are rated apart, and both are shown.
TEST(Tuner, keeps_messages_with_gaps_apart) {
  auto shown = std::make_unique<segment::PairStatistics>();
  Tuner tuner(shown.get());
  const std::array<std::array<std::uint64_t, Tuner::protocols>, 2> cost = {{{0, 20, 35}, {0, 90, 60}}};
  std::array<std::array<int, Tuner::protocols>, 2> taken{};
  std::uint64_t now = 1;
  for (int message = 0; message < 2000; ++message)
    for (const bool has_gaps : {false, true}) {
      const Protocol protocol = tuner.choose(1 << 20, private_memory, 0, has_gaps);
      const auto kind = static_cast<std::size_t>(has_gaps), index = static_cast<std::size_t>(protocol);
      const std::uint64_t began = now;
      now += cost[kind][index] << 10;
      tuner.learn(protocol, 1 << 20, began, now, has_gaps);
      now += 100;
      if (message >= 1000) ++taken[kind][index];
    }
  EXPECT_GT(taken[0][pipelined], 900);
  EXPECT_GT(taken[1][cma], 900);
  const int size_class = Tuner::class_of(1 << 20);
  EXPECT_EQ(shown->from_it[size_class].present.load_relaxed(), pipelined);
  EXPECT_EQ(shown->with_gaps[size_class].present.load_relaxed(), cma);
  EXPECT_EQ(tuner.of(size_class, true).messages, 2000u);
}

TEST(Tuner, shows_a_figure_beyond_all_bounds_as_the_largest) {
  auto shown = std::make_unique<segment::PairStatistics>();
  Tuner tuner(shown.get());
  run(tuner, 1 << 13, 600, private_memory, {0, 60, 40}, [](std::size_t) { return 40'000'000; });
  run(tuner, 1 << 13, 10, private_memory, {0, 60, 40});
  const auto& row = shown->from_it[Tuner::class_of(1 << 13)];
  EXPECT_EQ(row.cost[pipelined].load_relaxed(), ~0u);
  EXPECT_EQ(row.cost[cma].load_relaxed(), 40u * 1024);
}

TEST(Tuner, begins_a_new_size_with_what_its_neighbour_knows) {
  Tuner tuner;
  run(tuner, 1 << 16, 1000, all, {500, 50, 500});
  auto taken = run(tuner, 1 << 18, 20, all, {500, 50, 500});
  EXPECT_GT(taken[pipelined], 11);
}

/// CMA costs a system call a message, which matters less for longer messages than for those it was measured with.
TEST(Tuner, tries_in_a_new_size_what_only_shorter_messages_make_expensive) {
  segment::PairEstimates estimates = estimates_of({0, 100, 100});
  for (std::size_t size = 0; size < segment::size_classes; ++size)
    estimates.cost[size][cma] = (50 + (1600u >> size)) * 1024;
  Tuner tuner(nullptr, &estimates, Basis::built_in);
  run(tuner, 1 << 14, 300, private_memory, {0, 170, 340});
  auto taken = run(tuner, 1 << 16, 100, private_memory, {0, 170, 110});
  EXPECT_GT(taken[cma], 80);
}

/// Windows of eight messages both ways, 200 of them, of which `early` arrive before this process sends its own. With the
/// pipelined protocol transfers from the peer take less time than with CMA, and those to the peer twice as much. Returns
/// how many messages of the last 100 windows have taken CMA.
int stream_both_ways(int early) {
  const std::uint64_t bytes = 1 << 18;
  Tuner tuner;
  std::uint64_t now = 1'000'000'000;
  int by_cma = 0;
  for (int round = 0; round < 200; ++round) {
    std::uint64_t other = now;
    for (int i = 0; i < 8; ++i) {
      if (i == early) tuner.sends_began(now);
      const Protocol protocol = tuner.choose(bytes, private_memory, i < early ? 0 : 8);
      by_cma += round >= 100 && protocol == Protocol::cma ? 1 : 0;
      const std::uint64_t took = protocol == Protocol::cma ? 30'000 : 20'000;
      tuner.learn(protocol, bytes, now, now + took);
      now += took;
      other += protocol == Protocol::cma ? 30'000 : 60'000;
    }
    now = std::max(now, other);
    tuner.sends_ended(now);
    now += 500'000; // the program computes, and that is charged to neither
  }
  return by_cma;
}

/// The protocol with which transfers from the peer end soonest is not the best one if this process then waits longer for
/// those to the peer.
TEST(Tuner, charges_a_stream_both_ways_for_the_wait_for_the_other_direction) {
  EXPECT_GT(stream_both_ways(0), 700);
}

/// Messages that arrive before this process sends its own are timed like the rest of their window.
TEST(Tuner, recognizes_a_stream_both_ways_before_its_own_messages) {
  for (int early : {1, 2, 4}) EXPECT_GT(stream_both_ways(early), 700) << early;
}

/// Passes `count` messages to the tuner, each while `sent` messages to the peer are on their way.
bool stream_after(Tuner& tuner, int count, std::uint64_t sent) {
  const std::uint64_t bytes = 1 << 18;
  std::uint64_t now = 1'000'000'000;
  for (int i = 0; i < count; ++i) {
    const Protocol protocol = tuner.choose(bytes, private_memory, sent);
    tuner.learn(protocol, bytes, now, now + 20'000);
    now += 20'000;
  }
  return tuner.of(Tuner::class_of(bytes)).in_stream;
}

/// A program that posts a new message for each that is done always has some on their way.
TEST(Tuner, recognizes_a_stream_both_ways_that_never_drains) {
  Tuner tuner;
  tuner.sends_began(1'000'000);
  EXPECT_TRUE(stream_after(tuner, 2000, 8));
}

TEST(Tuner, forgets_a_stream_both_ways_once_messages_go_one_way) {
  Tuner tuner;
  tuner.sends_began(1'000'000);
  EXPECT_TRUE(stream_after(tuner, 8, 8));
  tuner.sends_ended(2'000'000);
  EXPECT_FALSE(stream_after(tuner, 16, 0));
}

} // namespace
