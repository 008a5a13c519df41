// Group operations on the group of MPI_COMM_WORLD, for every size; wrong arguments raise the standard's
// classes.
#include "check.h"

static void check_order(MPI_Group group, int n, const int* world_ranks, MPI_Group world) {
  int size;
  OK(MPI_Group_size(group, &size));
  CHECK(size == n);
  for (int i = 0; i < n; ++i) {
    int there = -1;
    OK(MPI_Group_translate_ranks(group, 1, &i, world, &there));
    CHECK(there == world_ranks[i]);
  }
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  int rank, size, result;
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  MPI_Group world, again;
  OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
  OK(MPI_Comm_group(MPI_COMM_WORLD, &again));
  OK(MPI_Group_compare(world, again, &result));
  CHECK(result == MPI_IDENT);
  OK(MPI_Group_free(&again));
  CHECK(again == MPI_GROUP_NULL);
  int own;
  OK(MPI_Group_rank(world, &own));
  CHECK(own == rank);

  // Even and odd ranks, forwards and backwards.
  int evens[64], backwards[64], even_count = 0;
  for (int r = 0; r < size; r += 2) evens[even_count++] = r;
  for (int r = 0; r < size; ++r) backwards[r] = size - 1 - r;
  MPI_Group even, odd, reversed, all, none, both;
  OK(MPI_Group_incl(world, even_count, evens, &even));
  OK(MPI_Group_excl(world, even_count, evens, &odd));
  OK(MPI_Group_incl(world, size, backwards, &reversed));
  check_order(even, even_count, evens, world);
  check_order(reversed, size, backwards, world);
  OK(MPI_Group_compare(world, reversed, &result));
  CHECK(result == (size == 1 ? MPI_IDENT : MPI_SIMILAR));
  OK(MPI_Group_compare(even, world, &result));
  CHECK(result == (size == 1 ? MPI_IDENT : MPI_UNEQUAL));
  OK(MPI_Group_union(even, odd, &all));
  OK(MPI_Group_compare(all, world, &result));
  CHECK(result == (size <= 2 ? MPI_IDENT : MPI_SIMILAR));
  OK(MPI_Group_intersection(even, odd, &none));
  OK(MPI_Group_compare(none, MPI_GROUP_EMPTY, &result));
  CHECK(result == MPI_IDENT);
  OK(MPI_Group_difference(reversed, odd, &both));
  OK(MPI_Group_compare(both, even, &result));
  CHECK(result == (even_count == 1 ? MPI_IDENT : MPI_SIMILAR));
  OK(MPI_Group_rank(even, &own));
  CHECK(own == (rank % 2 == 0 ? rank / 2 : MPI_UNDEFINED));
  int ask[2] = {MPI_PROC_NULL, 0}, answer[2];
  OK(MPI_Group_translate_ranks(world, 2, ask, odd, answer));
  CHECK(answer[0] == MPI_PROC_NULL && answer[1] == MPI_UNDEFINED);

  // Ranges.
  int ranges[2][3] = {{0, size - 1, 2}, {size - 1, 0, -1}};
  MPI_Group by_range;
  OK(MPI_Group_range_incl(world, 1, ranges, &by_range));
  OK(MPI_Group_compare(by_range, even, &result));
  CHECK(result == MPI_IDENT);
  OK(MPI_Group_free(&by_range));
  OK(MPI_Group_range_incl(world, 1, &ranges[1], &by_range));
  OK(MPI_Group_compare(by_range, reversed, &result));
  CHECK(result == MPI_IDENT);
  OK(MPI_Group_free(&by_range));
  OK(MPI_Group_range_excl(world, 1, ranges, &by_range));
  OK(MPI_Group_compare(by_range, odd, &result));
  CHECK(result == MPI_IDENT);
  OK(MPI_Group_free(&by_range));

  // Wrong arguments.
  int twice[2] = {0, 0}, outside[1] = {size};
  int still[1][3] = {{0, 0, 0}}, beyond[1][3] = {{0, size, 1}};
  FAILS(MPI_ERR_RANK, MPI_Group_incl(world, 2, twice, &by_range));
  FAILS(MPI_ERR_RANK, MPI_Group_incl(world, 1, outside, &by_range));
  FAILS(MPI_ERR_RANK, MPI_Group_range_incl(world, 2, ranges, &by_range));
  FAILS(MPI_ERR_ARG, MPI_Group_range_incl(world, 1, still, &by_range));
  FAILS(MPI_ERR_RANK, MPI_Group_range_excl(world, 1, beyond, &by_range));
  FAILS(MPI_ERR_GROUP, MPI_Group_size(MPI_GROUP_NULL, &own));
  MPI_Group stale = both;
  OK(MPI_Group_free(&both));
  FAILS(MPI_ERR_GROUP, MPI_Group_size(stale, &own));
  FAILS(MPI_ERR_GROUP, MPI_Group_free(&stale));

  OK(MPI_Group_free(&none));
  OK(MPI_Group_free(&all));
  OK(MPI_Group_free(&reversed));
  OK(MPI_Group_free(&odd));
  OK(MPI_Group_free(&even));
  OK(MPI_Group_free(&world));
  OK(MPI_Finalize());
  return 0;
}
