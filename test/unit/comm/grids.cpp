// The parts of communicator creation that need no other process: dimensions, coordinates, comparison, hints.
#include "comm/comm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

namespace {

using namespace near;
using Dims = std::vector<int>;

Dims chosen(int processes, Dims dims) {
  EXPECT_TRUE(comm::choose_dims(processes, dims).ok());
  return dims;
}

int refused(int processes, Dims dims) { return comm::choose_dims(processes, dims).code(); }

TEST(ChooseDims, gives_the_examples_of_the_standard) {
  EXPECT_EQ(chosen(6, {0, 0}), (Dims{3, 2}));
  EXPECT_EQ(chosen(7, {0, 0}), (Dims{7, 1}));
  EXPECT_EQ(chosen(6, {0, 3, 0}), (Dims{2, 3, 1}));
  EXPECT_EQ(refused(7, {0, 3, 0}), MPI_ERR_DIMS);
}

TEST(ChooseDims, keeps_the_extents_close_together) {
  EXPECT_EQ(chosen(12, {0, 0}), (Dims{4, 3}));
  EXPECT_EQ(chosen(16, {0, 0, 0}), (Dims{4, 2, 2}));
  EXPECT_EQ(chosen(36, {0, 0, 0}), (Dims{4, 3, 3}));
  EXPECT_EQ(chosen(60, {0, 0, 0}), (Dims{5, 4, 3}));
  EXPECT_EQ(chosen(1, {0, 0, 0}), (Dims{1, 1, 1}));
  EXPECT_EQ(chosen(2147483647, {0, 0}), (Dims{2147483647, 1}));
  EXPECT_EQ(chosen(1 << 30, {0, 0, 0}), (Dims{1024, 1024, 1024}));
  EXPECT_EQ(chosen(720720, {0, 0, 0, 0, 0, 0}).front(), 13);
}

TEST(ChooseDims, minimises_the_difference_and_not_the_largest_extent) {
  EXPECT_EQ(chosen(34425, {0, 0, 0}), (Dims{51, 27, 25}));
  EXPECT_EQ(chosen(34425 * 7, {0, 7, 0, 0}), (Dims{51, 7, 27, 25}));
}

/// Calls visit() for every product of `dimensions` non-increasing factors that equals `number`.
template <class F>
void each_factorisation(int number, int bound, std::size_t dimensions, Dims& factors, F visit) {
  if (dimensions == 0) {
    if (number == 1) visit(factors);
    return;
  }
  for (int factor = 1; factor <= std::min(number, bound); ++factor) {
    if (number % factor != 0) continue;
    factors.push_back(factor);
    each_factorisation(number / factor, factor, dimensions - 1, factors, visit);
    factors.pop_back();
  }
}

Dims by_exhaustive_search(int processes, std::size_t dimensions) {
  Dims best, factors;
  auto rank = [](const Dims& dims) { return std::pair(dims.front() - dims.back(), dims); };
  each_factorisation(processes, processes, dimensions, factors, [&](const Dims& dims) {
    if (best.empty() || rank(dims) < rank(best)) best = dims;
  });
  return best;
}

TEST(ChooseDims, agrees_with_exhaustive_search) {
  for (std::size_t dimensions = 1; dimensions <= 6; ++dimensions)
    for (int processes = 1; processes <= 600; ++processes)
      EXPECT_EQ(chosen(processes, Dims(dimensions, 0)), by_exhaustive_search(processes, dimensions))
          << processes;
  for (int processes : {1260, 1440, 1680, 2520, 5040, 7560, 9216, 10010, 34425})
    for (std::size_t dimensions = 2; dimensions <= 5; ++dimensions)
      EXPECT_EQ(chosen(processes, Dims(dimensions, 0)), by_exhaustive_search(processes, dimensions))
          << processes;
}

TEST(ChooseDims, keeps_the_extents_that_are_given) {
  for (int given : {1, 2, 3, 4, 6, 12})
    for (int rest = 1; rest <= 100; ++rest) {
      Dims open = by_exhaustive_search(rest, 3);
      EXPECT_EQ(chosen(given * rest, {0, 0, given, 0}), (Dims{open[0], open[1], given, open[2]}));
    }
}

TEST(ChooseDims, finds_an_answer_for_numbers_with_the_most_divisors) {
  for (int processes : {735134400, 2095133040, 2147483646, 2147483647, 1 << 30})
    for (std::size_t dimensions : {1, 2, 3, 4, 6, 9, 40}) {
      Dims dims = chosen(processes, Dims(dimensions, 0));
      EXPECT_TRUE(std::is_sorted(dims.rbegin(), dims.rend()));
      std::int64_t product = 1;
      for (int extent : dims) product *= extent;
      EXPECT_EQ(product, processes);
    }
}

TEST(ChooseDims, refuses_what_cannot_be) {
  EXPECT_EQ(refused(0, {0, 0}), MPI_ERR_ARG);
  EXPECT_EQ(refused(6, {-1, 0}), MPI_ERR_DIMS);
  EXPECT_EQ(refused(6, {4, 0}), MPI_ERR_DIMS);
  EXPECT_EQ(refused(6, {3, 1}), MPI_ERR_DIMS);
  EXPECT_EQ(refused(6, {3, 2}), MPI_SUCCESS);
  EXPECT_EQ(refused(6, {}), MPI_SUCCESS);
}

TEST(Grids, ranks_are_row_major_and_periodic_dimensions_wrap) {
  object::Topology grid;
  grid.dims = {2, 3, 4};
  grid.periods = {0, 1, 0};
  Dims coords(3);
  for (int rank = 0; rank < 24; ++rank) {
    comm::coords_of(grid, rank, coords);
    EXPECT_EQ(coords, (Dims{rank / 12, rank / 4 % 3, rank % 4}));
    EXPECT_EQ(comm::rank_at(grid, coords), rank);
  }
  EXPECT_EQ(comm::rank_at(grid, Dims{1, -1, 2}), 12 + 8 + 2);
  EXPECT_EQ(comm::rank_at(grid, Dims{1, 7, 2}), 12 + 4 + 2);
  EXPECT_EQ(comm::rank_at(grid, Dims{2, 0, 0}), MPI_PROC_NULL);
  EXPECT_EQ(comm::rank_at(grid, Dims{0, 0, -1}), MPI_PROC_NULL);
}

object::Group* some(std::initializer_list<std::uint32_t> ranks) {
  std::vector<object::ProcessId> members;
  for (std::uint32_t rank : ranks) members.push_back({.rank = rank});
  return object::make_group(std::move(members));
}

struct Communicators : testing::Test {
  Communicators() {
    object::set_own_process({});
    EXPECT_TRUE(object::make_predefined_communicators(some({0, 1, 2})).ok());
  }
  ~Communicators() override { object::drop_predefined_communicators(); }
};

TEST_F(Communicators, are_compared_by_identity_then_by_groups) {
  using object::make_communicator, object::make_intercommunicator, object::new_context;
  auto& world = *object::world();
  auto* same = make_communicator(world, some({0, 1, 2}), new_context());
  auto* turned = make_communicator(world, some({0, 2, 1}), new_context());
  auto* part = make_communicator(world, some({0, 2}), new_context());
  auto* inter = make_intercommunicator(world, some({0}), some({1, 2}), new_context());
  auto* other = make_intercommunicator(world, some({0}), some({2, 1}), new_context());
  EXPECT_EQ(comm::compare(world, world), MPI_IDENT);
  EXPECT_EQ(comm::compare(world, *same), MPI_CONGRUENT);
  EXPECT_EQ(comm::compare(world, *turned), MPI_SIMILAR);
  EXPECT_EQ(comm::compare(world, *part), MPI_UNEQUAL);
  EXPECT_EQ(comm::compare(*object::self(), *inter), MPI_UNEQUAL);
  EXPECT_EQ(comm::compare(*inter, *other), MPI_SIMILAR);
  for (auto* made : {same, turned, part, inter, other}) object::release(made);
}

TEST_F(Communicators, know_some_hints_and_ignore_the_rest) {
  object::Info* info = object::make_info();
  info->set("mpi_assert_no_any_tag", "true");
  info->set("mpi_assert_exact_length", "perhaps");
  info->set("colour", "blue");
  auto& self = *object::self();
  ASSERT_TRUE(comm::apply_hints(self, *info).ok());
  object::Info* used = comm::hints_in_force(self);
  EXPECT_EQ(*used->find("mpi_assert_no_any_tag"), "true");
  EXPECT_EQ(*used->find("mpi_assert_exact_length"), "false");
  EXPECT_EQ(used->find("colour"), nullptr);
  object::release(info);
  object::release(used);
}

TEST_F(Communicators, the_two_groups_of_an_intercommunicator_get_contexts_of_their_own) {
  auto& world = *object::world();
  std::uint64_t context = object::new_context();
  auto* near_side = object::make_intercommunicator(world, some({0, 1}), some({2}), context);
  auto* far_side = object::make_intercommunicator(world, some({2}), some({0, 1}), context);
  std::uint64_t a = comm::local_communicator(*near_side)->context,
                b = comm::local_communicator(*far_side)->context;
  EXPECT_NE(a, b);
  EXPECT_NE(a, context);
  EXPECT_NE(b, context);
  EXPECT_EQ(comm::local_communicator(*near_side)->size, 2);
  object::release(near_side);
  object::release(far_side);
}

} // namespace
