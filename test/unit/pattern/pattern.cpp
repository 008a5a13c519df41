// Trees, rings, recursive doubling and chains: what one rank says of another is what that one says of itself.
#include "pattern/chain.h"
#include "pattern/doubling.h"
#include "pattern/program.h"
#include "pattern/ring.h"
#include "pattern/tree.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <set>

namespace near::pattern {
namespace {

using base::Result;
using Numbers = std::vector<std::uint32_t>;

TEST(tree, reaches_every_rank_once) {
  for (int size = 1; size <= 33; ++size)
    for (int root : {0, size / 2, size - 1}) {
      std::multiset<int> reached;
      for (int rank = 0; rank < size; ++rank) {
        const BinomialTree tree(rank, size, root);
        (void)go_down(
            tree, [] { return Result{}; },
            [&](int distance) {
              reached.insert(tree.child(distance));
              EXPECT_EQ(BinomialTree(tree.child(distance), size, root).parent(), rank);
              return Result{};
            });
      }
      EXPECT_EQ(reached.size(), static_cast<std::size_t>(size) - 1);
      EXPECT_EQ(std::set<int>(reached.begin(), reached.end()).size(), reached.size());
      EXPECT_EQ(reached.count(root), 0u);
    }
}

TEST(ring, what_leaves_a_rank_arrives_at_the_next_one) {
  for (int size : {1, 2, 3, 8, 17})
    for (int rank = 0; rank < size; ++rank) {
      const Ring own(rank, size), next(own.right(), size);
      EXPECT_EQ(next.left(), rank);
      std::set<int> arrived{rank};
      for (int round = 0; round < own.rounds(); ++round) {
        EXPECT_EQ(own.gathering(round).leaves, next.gathering(round).arrives);
        EXPECT_EQ(own.reducing(round).leaves, next.reducing(round).arrives);
        EXPECT_TRUE(arrived.count(own.gathering(round).leaves) == 1) << "it is sent before it is there";
        arrived.insert(own.gathering(round).arrives);
      }
      EXPECT_EQ(arrived.size(), static_cast<std::size_t>(size));
      if (size > 1) { EXPECT_EQ(own.reducing(own.rounds() - 1).arrives, rank); }
    }
}

TEST(ring, slices_and_pieces_cover_the_vector) {
  for (MPI_Count count : {0, 1, 7, 64, 1000})
    for (int size : {1, 3, 8}) {
      MPI_Count slices = 0, pieces = 0;
      for (int index = 0; index < size; ++index) {
        EXPECT_EQ(slice_of(count, index, size).begin, slices);
        slices += slice_of(count, index, size).count;
        pieces += pieces_of(count, index, 1, size).count;
      }
      EXPECT_EQ(slices, count);
      EXPECT_EQ(pieces, count);
      EXPECT_EQ(pieces_of(count, 0, size, size).count, count);
    }
}

/// Each rank collects a bit for every rank that it has heard of.
struct Heard {
  std::vector<std::uint64_t>& of;
  std::vector<std::pair<int, int>>& exchanges;
  int rank;
  Result give(int) { return {}; }
  Result take(int) { return {}; }
  Result pass(int) { return {}; }
  Result absorb(int from) {
    of[static_cast<std::size_t>(rank)] |= of[static_cast<std::size_t>(from)];
    return {};
  }
  Result exchange(int partner) {
    exchanges.emplace_back(rank, partner);
    return {};
  }
};

TEST(doubling, every_acting_rank_hears_of_all) {
  for (int size = 1; size <= 40; ++size) {
    std::vector<std::uint64_t> heard(static_cast<std::size_t>(size));
    std::vector<std::vector<std::pair<int, int>>> exchanges(heard.size());
    for (int rank = 0; rank < size; ++rank) heard[static_cast<std::size_t>(rank)] = std::uint64_t{1} << rank;
    for (int rank = 0; rank < size; ++rank)
      (void)double_up(Doubling(rank, size), Heard{heard, exchanges[static_cast<std::size_t>(rank)], rank});
    for (std::size_t round = 0; (1 << round) < Doubling(0, size).power(); ++round) {
      std::vector<std::uint64_t> after = heard;
      for (const auto& own : exchanges)
        if (!own.empty())
          after[static_cast<std::size_t>(own[round].first)] |=
              heard[static_cast<std::size_t>(own[round].second)];
      heard = after;
    }
    for (int rank = 0; rank < size; ++rank)
      if (!Doubling(rank, size).rests()) {
        EXPECT_EQ(heard[static_cast<std::size_t>(rank)], (std::uint64_t{1} << size) - 1)
            << rank << " of " << size;
      }
  }
}

TEST(chain, passes_from_the_root_to_all_others) {
  for (int count : {2, 3, 8})
    for (int root = 0; root < count; ++root) {
      std::vector<int> order{root};
      while (!Chain(count, root, order.back()).is_last()) {
        const int next = Chain(count, root, order.back()).next();
        EXPECT_EQ(Chain(count, root, next).previous(), order.back());
        EXPECT_FALSE(Chain(count, root, next).is_first());
        order.push_back(next);
      }
      EXPECT_EQ(order.size(), static_cast<std::size_t>(count));
    }
}

TEST(chain, is_taken_for_more_chunks_than_machines) {
  EXPECT_FALSE(is_for_chain(least_in_chunks - 1, 2, false));
  EXPECT_TRUE(is_for_chain(least_in_chunks, 2, false));
  EXPECT_FALSE(is_for_chain(least_in_chunks, 2, true));
  EXPECT_FALSE(is_for_chain(chunk_bytes * 62 - 1, 64, false));
  EXPECT_TRUE(is_for_chain(chunk_bytes * 62, 64, false));
}

/// The phases that a call has on a machine: which collectives, and of how many bytes.
TEST(levels, have_the_phases_of_the_collective) {
  Facts facts{
      .collective = Collective::allgather, .bytes = 8, .size = 6, .machines = 3, .most_on_machine = 2};
  const std::vector<Phase> phases = phases_of(facts, {.ranks = 2});
  ASSERT_EQ(phases.size(), 3u);
  EXPECT_EQ(phases[0].facts.collective, Collective::gather);
  EXPECT_TRUE(phases[0].facts.area);
  EXPECT_TRUE(phases[1].among_leaders);
  EXPECT_EQ(phases[1].facts.bytes, 16); // the blocks of a machine
  EXPECT_EQ(phases[1].facts.machines, 3);
  EXPECT_EQ(phases[2].facts.bytes, 48);
  facts.machines_equal = false;
  EXPECT_EQ(phases_of(facts, {.ranks = 2})[1].facts.collective, Collective::allgatherv);
  EXPECT_EQ(phases_of(facts, {.ranks = 1}).size(), 1u); // a rank that is alone only exchanges
}

TEST(programs, of_two_ranks_fit_together) {
  for (int machines = 2; machines <= 9; ++machines)
    for (MPI_Count bytes : {MPI_Count{8}, MPI_Count{200} << 10, MPI_Count{4} << 20})
      for (Collective collective : {Collective::broadcast, Collective::allreduce}) {
        Numbers machine_of;
        for (int rank = 0; rank < 3 * machines; ++rank)
          machine_of.push_back(static_cast<std::uint32_t>(rank / 3));
        const Machines all(machine_of, 0);
        Facts facts{.collective = collective, .bytes = bytes, .size = 3 * machines};
        add_machines(facts, all);
        const std::vector<int> leaders = all.leaders_with(4);
        std::map<std::pair<int, int>, MPI_Count> balance; // sent less received
        for (int rank = 0; rank < facts.size; ++rank)
          for (const Step& step : program_of(facts, all, RankList::of(leaders), rank, 4)) {
            const int times = step.verb == Verb::ring ? step.count : 1;
            if (step.to >= 0) balance[{rank, step.to}] += step.out * times;
            if (step.from >= 0) balance[{step.from, rank}] -= step.in * times;
          }
        EXPECT_FALSE(balance.empty());
        for (const auto& [pair, rest] : balance) EXPECT_EQ(rest, 0) << pair.first << " to " << pair.second;
      }
}

} // namespace
} // namespace near::pattern
