// Imagined jobs, and the simulation of their collectives: what it must say whatever the figures are.
#include "model/curves.h"
#include "model/job.h"
#include "model/rounds.h"
#include "model/simulation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace near::model {
namespace {

using choice::Collective;

std::vector<MachineKind> kinds_of(std::string_view text, unsigned ranks = 0) {
  std::vector<MachineKind> kinds;
  EXPECT_TRUE(parse_machines({.text = text, .ranks = ranks, .ranks_each = 4}, kinds).ok())
      << base::failure_text();
  return kinds;
}
MachineKind kind(int count, int ranks, std::string file = {}) {
  return {.count = count, .ranks = ranks, .file = std::move(file)};
}

TEST(machines, are_written_as_lists) {
  using Kinds = std::vector<MachineKind>;
  EXPECT_EQ(kinds_of("64"), (Kinds{kind(64, 4)}));
  EXPECT_EQ(kinds_of("3", 8), (Kinds{kind(2, 3), kind(1, 2)}));
  EXPECT_EQ(kinds_of("64x8"), (Kinds{kind(64, 8)}));
  EXPECT_EQ(kinds_of("4,4,2"), (Kinds{kind(2, 4), kind(1, 2)}));
  EXPECT_EQ(kinds_of("2x8:big.xml,8,8"), (Kinds{kind(2, 8, "big.xml"), kind(2, 8)}));
}

TEST(machines, that_make_no_sense_are_refused) {
  for (const char* text : {"", "0", "x", "x8", "4x", "4x0", "4,,2", "4,2,", "4x-1", "1", "1x8", "8,a",
                           "2x4:", "99999999x8", "2x5000", "1048576x4096"}) {
    std::vector<MachineKind> kinds;
    EXPECT_FALSE(parse_machines({.text = text}, kinds).ok()) << text;
    EXPECT_NE(base::failure_text().find("--machines"), std::string_view::npos) << base::failure_text();
  }
  std::vector<MachineKind> kinds;
  EXPECT_FALSE(parse_machines({.text = "4", .ranks = 3}, kinds).ok()); // a machine without ranks
  EXPECT_FALSE(parse_machines({.text = "4x2", .ranks = 8}, kinds).ok());
}

TEST(machines, have_their_ranks_in_blocks_or_in_turns) {
  using Numbers = std::vector<std::uint32_t>;
  EXPECT_EQ(machine_of_ranks({kind(2, 2), kind(1, 3)}, false), (Numbers{0, 0, 1, 1, 2, 2, 2}));
  EXPECT_EQ(machine_of_ranks({kind(2, 2), kind(1, 3)}, true), (Numbers{0, 1, 2, 0, 1, 2, 2}));
}

TEST(rounds, of_ranks_that_are_alike_are_those_of_one) {
  const Hop hop{.announce = 3, .waits = true, .answer = 5, .leaves = 7, .arrives = 11, .after = 2};
  for (std::size_t block : {std::size_t{1}, std::size_t{4}}) {
    std::vector<double> ready(12), single(1);
    go_round(std::vector<Hop>(12, hop), ready, 11, block);
    go_round({hop}, single, 11, 1);
    for (double each : ready) EXPECT_EQ(each, single[0]);
    EXPECT_EQ(single[0], 11 * (3 + 5 + 11 + 2));
  }
}

TEST(rounds, that_repeat_are_computed_for_one_block_only_but_come_out_the_same) {
  std::vector<Hop> hops;
  std::vector<double> ready;
  for (int i = 0; i < 12; ++i) {
    hops.push_back({.announce = 1.0 + i % 4,
                    .waits = i % 4 == 3,
                    .answer = 2,
                    .leaves = 3,
                    .arrives = 9.0 - i % 4,
                    .after = 0.5});
    ready.push_back(10 * (i % 4));
  }
  std::vector<double> by_block = ready, one_by_one = ready;
  go_round(hops, by_block, 11, 4);
  go_round(hops, one_by_one, 11, 5); // nothing repeats after five
  EXPECT_EQ(by_block, one_by_one);
}

/// A late rank delays its right neighbour in the first round, and the next ones later.
TEST(rounds, spread_a_delay_by_one_rank_each) {
  std::vector<double> ready{0, 1000, 0, 0, 0, 0};
  go_round(std::vector<Hop>(6, Hop{.announce = 1, .leaves = 1, .arrives = 2}), ready, 2, 1);
  EXPECT_GT(ready[2], 1000);
  EXPECT_GT(ready[3], 1000);
  EXPECT_LT(ready[4], 1000);
}

Simulated simulated(Collective collective, const Shape& shape, MPI_Count bytes, bool near,
                    const Network& network = {}) {
  EXPECT_TRUE(choice::configure("auto").ok());
  return simulate(network, shape, {.collective = collective, .bytes = bytes, .leaders_near = near});
}

/// Without links to cross there is nothing to gain: the NIC is where the lowest rank is.
TEST(simulation, is_the_same_for_both_leaders_if_they_are_one_rank) {
  const Shape shape{.machines = 9, .ranks = 8, .nodes = 4, .nic_node = 0};
  for (Collective collective : {Collective::broadcast, Collective::allreduce})
    for (MPI_Count bytes : {MPI_Count{8}, MPI_Count{100} << 10, MPI_Count{8} << 20}) {
      const Simulated near = simulated(collective, shape, bytes, true),
                      far = simulated(collective, shape, bytes, false);
      EXPECT_EQ(near.time, far.time);
      EXPECT_EQ(near.messages, far.messages);
    }
}

TEST(simulation, of_a_broadcast_sends_to_each_machine_once_and_crosses_only_at_the_root) {
  for (MPI_Count bytes : {MPI_Count{8}, MPI_Count{64} << 10}) {
    const Shape shape{.machines = 17, .ranks = 8, .nodes = 4, .nic_node = 1};
    const auto length = static_cast<double>(bytes);
    const Simulated near = simulated(Collective::broadcast, shape, bytes, true);
    EXPECT_EQ(near.messages, 16u);
    EXPECT_EQ(near.crossed_in, 0);
    EXPECT_EQ(near.crossed_out, 5 * length); // the root, which leads its machine, sends to five children
    const Simulated far = simulated(Collective::broadcast, shape, bytes, false);
    EXPECT_EQ(far.messages, 16u);
    EXPECT_EQ(far.crossed_in, 16 * length);
    EXPECT_EQ(far.crossed_out, 16 * length);
    EXPECT_LT(near.time, far.time);
  }
}

/// A chain of three machines: every leader but the root's receives all, and every one but the last sends all.
TEST(simulation, of_a_long_broadcast_passes_chunks_along) {
  const Shape shape{.machines = 3, .ranks = 4, .nodes = 2, .nic_node = 1};
  const MPI_Count bytes = (MPI_Count{4} << 20) + 100;
  const Simulated found = simulated(Collective::broadcast, shape, bytes, false);
  EXPECT_EQ(found.messages, 2u * 17); // chunks of 256 KiB, the last of 100 bytes
  EXPECT_EQ(found.crossed_in, 2 * static_cast<double>(bytes));
}

/// Two machines with one rank each, and nothing that takes time but what is named: the sum is known.
TEST(simulation, adds_up_what_a_message_takes) {
  Network network;
  network.latency = 1000, network.overhead = 10, network.gap = 1, network.add_gap = 2;
  const Shape shape{.machines = 2, .ranks = 1, .nodes = 1, .nic_node = 0};
  EXPECT_EQ(simulated(Collective::broadcast, shape, 100, true, network).time, 10 + 100 + 1000 + 10);
  // Both send, and add what arrives.
  EXPECT_EQ(simulated(Collective::allreduce, shape, 100, true, network).time, 10 + 100 + 1000 + 10 + 200);
  // A longer one announces itself first, and waits for the answer.
  network.eager = 50;
  EXPECT_EQ(simulated(Collective::broadcast, shape, 100, true, network).time,
            10 + (1000 + 10) + (1000 + 10) + 100 + 1000 + 10);
}

/// One NIC sends one message after the other: the root of a tree with two children.
TEST(simulation, lets_messages_wait_for_the_nic) {
  Network network;
  network.latency = 0, network.overhead = 0, network.gap = 1;
  const Shape shape{.machines = 3, .ranks = 1, .nodes = 1, .nic_node = 0};
  EXPECT_EQ(simulated(Collective::broadcast, shape, 1000, true, network).time, 2000);
}

/// The link's share of the time is that of its bandwidth.
TEST(simulation, lets_messages_wait_for_links) {
  Network network;
  network.latency = network.overhead = network.crossing = network.flag = 0;
  network.gap = 1, network.link_gap = 3, network.copy_gap = network.memory_gap = 0;
  const Shape shape{.machines = 2, .ranks = 4, .nodes = 2, .nic_node = 1};
  // From the root's node to the NIC; then, on either machine, two ranks of the other node read over the link of the leader's.
  EXPECT_EQ(simulated(Collective::broadcast, shape, 1000, true, network).time, 3000 + 2 * 3000);
  // The other leader is on the node of the root: the link in its way is another one, and as fast.
  EXPECT_EQ(simulated(Collective::broadcast, shape, 1000, false, network).time, 3000 + 2 * 3000);
}

/// Many alike machines and few give the same answer whether ranks of a ring are computed one by one or not: one odd rank decides.
TEST(simulation, of_many_machines_ends) {
  const Shape shape{.machines = 1024, .ranks = 4, .nodes = 2, .nic_node = 1};
  for (Collective collective : {Collective::broadcast, Collective::allreduce})
    for (MPI_Count bytes : {MPI_Count{8}, MPI_Count{1} << 20}) {
      const Simulated found = simulated(collective, shape, bytes, true);
      EXPECT_TRUE(std::isfinite(found.time));
      EXPECT_GT(found.messages, 1000u);
    }
}

TEST(machine, time_of_a_phase_grows_with_its_bytes_and_a_slow_link_delays_it) {
  EXPECT_TRUE(choice::configure("auto").ok());
  const Shape shape{.machines = 2, .ranks = 8, .nodes = 4, .nic_node = 1};
  for (Collective collective : {Collective::broadcast, Collective::reduce}) {
    double before = -1;
    for (MPI_Count bytes = 8; bytes <= 64 << 20; bytes *= 8) {
      const choice::Facts facts{
          .collective = collective, .bytes = bytes, .size = 8, .nodes = 4, .area = true};
      const OnMachine fast = on_machine({}, shape, facts, 2);
      EXPECT_GE(fast.last, before);
      EXPECT_GE(fast.last, fast.leader);
      before = fast.last;
      Network slow;
      slow.link_gap *= 100;
      EXPECT_GT(on_machine(slow, shape, facts, 2).last, fast.last);
    }
  }
}

TEST(drawing, has_a_line_for_each_curve_and_leader) {
  const std::string drawn =
      drawing_of({{"broadcast", {{"64 machines", {{8, 1e4, 2e4}, {1 << 20, 1e6, 2e6}}}}}});
  std::size_t lines = 0;
  for (auto at = drawn.find("<polyline"); at != std::string::npos; at = drawn.find("<polyline", at + 1))
    ++lines;
  EXPECT_EQ(lines, 2u);
  EXPECT_NE(drawn.find("64 machines"), std::string::npos);
}

} // namespace
} // namespace near::model
