// Intercommunicators between the even and the odd ranks: messages, dup, idup, split, create, merge.
#include "machines_of_ranks.h"

static int rank, size;

static void greet(MPI_Comm inter, int expected_remote) {
  int own, local, remote, inter_flag, from = -1;
  OK(MPI_Comm_test_inter(inter, &inter_flag));
  OK(MPI_Comm_rank(inter, &own));
  OK(MPI_Comm_size(inter, &local));
  OK(MPI_Comm_remote_size(inter, &remote));
  CHECK(inter_flag && remote == expected_remote);
  // Each process sends its world rank to all processes of the other group.
  MPI_Request requests[64];
  for (int r = 0; r < remote; ++r) OK(MPI_Isend(&rank, 1, MPI_INT, r, 4, inter, &requests[r]));
  MPI_Group group, world;
  OK(MPI_Comm_remote_group(inter, &group));
  OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
  for (int r = 0; r < remote; ++r) {
    int expected;
    OK(MPI_Recv(&from, 1, MPI_INT, r, 4, inter, MPI_STATUS_IGNORE));
    OK(MPI_Group_translate_ranks(group, 1, &r, world, &expected));
    CHECK(from == expected);
  }
  OK(MPI_Waitall(remote, requests, MPI_STATUSES_IGNORE));
  OK(MPI_Group_free(&group));
  OK(MPI_Group_free(&world));
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  int value, result;
  FAILS(MPI_ERR_COMM, MPI_Comm_remote_size(MPI_COMM_WORLD, &value));
  if (size == 1) {
    OK(MPI_Finalize());
    return 0;
  }
  const int odd = rank % 2, odds = size / 2, evens = size - odds;
  const int others = odd ? evens : odds, ours = odd ? odds : evens;
  MPI_Comm local, inter, copy, again, merged;
  OK(MPI_Comm_split(MPI_COMM_WORLD, odd, rank, &local));
  // The leaders are the last even and the first odd rank; only they pass a valid peer_comm.
  const int leader = odd ? 0 : evens - 1, leads = odd ? rank == 1 : rank == 2 * (evens - 1);
  OK(MPI_Intercomm_create(local, leader, leads ? MPI_COMM_WORLD : MPI_COMM_NULL, odd ? 2 * (evens - 1) : 1,
                          12, &inter));
  greet(inter, others);
  OK(MPI_Comm_compare(inter, inter, &result));
  CHECK(result == MPI_IDENT);
  OK(MPI_Comm_dup(inter, &copy));
  OK(MPI_Comm_compare(inter, copy, &result));
  CHECK(result == MPI_CONGRUENT);
  MPI_Request request;
  OK(MPI_Comm_idup(copy, &again, &request));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  greet(copy, others);
  greet(again, others);
  OK(MPI_Comm_free(&copy));

  for (int odd_is_high = 0; odd_is_high < 2; ++odd_is_high) {
    int own, all, sum = 0;
    OK(MPI_Intercomm_merge(again, odd == odd_is_high, &merged));
    OK(MPI_Comm_rank(merged, &own));
    OK(MPI_Comm_size(merged, &all));
    CHECK(all == size);
    CHECK(own == rank / 2 + (odd == odd_is_high ? others : 0));
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, merged));
    CHECK(sum == size * (size - 1) / 2);
    OK(MPI_Comm_free(&merged));
  }
  OK(MPI_Intercomm_merge(again, 0, &merged));
  OK(MPI_Comm_size(merged, &value));
  CHECK(value == size);
  OK(MPI_Comm_free(&merged));
  OK(MPI_Comm_free(&again));

  // Colour 0: the first process of each group. Colour 1: the rest, which may be empty on the odd side.
  OK(MPI_Comm_split(inter, rank / 2 == 0 ? 0 : 1, -rank, &copy));
  if (rank / 2 == 0) {
    greet(copy, 1);
    OK(MPI_Comm_free(&copy));
  } else if (others > 1) {
    greet(copy, others - 1);
    OK(MPI_Comm_free(&copy));
  } else {
    CHECK(copy == MPI_COMM_NULL);
  }
  const int here = count_on_this_machine(0, 1), others_here = count_on_this_machine(1 - odd, 2);
  const int types[] = {MPI_COMM_TYPE_SHARED, MPI_COMM_TYPE_HW_UNGUIDED};
  for (int i = 0; i < 2; ++i) {
    OK(MPI_Comm_split_type(inter, types[i], 0, MPI_INFO_NULL, &copy));
    // Unguided, only parts that are smaller than the communicator count: machines, if there are several.
    if (others_here > 0 && (i == 0 || here < size)) {
      greet(copy, others_here);
      OK(MPI_Comm_free(&copy));
    } else {
      CHECK(copy == MPI_COMM_NULL);
    }
  }
  MPI_Group group, last;
  int last_rank = ours - 1;
  OK(MPI_Comm_group(inter, &group));
  OK(MPI_Group_incl(group, 1, &last_rank, &last));
  OK(MPI_Comm_create(inter, last, &copy));
  if (rank / 2 == last_rank) {
    greet(copy, 1);
    OK(MPI_Comm_free(&copy));
  } else {
    CHECK(copy == MPI_COMM_NULL);
  }
  OK(MPI_Group_free(&last));
  OK(MPI_Group_free(&group));

  // From groups only, twice with the same tag; the remote group is significant at the leaders only.
  MPI_Group own_group, remote_group;
  OK(MPI_Comm_group(inter, &own_group));
  OK(MPI_Comm_remote_group(inter, &remote_group));
  int in_group;
  OK(MPI_Group_rank(own_group, &in_group));
  for (int round = 0; round < 2; ++round) {
    OK(MPI_Intercomm_create_from_groups(own_group, 0, in_group == 0 ? remote_group : MPI_GROUP_NULL, 0,
                                        "meeting", MPI_INFO_NULL, MPI_ERRORS_RETURN, &copy));
    greet(copy, others);
    OK(MPI_Comm_create_from_group(own_group, "meeting", MPI_INFO_NULL, MPI_ERRORS_RETURN, &merged));
    OK(MPI_Comm_compare(merged, local, &result));
    CHECK(result == MPI_CONGRUENT);
    OK(MPI_Barrier(merged));
    OK(MPI_Comm_free(&merged));
    OK(MPI_Comm_free(&copy));
  }
  FAILS(MPI_ERR_GROUP,
        MPI_Comm_create_from_group(remote_group, "x", MPI_INFO_NULL, MPI_ERRORS_RETURN, &copy));
  OK(MPI_Group_free(&remote_group));
  OK(MPI_Group_free(&own_group));
  OK(MPI_Comm_free(&inter));
  OK(MPI_Comm_free(&local));
  OK(MPI_Finalize());
  return 0;
}
