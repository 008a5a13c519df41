// What of communicator creation needs no other process: dimensions, coordinates, comparison, hints.
#include "comm/comm.h"

#include <gtest/gtest.h>

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

TEST(ChooseDims, agrees_with_exhaustive_search_in_three_dimensions) {
  for (int processes = 1; processes <= 300; ++processes) {
    Dims best{processes, 1, 1};
    for (int a = 1; a <= processes; ++a)
      for (int b = 1; b <= a; ++b)
        if (processes % (a * b) == 0 && processes / (a * b) <= b)
          best = std::min(best, Dims{a, b, processes / (a * b)});
    EXPECT_EQ(chosen(processes, {0, 0, 0}), best);
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

object::Group* some(std::initializer_list<std::uint32_t> slots) {
  std::vector<object::Address> members;
  for (std::uint32_t slot : slots) members.push_back({.segment = 0, .endpoint = 0, .slot = slot});
  return object::make_group(std::move(members));
}

struct Communicators : testing::Test {
  Communicators() {
    object::set_own_address({});
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
