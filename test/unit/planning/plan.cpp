// Placement on recorded machines.
#include "planning/drawing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

using namespace near;
using topo::Level;

namespace {

topo::Machine machine_of(const std::string& description) {
  topo::Machine machine;
  EXPECT_TRUE(topo::recorded_machine(description, machine).ok()) << base::failure_text();
  return machine;
}

// Two packages with two nodes each, two caches a node, four cores a cache, two threads a core: 32 cores.
const char* large = "package:2 numa:2 l3:2 core:4 pu:2";
const char* small = "package:1 numa:1 l3:1 core:2 pu:1";

topo::Slots all_of(const topo::Machine& machine) { return topo::count_slots(machine.cpus(), {}); }

planning::Plan plan_of(const topo::Machine& machine, const planning::Request& request) {
  planning::Plan plan;
  EXPECT_TRUE(planning::make_plan(machine, all_of(machine), request, plan).ok()) << base::failure_text();
  EXPECT_EQ(plan.bindings.size(), request.ranks);
  return plan;
}

planning::Request ranks(unsigned count) {
  planning::Request request;
  request.ranks = count;
  return request;
}

using Texts = std::vector<std::string>;
using Numbers = std::vector<unsigned>;

Texts cpus_of(const planning::Plan& plan) {
  Texts all;
  for (const auto& binding : plan.bindings) all.push_back(binding.cpus.text());
  return all;
}

Numbers nodes_of(const planning::Plan& plan) {
  Numbers all;
  for (const auto& binding : plan.bindings) all.push_back(binding.node);
  return all;
}

TEST(plan, two_ranks_are_neighbours) {
  EXPECT_EQ(cpus_of(plan_of(machine_of(large), ranks(2))), (Texts{"0-1", "2-3"}));
}

TEST(plan, more_ranks_are_spread_in_blocks) {
  EXPECT_EQ(nodes_of(plan_of(machine_of(large), ranks(4))), (Numbers{0, 1, 2, 3}));
  EXPECT_EQ(nodes_of(plan_of(machine_of(large), ranks(8))), (Numbers{0, 0, 1, 1, 2, 2, 3, 3}));
  auto three = nodes_of(plan_of(machine_of(large), ranks(3)));
  EXPECT_TRUE(std::is_sorted(three.begin(), three.end()));
}

TEST(plan, no_two_ranks_share_a_core_while_there_are_enough) {
  auto machine = machine_of(large);
  for (unsigned count = 1; count <= 32; ++count) {
    os::CpuSet taken;
    for (const auto& binding : plan_of(machine, ranks(count)).bindings) {
      EXPECT_TRUE((taken & binding.cpus).empty()) << count;
      EXPECT_EQ(binding.cpus.count(), 2u);
      taken = taken | binding.cpus;
    }
  }
}

TEST(plan, ranks_that_exceed_the_cores_take_hardware_threads) {
  auto plan = plan_of(machine_of(large), ranks(64));
  std::set<std::string> different;
  for (const auto& text : cpus_of(plan)) different.insert(text);
  EXPECT_EQ(different.size(), 64u);
  EXPECT_FALSE(plan.oversubscribed);
}

TEST(plan, ranks_that_exceed_the_processors_are_bound_to_nodes_only) {
  auto plan = plan_of(machine_of(large), ranks(128));
  EXPECT_TRUE(plan.oversubscribed);
  EXPECT_EQ(plan.bindings[0].cpus.text(), "0-15");
  EXPECT_EQ(plan.bindings[127].cpus.text(), "48-63");
}

TEST(plan, ranks_that_exceed_a_machine_of_one_node_are_not_bound) {
  auto plan = plan_of(machine_of(small), ranks(8));
  for (const auto& binding : plan.bindings) EXPECT_TRUE(binding.cpus.empty());
  EXPECT_EQ(plan.bindings[7].text, "not bound (cpus 0-1)");
}

TEST(plan, sharing_a_core_on_request_works_with_a_remark) {
  auto request = ranks(4);
  request.bind_chosen = true;
  auto plan = plan_of(machine_of(small), request);
  EXPECT_EQ(cpus_of(plan), (Texts{"0", "0", "1", "1"}));
  EXPECT_NE(plan.notes.front().find("share a core as asked for"), std::string::npos);
}

TEST(plan, threads_get_neighbouring_cores) {
  auto request = ranks(3);
  request.threads = 4;
  auto plan = plan_of(machine_of(large), request);
  for (const auto& binding : plan.bindings) EXPECT_EQ(binding.cpus.count(), 8u);
  EXPECT_EQ(plan.bindings[0].cpus.text(), "0-7");
}

unsigned across_nodes(const topo::Machine& machine, const planning::Plan& plan) {
  unsigned count = 0;
  for (const auto& binding : plan.bindings) {
    std::set<unsigned> nodes;
    for (const auto& core : machine.cores)
      if (!(core.cpus & binding.home).empty()) nodes.insert(core.numa);
    count += nodes.size() > 1;
  }
  return count;
}

TEST(plan, ranks_span_nodes_only_if_no_node_has_room) {
  // With six cores per node, each node holds one rank of four cores, and two nodes together hold a third one.
  auto machine = machine_of("package:2 numa:2 l3:2 core:3 pu:1");
  auto request = ranks(1);
  for (unsigned threads = 1; threads <= 6; ++threads)
    for (unsigned count = 1; count * threads <= 24; ++count) {
      request.threads = threads;
      request.ranks = count;
      auto plan = plan_of(machine, request);
      unsigned whole = 4 * (6 / threads);
      EXPECT_EQ(across_nodes(machine, plan), count > whole ? count - whole : 0) << count << " of " << threads;
      os::CpuSet taken;
      for (const auto& binding : plan.bindings) {
        EXPECT_TRUE((taken & binding.cpus).empty());
        EXPECT_EQ(binding.cpus.count(), threads);
        taken = taken | binding.cpus;
      }
    }
}

TEST(plan, no_order_makes_ranks_span_nodes_unnecessarily) {
  // One cache above two nodes of six cores each.
  auto machine = machine_of("package:1 l3:1 numa:2 core:6 pu:1");
  for (const char* order : {"core", "spread", "l2", "l3", "numa", "package", "ppr:2:l3", "ppr:2:package"}) {
    auto request = ranks(2);
    ASSERT_TRUE(planning::parse_map_by(std::string(order) + ":PE=4", request).ok());
    EXPECT_EQ(across_nodes(machine, plan_of(machine, request)), 0u) << order;
  }
}

TEST(plan, ranks_wider_than_a_node_have_nodes_of_their_own) {
  auto machine = machine_of("package:8 numa:1 core:4 pu:1");
  auto request = ranks(1);
  request.threads = 6;
  for (request.ranks = 1; request.ranks <= 4; ++request.ranks) {
    std::vector<unsigned> ranks_on(8);
    for (const auto& binding : plan_of(machine, request).bindings)
      for (unsigned node = 0; node < 8; ++node)
        ranks_on[node] += !(binding.cpus & machine.nodes[node].near).empty();
    EXPECT_EQ(*std::max_element(ranks_on.begin(), ranks_on.end()), 1u) << request.ranks;
  }
  request.ranks = 2;
  EXPECT_EQ(nodes_of(plan_of(machine, request)), (Numbers{0, 4}));
  request.ranks = 5; // too many for this
  for (const auto& binding : plan_of(machine, request).bindings) EXPECT_EQ(binding.cpus.count(), 6u);
}

TEST(plan, more_threads_than_cores_get_their_part_of_the_machine) {
  auto machine = machine_of(large);
  auto request = ranks(1);
  request.expected_threads = 64; // as many as processors, then more
  EXPECT_EQ(cpus_of(plan_of(machine, request)), (Texts{"0-63"}));
  request.expected_threads = 100;
  EXPECT_EQ(cpus_of(plan_of(machine, request)), (Texts{"0-63"}));
  request.ranks = 2;
  EXPECT_EQ(cpus_of(plan_of(machine, request)), (Texts{"0-31", "32-63"}));
  request.ranks = 8;
  request.expected_threads = 5; // four cores each, with eight hardware threads
  EXPECT_EQ(plan_of(machine, request).bindings[7].cpus.text(), "56-63");
  request.expected_threads = 9; // more than the hardware threads: they may move within the node
  EXPECT_EQ(plan_of(machine, request).bindings[7].cpus.text(), "48-63");
}

TEST(plan, a_rank_is_bound_to_each_cache_that_it_has_cores_of) {
  auto request = ranks(2);
  request.threads = 6;
  ASSERT_TRUE(planning::parse_bind_to("l3", request).ok());
  auto plan = plan_of(machine_of(large), request);
  EXPECT_EQ(cpus_of(plan), (Texts{"0-15", "32-47"}));
  EXPECT_EQ(plan.bindings[1].text, "L3 4-5 (cpus 32-47), node 2");
  for (const auto& binding : plan.bindings)
    EXPECT_EQ((binding.home & binding.cpus).count(), binding.home.count());
}

TEST(plan, more_ranks_per_domain_than_it_has_cores_are_not_pinned_twice) {
  auto request = ranks(8);
  ASSERT_TRUE(planning::parse_map_by("ppr:8:numa", request).ok());
  auto plan = plan_of(machine_of("package:2 numa:1 core:4 pu:1"), request);
  EXPECT_EQ(plan.bindings[0].cpus.text(), "0-3");
  EXPECT_EQ(plan.bindings[7].cpus.text(), "0-3");
  // If ranks are bound to hardware threads and there are enough of these, each rank has its own.
  auto machine = machine_of("package:2 numa:1 core:4 pu:2");
  EXPECT_EQ(cpus_of(plan_of(machine, request)), Texts(8, "0-7"));
  ASSERT_TRUE(planning::parse_bind_to("hwthread", request).ok());
  auto plans = cpus_of(plan_of(machine, request));
  EXPECT_EQ(std::set<std::string>(plans.begin(), plans.end()),
            (std::set<std::string>{"0", "1", "2", "3", "4", "5", "6", "7"}));
}

TEST(plan, ranks_stay_near_their_nic_when_no_node_holds_one) {
  auto machine = machine_of("package:2 numa:2 core:3 pu:1");
  machine.distances = {10, 16, 22, 16, 16, 10, 16, 22, 22, 16, 10, 16, 16, 22, 16, 10};
  topo::Device nic;
  nic.name = "mlx5_0";
  nic.near.add_range(9, 11);
  machine.devices = {nic};
  auto request = ranks(1);
  ASSERT_TRUE(planning::parse_map_by("nic:PE=4", request).ok());
  EXPECT_EQ(cpus_of(plan_of(machine, request)), (Texts{"0,9-11"}));
  request.threads = 2;
  request.ranks = 5; // one more than fit
  EXPECT_EQ(cpus_of(plan_of(machine, request)), (Texts{"9-10", "0-1", "6-7", "3-4", "2,11"}));
}

TEST(plan, ranks_that_a_file_puts_on_one_core_cause_a_remark) {
  auto request = ranks(2);
  ASSERT_TRUE(planning::parse_rankfile("rank 0=+n0 slot=1\nrank 1=+n0 slot=0-1\n", "places", request).ok());
  auto plan = plan_of(machine_of(small), request);
  EXPECT_NE(plan.notes.front().find("share a core as asked for"), std::string::npos);
  request = ranks(2);
  ASSERT_TRUE(planning::parse_rankfile("rank 0=+n0 slot=1\nrank 1=+n0 slot=0\n", "places", request).ok());
  EXPECT_TRUE(plan_of(machine_of(small), request).notes.front().starts_with("order: "));
}

TEST(plan, two_ranks_with_threads_are_spread) {
  auto request = ranks(2);
  request.threads = 4;
  EXPECT_EQ(nodes_of(plan_of(machine_of(large), request)), (Numbers{0, 2}));
}

TEST(plan, cores_that_share_an_l2_are_taken_one_each_first) {
  auto plan = plan_of(machine_of("package:1 numa:1 l2:4 core:2 pu:1"), ranks(4));
  EXPECT_EQ(cpus_of(plan), (Texts{"0", "2", "4", "6"}));
}

TEST(plan, ranks_on_hardware_threads_leave_no_core_idle) {
  auto machine = machine_of(large);
  for (unsigned count = 33; count <= 64; ++count) {
    os::CpuSet cores;
    for (const auto& binding : plan_of(machine, ranks(count)).bindings)
      for (const auto& core : machine.cores)
        if (!(core.cpus & binding.cpus).empty()) cores.add(core.index);
    EXPECT_EQ(cores.count(), 32u) << count;
  }
}

TEST(plan, threads_wider_than_a_cache_still_get_cores) {
  auto request = ranks(4);
  request.threads = 7;
  auto plan = plan_of(machine_of(large), request);
  for (const auto& binding : plan.bindings) EXPECT_EQ(binding.cpus.count(), 14u);
}

TEST(plan, more_threads_than_the_machine_has_take_all_of_it) {
  auto request = ranks(1);
  request.threads = 100;
  EXPECT_TRUE(plan_of(machine_of(small), request).oversubscribed);
}

TEST(plan, ranks_are_given_to_domains_round_robin) {
  auto request = ranks(5);
  ASSERT_TRUE(planning::parse_map_by("numa", request).ok());
  EXPECT_EQ(nodes_of(plan_of(machine_of(large), request)), (Numbers{0, 1, 2, 3, 0}));
}

TEST(plan, ppr_fills_domains) {
  auto request = ranks(6);
  ASSERT_TRUE(planning::parse_map_by("ppr:2:l3", request).ok());
  EXPECT_EQ(nodes_of(plan_of(machine_of(large), request)), (Numbers{0, 0, 0, 0, 1, 1}));
  request.ranks = 17;
  planning::Plan plan;
  auto machine = machine_of(large);
  EXPECT_TRUE(planning::make_plan(machine, all_of(machine), request, plan).is(base::Code::limit));
}

planning::Request mapped_by(unsigned count, const std::string& how) {
  auto request = ranks(count);
  EXPECT_TRUE(planning::parse_map_by(how, request).ok()) << base::failure_text();
  return request;
}

TEST(plan, ranks_that_are_mapped_by_a_domain_are_bound_to_all_of_it) {
  auto machine = machine_of(large);
  EXPECT_EQ(cpus_of(plan_of(machine, mapped_by(2, "package"))), (Texts{"0-31", "32-63"}));
  EXPECT_EQ(cpus_of(plan_of(machine, mapped_by(4, "package"))), (Texts{"0-31", "32-63", "0-31", "32-63"}));
  EXPECT_EQ(cpus_of(plan_of(machine, mapped_by(4, "ppr:2:socket"))),
            (Texts{"0-31", "0-31", "32-63", "32-63"}));
  EXPECT_EQ(cpus_of(plan_of(machine, mapped_by(2, "numa"))), (Texts{"0-15", "16-31"}));
  EXPECT_EQ(cpus_of(plan_of(machine, mapped_by(2, "l3cache"))), (Texts{"0-7", "8-15"}));
  EXPECT_EQ(cpus_of(plan_of(machine_of("package:2 numa:1 core:8 pu:1"), mapped_by(2, "ppr:1:package"))),
            (Texts{"0-7", "8-15"}));
}

TEST(plan, ranks_that_are_mapped_otherwise_are_bound_to_cores) {
  auto machine = machine_of(large);
  for (const char* how : {"core", "slot", "node", "ppr:1:core", "ppr:2:node"})
    for (const auto& binding : plan_of(machine, mapped_by(2, how)).bindings)
      EXPECT_EQ(binding.cpus.count(), 2u) << how;
  for (const auto& binding : plan_of(machine, mapped_by(2, "hwthread")).bindings)
    EXPECT_EQ(binding.cpus.count(), 1u);
}

TEST(plan, a_number_of_cores_or_a_binding_overrides_the_domain_of_the_mapping) {
  auto machine = machine_of(large);
  EXPECT_EQ(cpus_of(plan_of(machine, mapped_by(2, "package:PE=2"))), (Texts{"0-3", "32-35"}));
  auto request = mapped_by(2, "package");
  ASSERT_TRUE(planning::parse_bind_to("core", request).ok());
  EXPECT_EQ(cpus_of(plan_of(machine, request)), (Texts{"0-1", "32-33"}));
}

TEST(plan, a_rank_that_is_alone_in_its_domain_holds_all_of_it) {
  auto machine = machine_of(large);
  auto plan = plan_of(machine, mapped_by(3, "package"));
  EXPECT_EQ(plan.bindings[0].home.text(), "0-1"); // shares its package with rank 2
  EXPECT_EQ(plan.bindings[1].home.text(), "32-63");
  EXPECT_EQ(plan.bindings[2].home.text(), "16-17");
  // OpenMP would pin the first thread, and with it the threads that this one starts.
  EXPECT_EQ(planning::openmp_places(machine, plan.bindings[1]), "");
  // If the number of threads is given, the remaining cores are free for other jobs.
  auto request = mapped_by(2, "package");
  request.expected_threads = 2;
  request.expected_by = "OMP_NUM_THREADS=2";
  plan = plan_of(machine, request);
  EXPECT_EQ(cpus_of(plan), (Texts{"0-31", "32-63"}));
  EXPECT_EQ(plan.bindings[1].home.text(), "32-35");
  EXPECT_EQ(planning::openmp_places(machine, plan.bindings[1]), "{32,33},{34,35}");
}

TEST(plan, the_only_rank_of_a_job_may_use_its_node_but_holds_one_core) {
  auto machine = machine_of(large);
  auto only = ranks(1);
  only.only_rank = true;
  auto plan = plan_of(machine, only);
  EXPECT_EQ(plan.bindings[0].cpus.text(), "0-15");
  EXPECT_EQ(plan.bindings[0].home.text(), "0-1"); // another job begins on the next core
  EXPECT_EQ(planning::openmp_places(machine, plan.bindings[0]), "");
  EXPECT_EQ(cpus_of(plan_of(machine, ranks(1))), (Texts{"0-1"})); // of a job with ranks on other machines

  auto threaded = only;
  threaded.expected_threads = 2;
  threaded.expected_by = "OMP_NUM_THREADS=2";
  EXPECT_EQ(cpus_of(plan_of(machine, threaded)), (Texts{"0-3"}));
  auto bound = only;
  ASSERT_TRUE(planning::parse_bind_to("core", bound).ok());
  EXPECT_EQ(cpus_of(plan_of(machine, bound)), (Texts{"0-1"}));
  auto mapped = only;
  ASSERT_TRUE(planning::parse_map_by("core", mapped).ok());
  EXPECT_EQ(cpus_of(plan_of(machine, mapped)), (Texts{"0-1"}));
}

TEST(plan, ranks_that_crowd_their_domains_are_bound_no_narrower) {
  EXPECT_EQ(cpus_of(plan_of(machine_of(large), mapped_by(65, "package")))[1], "32-63");
  EXPECT_EQ(cpus_of(plan_of(machine_of(large), mapped_by(65, "l3")))[1], "0-15");
  EXPECT_EQ(cpus_of(plan_of(machine_of(small), mapped_by(3, "package"))), (Texts{"", "", ""}));
}

TEST(plan, binding_is_widened_on_request) {
  auto request = ranks(2);
  ASSERT_TRUE(planning::parse_bind_to("l3", request).ok());
  EXPECT_EQ(cpus_of(plan_of(machine_of(large), request)), (Texts{"0-7", "8-15"}));
  ASSERT_TRUE(planning::parse_bind_to("socket", request).ok());
  EXPECT_EQ(cpus_of(plan_of(machine_of(large), request)), (Texts{"0-31", "32-63"}));
  ASSERT_TRUE(planning::parse_map_by("core", request).ok());
  EXPECT_EQ(cpus_of(plan_of(machine_of(large), request)), (Texts{"0-31", "0-31"}));
  request.order = planning::Order::automatic;
  ASSERT_TRUE(planning::parse_bind_to("none", request).ok());
  EXPECT_TRUE(plan_of(machine_of(large), request).bindings[0].cpus.empty());
  ASSERT_TRUE(planning::parse_bind_to("hwthread", request).ok());
  EXPECT_EQ(cpus_of(plan_of(machine_of(large), request)), (Texts{"0", "1"}));
}

TEST(plan, only_allowed_processors_are_used) {
  auto machine = machine_of(large);
  os::CpuSet allowed;
  allowed.add_range(17, 22);
  planning::Plan plan;
  ASSERT_TRUE(planning::make_plan(machine, topo::count_slots(allowed, {}), ranks(3), plan).ok());
  for (const auto& binding : plan.bindings) EXPECT_EQ((binding.cpus & allowed).count(), binding.cpus.count());
  os::CpuSet elsewhere;
  elsewhere.add(1000);
  EXPECT_TRUE(
      planning::make_plan(machine, topo::count_slots(elsewhere, {}), ranks(1), plan).is(base::Code::limit));
}

TEST(plan, the_text_says_everything) {
  auto machine = machine_of(small);
  auto plan = plan_of(machine, ranks(2));
  EXPECT_EQ(planning::head_text(machine, all_of(machine), plan) + planning::bindings_text(plan),
            "machine: 1 package, 1 NUMA node, 1 L3 cache, 2 cores, 2 processors\n"
            "slots: 2 (affinity mask 2)\n"
            "order: neighbouring cores\n"
            "bound to: core\n"
            "rank 0: core 0 (cpu 0), node 0\n"
            "rank 1: core 1 (cpu 1), node 0\n");
}

TEST(drawing, a_rank_stands_on_each_of_its_cores) {
  auto machine = machine_of("package:2 numa:1(memory=4GiB) l3:2 core:2 pu:1");
  auto request = ranks(2);
  request.threads = 2;
  topo::Slots slots = all_of(machine);
  slots.allowed.remove(7);
  planning::Plan plan;
  ASSERT_TRUE(planning::make_plan(machine, slots, request, plan).ok());
  EXPECT_EQ(planning::draw_text(machine, slots, plan), "package 0  node 0  4 GiB | 0 0 | . . |\n"
                                                       "package 1  node 1  4 GiB | 1 1 | . - |\n");
  auto image = planning::draw_svg(machine, slots, plan);
  std::size_t drawn = 0;
  for (std::size_t at = 0; (at = image.find("class=\"rank\"", at)) != std::string::npos; ++at) ++drawn;
  EXPECT_EQ(drawn, 4u);
  EXPECT_TRUE(image.starts_with("<svg ") && image.ends_with("</svg>\n"));
}

TEST(drawing, nodes_that_may_not_be_used_are_not_called_free) {
  auto machine = machine_of("package:8 numa:1 core:2 pu:1");
  topo::Slots slots = all_of(machine);
  slots.allowed = {};
  slots.allowed.add_range(0, 7);
  planning::Plan plan;
  ASSERT_TRUE(planning::make_plan(machine, slots, ranks(1), plan).ok());
  EXPECT_EQ(planning::draw_text(machine, slots, plan),
            "package 0  node 0  1 GiB | 0 . |\n"
            "package 1, node 1 to package 3, node 3: free\n"
            "package 4, node 4 to package 7, node 7: not allowed\n");
}

TEST(drawing, ranks_that_are_not_bound_are_not_drawn) {
  auto machine = machine_of(small);
  auto plan = plan_of(machine, ranks(8));
  EXPECT_EQ(planning::draw_text(machine, all_of(machine), plan), "");
}

TEST(plan, a_wrong_word_is_answered_with_the_nearest) {
  planning::Request request;
  EXPECT_TRUE(planning::parse_bind_to("croe", request).is(base::Code::invalid));
  EXPECT_NE(base::failure_text().find("did you mean core?"), std::string::npos);
  EXPECT_TRUE(planning::parse_map_by("numma", request).is(base::Code::invalid));
  EXPECT_NE(base::failure_text().find("did you mean numa?"), std::string::npos);
  EXPECT_FALSE(planning::parse_map_by("ppr:0:numa", request).ok());
  EXPECT_FALSE(planning::parse_map_by("core:PE=x", request).ok());
  EXPECT_FALSE(planning::parse_map_by("core:wide", request).ok());
}

TEST(plan, two_orders_contradict_each_other) {
  const char* file = "rank 0=+n0 slot=0\n";
  planning::Request request;
  ASSERT_TRUE(planning::parse_rankfile(file, "places", request).ok());
  EXPECT_TRUE(planning::parse_map_by("numa", request).is(base::Code::invalid));
  EXPECT_NE(base::failure_text().find("places"), std::string::npos);
  EXPECT_TRUE(planning::parse_map_by(":OVERSUBSCRIBE", request).ok());
  request = {};
  ASSERT_TRUE(planning::parse_map_by("numa", request).ok());
  EXPECT_TRUE(planning::parse_rankfile(file, "places", request).is(base::Code::invalid));
}

TEST(plan, mpichs_width_is_understood) {
  auto request = ranks(2);
  ASSERT_TRUE(planning::parse_bind_to("core:3", request).ok());
  EXPECT_EQ(cpus_of(plan_of(machine_of(large), request)), (Texts{"0-5", "32-37"}));
}

TEST(plan, what_follows_a_binding_is_understood_or_refused) {
  planning::Request request;
  EXPECT_TRUE(planning::parse_bind_to("core:overload-allowed", request).ok());
  EXPECT_TRUE(planning::parse_bind_to("numa:if-supported", request).ok());
  EXPECT_FALSE(request.threads_chosen);
  request = {};
  for (const char* wrong : {"core:4x", "core:0", "core:wide", "core:", "numa:2"}) {
    EXPECT_TRUE(planning::parse_bind_to(wrong, request).is(base::Code::invalid)) << wrong;
    EXPECT_EQ(request.threads, 1u);
    EXPECT_FALSE(request.bind_chosen);
  }
}

TEST(plan, the_name_of_a_nic_keeps_its_capital_letters) {
  planning::Request request;
  ASSERT_TRUE(planning::parse_map_by("NIC=enP2p1s0:PE=2", request).ok());
  EXPECT_EQ(request.nic, "enP2p1s0");
}

TEST(plan, the_whole_machine_is_a_domain_too) {
  auto request = ranks(3);
  ASSERT_TRUE(planning::parse_map_by("ppr:3:node", request).ok());
  ASSERT_TRUE(planning::parse_bind_to("node", request).ok());
  auto plan = plan_of(machine_of(large), request);
  EXPECT_EQ(plan.bindings[2].cpus.text(), "0-63");
  EXPECT_EQ(plan.bindings[2].text, "the machine (cpus 0-63)");
}

TEST(plan, open_mpis_modifiers_are_understood) {
  planning::Request request;
  ASSERT_TRUE(planning::parse_map_by("socket:PE=2,OVERSUBSCRIBE", request).ok()) << base::failure_text();
  EXPECT_EQ(request.threads, 2u);
  EXPECT_EQ(request.domain, Level::package);
  ASSERT_TRUE(planning::parse_map_by(":OVERSUBSCRIBE", request).ok()) << base::failure_text();
}

} // namespace
