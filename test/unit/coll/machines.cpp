// Collectives in two levels: the facts about machines, long broadcasts in chunks, and mistakes that the ranks of a machine find. The
// results of all algorithms are in the other files, by every_form().
#include "coll/shared/area.h"
#include "forms.h"
#include "rank_lists.h"
#include "topo/nearest.h"

#include <cstdint>
#include <vector>

namespace near::coll::test {
namespace {

using Numbers = std::vector<std::uint32_t>;

TEST(machines, are_numbered_by_their_lowest_ranks) {
  const Machines machines(Numbers{7, 7, 0, 3, 0, 7}, 4);
  EXPECT_EQ(machines.count(), 3);
  EXPECT_EQ(machines.own(), 1);
  EXPECT_EQ(machines.most_ranks(), 3);
  EXPECT_EQ(members(machines.ranks_of(0)), (std::vector<int>{0, 1, 5}));
  EXPECT_EQ(members(machines.ranks_of(1)), (std::vector<int>{2, 4}));
  EXPECT_EQ(members(machines.ranks_of(2)), (std::vector<int>{3}));
  EXPECT_EQ(machines.ranks_before(2), 5);
  EXPECT_FALSE(machines.in_order());
}

TEST(machines, are_in_order_if_their_ranks_follow_each_other) {
  EXPECT_TRUE(Machines(Numbers{5, 5, 1, 1, 1, 9}, 0).in_order());
  EXPECT_FALSE(Machines(Numbers{0, 1, 0, 1}, 0).in_order());
}

TEST(machines, are_equal_if_each_has_as_many_ranks) {
  EXPECT_TRUE(Machines(Numbers{4, 2, 4, 2}, 0).are_equal());
  EXPECT_FALSE(Machines(Numbers{4, 2, 4}, 0).are_equal());
}

TEST(machines, are_led_by_the_root_and_else_by_their_lowest_ranks) {
  const Machines machines(Numbers{7, 7, 0, 3, 0, 7}, 0);
  EXPECT_EQ(members(machines.leaders()), (std::vector<int>{0, 2, 3}));
  EXPECT_EQ(machines.leaders_with(4), (std::vector<int>{0, 4, 3}));
  EXPECT_EQ(machines.leaders_with(5), (std::vector<int>{5, 2, 3}));
}

TEST(machines, are_led_by_those_elected) {
  Machines machines(Numbers{7, 7, 0, 3, 0, 7}, 0);
  machines.set_leaders({1, 4, 3});
  EXPECT_EQ(members(machines.leaders()), (std::vector<int>{1, 4, 3}));
  EXPECT_EQ(machines.leaders_with(2), (std::vector<int>{1, 2, 3}));
}

TEST(machines, elect_the_lowest_of_the_ranks_nearest_to_the_nic) {
  using Distances = std::vector<std::uint32_t>;
  EXPECT_EQ(topo::nearest(Distances{20, 10, 10, 15}), 1);
  EXPECT_EQ(topo::nearest(Distances{10, 10}), 0);
  // 0: unknown, which counts as farther than anything known.
  EXPECT_EQ(topo::nearest(Distances{0, 0, 0}), 0);
  EXPECT_EQ(topo::nearest(Distances{0, 0, 40, 0}), 2);
}

TEST(machines, are_used_where_operations_allow_it) {
  make_types();
  Facts facts{
      .collective = Collective::allreduce, .bytes = 8, .size = 6, .machines = 3, .most_on_machine = 2};
  EXPECT_STREQ(choose(facts).name, "by_machine");
  facts.machines_in_order = false;
  EXPECT_STREQ(choose(facts).name, "by_machine");
  facts.commutative = false;
  EXPECT_STRNE(choose(facts).name, "by_machine");
  facts = {.collective = Collective::barrier, .size = 6};
  EXPECT_STRNE(choose(facts).name, "by_machine");
}

/// Chunks of 256 KiB, the last of which is shorter; data with gaps, which is packed first; one chunk less one byte.
TEST(machines, long_broadcasts_travel_in_chunks) {
  make_types();
  ASSERT_TRUE(configure("auto").ok());
  constexpr MPI_Count counts[] = {(MPI_Count{600} << 10) / 8, (MPI_Count{1} << 20) / 8 + 1,
                                  (MPI_Count{512} << 10) / 8 - 1};
  for (int size : {3, 4, 7})
    for (const Numbers& machine_of : distributions(size))
      for (std::size_t eager : {std::size_t{0}, everything})
        for (const Perform& perform : {Perform(blocking), Perform(nonblocking), Perform(persistent)}) {
          const Conditions conditions{.eager_bytes = eager, .machine_of = machine_of};
          run_ranks(size, conditions, [&](object::Communicator& c) {
            int number = 0;
            for (MPI_Count cells : counts)
              for (int root : roots(c.size)) {
                TestBuffer buffer(layout_at(++number, c.rank), cells);
                for (MPI_Count i = 0; i < cells && c.rank == root; ++i) buffer.set(i, cell(number, root, i));
                perform(broadcast_call(buffer.argument(), root), c);
                for (MPI_Count i = 0; i < cells; i += 61)
                  if (buffer.get(i) != cell(number, root, i)) FAIL() << "cell " << i << " of " << cells;
                if (buffer.get(cells - 1) != cell(number, root, cells - 1)) FAIL() << "the last of " << cells;
              }
          });
          ASSERT_FALSE(testing::Test::HasFailure()) << size << " ranks";
        }
}

/// The ranks 2 and 3 are on one machine: they compare what the program calls, not the phases of it.
TEST(machines, ranks_of_a_machine_find_that_they_make_different_calls) {
  make_types();
  ASSERT_TRUE(configure("auto").ok());
  const Conditions conditions{.eager_bytes = everything, .messages_remain = true, .machine_of = {0, 1, 2, 2}};
  run_ranks(4, conditions, [&](object::Communicator& c) {
    std::int32_t own = c.rank, sum = 0;
    datatype::Datatype& type = *datatype::find_predefined(MPI_INT32_T);
    if (c.rank < 2) return;
    const Call call = c.rank == 3 ? allreduce_call(&own, &sum, 1, type, *datatype::find_operation(MPI_SUM))
                                  : barrier_call();
    const object::Result result = run(call, c);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(object::error_class(result), MPI_ERR_OTHER);
    const std::string text(base::failure_text());
    EXPECT_NE(text.find("rank 2"), std::string::npos) << text;
    EXPECT_NE(text.find("barrier"), std::string::npos) << text;
    EXPECT_NE(text.find("rank 3"), std::string::npos) << text;
    EXPECT_NE(text.find("allreduce of 4 bytes (MPI_INT), MPI_SUM"), std::string::npos) << text;
    EXPECT_EQ(text.find("step"), std::string::npos) << text;
    EXPECT_EQ(text.find("MPI_BOR"), std::string::npos) << text;
  });
}

/// A rank of a machine that is lost was about to send something to the leader of this one, which has told the program of the loss.
TEST(machines, ranks_that_do_not_lead_do_not_wait_for_a_lost_machine) {
  make_types();
  ASSERT_TRUE(configure("auto").ok());
  const Conditions conditions{.eager_bytes = everything, .messages_remain = true, .machine_of = {0, 1, 1}};
  run_ranks(3, conditions, [&](object::Communicator& c) {
    if (c.rank == 0) return; // lost
    Area& area = *static_cast<AreaExtension&>(*c.extension).area;
    if (c.rank == 1) return area.rank_failed(0);
    const object::Result result = run(barrier_call(), c);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(object::error_class(result), MPI_ERR_PROC_ABORTED);
    EXPECT_NE(std::string(base::failure_text()).find("rank 0 of this communicator has failed"),
              std::string::npos);
  });
}

/// An error between two phases ends the calls of the other ranks of the machine, too.
TEST(machines, ranks_do_not_wait_for_the_phases_of_one_that_has_met_an_error) {
  make_types();
  ASSERT_TRUE(configure("auto").ok());
  const Conditions conditions{.eager_bytes = everything, .messages_remain = true, .machine_of = {0, 1, 1}};
  run_ranks(3, conditions, [&](object::Communicator& c) {
    if (c.rank == 0) return;
    Area& area = *static_cast<AreaExtension&>(*c.extension).area;
    if (c.rank == 1) return area.give_up(describe(barrier_call(), 0));
    const object::Result result = run(barrier_call(), c);
    ASSERT_FALSE(result.ok());
    EXPECT_NE(
        std::string(base::failure_text()).find("rank 1 of this communicator has met an error in barrier"),
        std::string::npos);
  });
}

} // namespace
} // namespace near::coll::test
