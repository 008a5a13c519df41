// The ranks that reordered topologies give to processes: what is cut between machines, and then between their nodes.
#include "comm/reorder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

namespace {

using namespace near::comm;
using Ranks = std::vector<int>;
/// The weight of the edges between machines, and between nodes.
using Cuts = std::pair<std::int64_t, std::int64_t>;

/// Where processes run: kinds[0] is the machine of each, kinds[1] the node.
struct Job {
  std::vector<Parts> kinds{2};
  void add(int machine, int node) {
    kinds[0].push_back(static_cast<std::uint64_t>(machine));
    kinds[1].push_back(static_cast<std::uint64_t>(100 * machine + node));
  }
  std::size_t size() const { return kinds[0].size(); }
};

/// `each` processes on each of `nodes` nodes of each machine, machine by machine.
Job in_blocks(int machines, int nodes, int each) {
  Job job;
  for (int process = 0; process < machines * nodes * each; ++process)
    job.add(process / (nodes * each), process / each % nodes);
  return job;
}

Job in_turns(int machines, int nodes, int each) {
  Job job;
  for (int process = 0; process < machines * nodes * each; ++process)
    job.add(process % machines, process / machines % nodes);
  return job;
}

Job shuffled(const Job& job, unsigned seed) {
  std::vector<std::size_t> order(job.size());
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 random(seed);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  Job made;
  for (const std::size_t from : order)
    for (std::size_t kind : {0, 1}) made.kinds[kind].push_back(job.kinds[kind][from]);
  return made;
}

std::int64_t cut_between(const WeightedGraph& graph, const Parts& part_of, const Ranks& rank_of) {
  std::vector<std::uint64_t> part(rank_of.size());
  for (std::size_t process = 0; process < rank_of.size(); ++process)
    part[static_cast<std::size_t>(rank_of[process])] = part_of[process];
  std::int64_t cut = 0;
  for (int rank = 0; rank < graph.size(); ++rank)
    for (const auto& neighbour : graph.neighbours(rank))
      if (part[static_cast<std::size_t>(rank)] != part[static_cast<std::size_t>(neighbour.vertex)])
        cut += neighbour.weight;
  return cut / 2;
}

Ranks unchanged(std::size_t size) {
  Ranks ranks(size);
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

Cuts cuts_of(const Pattern& pattern, const Job& job, const Ranks& rank_of) {
  return {cut_between(pattern.graph, job.kinds[0], rank_of),
          cut_between(pattern.graph, job.kinds[1], rank_of)};
}

Cuts before(const Pattern& pattern, const Job& job) { return cuts_of(pattern, job, unchanged(job.size())); }

/// What is cut after reordering. Checks that each process has a rank of its own, and that nothing got worse.
Cuts after(const Pattern& pattern, const Job& job) {
  const Ranks ranks = reordered_ranks(pattern, job.kinds);
  Ranks sorted = ranks;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sorted, unchanged(job.size()));
  const Cuts found = cuts_of(pattern, job, ranks);
  EXPECT_LE(found, before(pattern, job));
  return found;
}

Pattern grid(const std::vector<int>& dims, bool periodic = false) {
  return pattern_of_grid(dims, std::vector<int>(dims.size(), periodic ? 1 : 0));
}

TEST(PatternOfGrid, has_an_edge_for_each_pair_of_neighbours) {
  const std::vector<int> one(32, 0);
  auto edges = [](const Pattern& pattern) {
    std::vector<int> apart(static_cast<std::size_t>(pattern.graph.size()));
    std::iota(apart.begin(), apart.end(), 0);
    return pattern.graph.cut(apart);
  };
  EXPECT_EQ(edges(grid({8, 4})), 7 * 4 + 8 * 3);
  EXPECT_EQ(edges(grid({8, 4}, true)), 2 * 32);
  EXPECT_EQ(edges(grid({2}, true)), 2); // two messages each way: at -1 and at +1
  EXPECT_EQ(edges(grid({1, 1}, true)), 0);
  EXPECT_EQ(edges(grid({})), 0);
}

TEST(Reordering, halves_what_a_shuffled_stencil_sends_between_machines_and_then_between_nodes) {
  const Pattern pattern = grid({8, 8});
  for (unsigned seed = 0; seed < 20; ++seed) {
    const Job job = shuffled(in_blocks(2, 4, 8), seed);
    const Cuts was = before(pattern, job), is = after(pattern, job);
    EXPECT_LE(2 * is.first, was.first);
    EXPECT_LE(2 * is.second, was.second);
    // Two halves of four blocks of 2 by 4 each: nothing better exists.
    EXPECT_EQ(is, Cuts(8, 8 + 2 * 12));
  }
}

TEST(Reordering, divides_grids_with_ranks_in_turns) {
  EXPECT_EQ(before(grid({8, 8}), in_turns(2, 4, 8)).first, 7 * 8);
  EXPECT_EQ(after(grid({8, 8}), in_turns(2, 4, 8)), Cuts(8, 32));
  EXPECT_EQ(after(grid({64}), in_turns(2, 4, 8)), Cuts(1, 7));
  EXPECT_EQ(after(grid({64}, true), in_turns(2, 4, 8)), Cuts(2, 8));
  EXPECT_EQ(after(grid({4, 4, 4}), in_turns(2, 4, 8)), Cuts(16, 16 + 2 * 16));
  EXPECT_EQ(after(grid({8, 8}, true), in_turns(2, 4, 8)), Cuts(16, 16 + 2 * (8 + 2 * 4)));
  EXPECT_EQ(after(grid({1, 64, 1}), in_turns(2, 4, 8)), Cuts(1, 7));
  EXPECT_EQ(after(grid({12, 12}), in_turns(9, 1, 16)).first, 2 * 2 * 12);
}

TEST(Reordering, keeps_the_order_where_no_other_is_better) {
  for (const Job& job : {in_blocks(1, 1, 64), in_blocks(2, 1, 32), in_blocks(64, 1, 1)})
    EXPECT_EQ(reordered_ranks(grid({8, 8}), job.kinds), unchanged(64));
  // Within a node too.
  const Job job = in_turns(2, 1, 8);
  const Ranks ranks = reordered_ranks(grid({16}), job.kinds);
  for (std::size_t i = 2; i < ranks.size(); ++i) EXPECT_LT(ranks[i - 2], ranks[i]);
  // All exchange data with all.
  std::vector<WeightedEdge> edges;
  for (int one = 0; one < 16; ++one)
    for (int other = 0; other < 16; ++other) edges.push_back({one, other, 1});
  EXPECT_EQ(reordered_ranks({WeightedGraph(16, edges), {}, {}}, job.kinds), unchanged(16));
  EXPECT_EQ(reordered_ranks({WeightedGraph(16, {}), {}, {}}, job.kinds), unchanged(16));
  EXPECT_EQ(reordered_ranks(grid({1}), in_blocks(1, 1, 1).kinds), unchanged(1));
}

TEST(Reordering, divides_among_unequal_machines) {
  Job job;
  for (int process = 0; process < 30; ++process) job.add(process % 5 == 0 ? 1 : 0, process % 3);
  // 24 of 30 processes on one machine: the other one gets a corner.
  EXPECT_EQ(after(grid({6, 5}), job).first, 5);
  Job three;
  for (int process = 0; process < 36; ++process) three.add(process % 6 == 0 ? 0 : process % 2 + 1, 0);
  const Cuts was = before(grid({6, 6}), three), is = after(grid({6, 6}), three); // 6, 12 and 18 processes
  EXPECT_LE(2 * is.first, was.first);
  EXPECT_LE(is.first, 14);
}

TEST(Reordering, divides_grids_that_have_no_equal_boxes) {
  const Job job = in_turns(2, 1, 17);
  EXPECT_LE(after(grid({2, 17}), job).first, 3); // two rows would be a cut of 17
  EXPECT_LE(after(grid({7, 11, 2}), in_turns(7, 1, 22)).first, 130);
}

TEST(Reordering, follows_the_weights_of_a_graph) {
  // Pairs of processes that exchange much, in a ring that exchanges little.
  std::vector<WeightedEdge> edges;
  for (int rank = 0; rank < 16; ++rank) {
    edges.push_back({rank, (rank + 8) % 16, 100});
    edges.push_back({rank, (rank + 1) % 16, 1});
  }
  const Pattern pattern{WeightedGraph(16, edges), {}, {}};
  for (unsigned seed = 0; seed < 20; ++seed)
    EXPECT_EQ(after(pattern, shuffled(in_blocks(2, 2, 4), seed)), Cuts(4, 8));
}

TEST(Reordering, finds_groups_that_hardly_talk_to_each_other) {
  for (unsigned seed = 0; seed < 5; ++seed) {
    std::mt19937 random(seed);
    std::vector<int> name(96);
    std::iota(name.begin(), name.end(), 0);
    for (std::size_t i = name.size(); i > 1; --i) std::swap(name[i - 1], name[random() % i]);
    std::vector<WeightedEdge> edges;
    for (std::size_t one = 0; one < 96; ++one)
      for (std::size_t other = one + 1; other < 96; ++other)
        if (one / 24 == other / 24 && random() % 3 == 0) edges.push_back({name[one], name[other], 3});
    for (std::size_t one = 0; one < 96; one += 24) edges.push_back({name[one], name[(one + 24) % 96], 1});
    const Pattern pattern{WeightedGraph(96, edges), {}, {}};
    EXPECT_EQ(after(pattern, in_blocks(4, 1, 24)).first, 4);
    // Machines of other sizes cannot take the groups whole.
    Job job;
    for (int process = 0; process < 96; ++process) job.add(process < 40 ? 0 : process < 56 ? 1 : 2, 0);
    after(pattern, job);
  }
}

TEST(Reordering, divides_graphs_about_as_well_as_grids) {
  // The same stencil, of which nobody says that it is a grid, with its ranks renamed.
  const Pattern square = grid({16, 16});
  std::vector<int> name(256);
  std::iota(name.begin(), name.end(), 0);
  std::mt19937 random(3);
  for (std::size_t i = name.size(); i > 1; --i) std::swap(name[i - 1], name[random() % i]);
  std::vector<WeightedEdge> edges;
  for (int rank = 0; rank < 256; ++rank)
    for (const auto& neighbour : square.graph.neighbours(rank))
      edges.push_back(
          {name[static_cast<std::size_t>(rank)], name[static_cast<std::size_t>(neighbour.vertex)], 1});
  const Pattern graph{WeightedGraph(256, edges), {}, {}};
  const Cuts is = after(graph, in_blocks(2, 4, 32)); // twice the weight of the grid's
  EXPECT_LE(is.first, 2 * 20);
  EXPECT_LE(is.second, 2 * 100); // the best blocks: 16 + 2 * (16 + 8)
}

TEST(Reordering, is_never_worse) {
  std::mt19937 random(1);
  for (int run = 0; run < 150; ++run) {
    Job job;
    const int processes = 1 + static_cast<int>(random() % 40), machines = 1 + static_cast<int>(random() % 5);
    for (int process = 0; process < processes; ++process)
      job.add(static_cast<int>(random()) % machines & 7, static_cast<int>(random() % 3));
    std::vector<WeightedEdge> edges;
    for (auto left = random() % 120; left > 0; --left)
      edges.push_back({static_cast<int>(random() % static_cast<unsigned>(processes)),
                       static_cast<int>(random() % static_cast<unsigned>(processes)),
                       static_cast<std::int64_t>(random() % 9)});
    after({WeightedGraph(processes, edges), {}, {}}, job);
    const int rows = 1 + static_cast<int>(random() % 6), columns = 1 + static_cast<int>(random() % 6);
    Job other;
    for (int process = 0; process < rows * columns; ++process)
      other.add(static_cast<int>(random() % 3), static_cast<int>(random() % 3));
    after(grid({rows, columns}, random() % 2 == 0), other);
  }
}

TEST(Reordering, within_a_machine_does_not_depend_on_the_nodes_of_others) {
  for (unsigned seed = 0; seed < 5; ++seed) {
    const Job job = shuffled(in_blocks(3, 4, 6), seed);
    const Ranks all = reordered_ranks(grid({9, 8}), job.kinds);
    for (std::uint64_t own = 0; own < 3; ++own) {
      Job known = job;
      for (std::size_t process = 0; process < job.size(); ++process)
        if (job.kinds[0][process] != own) known.kinds[1][process] = 0;
      const Ranks ranks = reordered_ranks(grid({9, 8}), known.kinds);
      for (std::size_t process = 0; process < job.size(); ++process)
        if (job.kinds[0][process] == own) EXPECT_EQ(ranks[process], all[process]);
    }
  }
}

TEST(Reordering, ends_for_thousands_of_ranks) {
  EXPECT_EQ(after(grid({64, 64}), shuffled(in_blocks(16, 4, 64), 1)), Cuts(2 * 3 * 64, 2 * 7 * 64));
  EXPECT_EQ(after(grid({128, 128}), in_turns(64, 4, 64)).first, 2 * 7 * 128);
  std::mt19937 random(1);
  std::vector<WeightedEdge> edges;
  for (int i = 0; i < 40000; ++i)
    edges.push_back({static_cast<int>(random() % 8000), static_cast<int>(random() % 8000), 1});
  after({WeightedGraph(8000, edges), {}, {}}, in_turns(40, 2, 100));
}

} // namespace
