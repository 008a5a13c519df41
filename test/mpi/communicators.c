// Communicators are made by every call, used, compared, named and freed; their messages do not mix.
#include "machines_of_ranks.h"

#include <string.h>

static int rank, size;

/// Passes a token round `comm` and checks its sum.
static void use(MPI_Comm comm) {
  int own, count, sum = 0;
  OK(MPI_Comm_rank(comm, &own));
  OK(MPI_Comm_size(comm, &count));
  OK(MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, comm));
  CHECK(sum == count * (count - 1) / 2);
  int from = -1;
  OK(MPI_Sendrecv(&own, 1, MPI_INT, (own + 1) % count, 3, &from, 1, MPI_INT, (own + count - 1) % count, 3,
                  comm, MPI_STATUS_IGNORE));
  CHECK(from == (own + count - 1) % count);
}

static void messages_stay_in_their_communicator(void) {
  MPI_Comm a, b;
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &a));
  OK(MPI_Comm_dup(a, &b));
  int right = (rank + 1) % size, left = (rank + size - 1) % size;
  int out[3] = {1, 2, 3}, in[3] = {0, 0, 0};
  MPI_Request requests[3];
  OK(MPI_Isend(&out[0], 1, MPI_INT, right, 7, MPI_COMM_WORLD, &requests[0]));
  OK(MPI_Isend(&out[1], 1, MPI_INT, right, 7, a, &requests[1]));
  OK(MPI_Isend(&out[2], 1, MPI_INT, right, 7, b, &requests[2]));
  OK(MPI_Recv(&in[2], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, b, MPI_STATUS_IGNORE));
  OK(MPI_Recv(&in[1], 1, MPI_INT, left, 7, a, MPI_STATUS_IGNORE));
  OK(MPI_Recv(&in[0], 1, MPI_INT, left, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  CHECK(in[0] == 1 && in[1] == 2 && in[2] == 3);
  OK(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
  OK(MPI_Comm_free(&a));
  OK(MPI_Comm_free(&b));
  CHECK(a == MPI_COMM_NULL);
}

static void a_communicator_may_be_freed_before_its_messages_arrived(void) {
  MPI_Comm comm;
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  int right = (rank + 1) % size, left = (rank + size - 1) % size, in = -1;
  MPI_Request requests[2];
  OK(MPI_Irecv(&in, 1, MPI_INT, left, 1, comm, &requests[0]));
  OK(MPI_Isend(&rank, 1, MPI_INT, right, 1, comm, &requests[1]));
  MPI_Comm stale = comm;
  OK(MPI_Comm_free(&comm));
  FAILS(MPI_ERR_COMM, MPI_Comm_free(&stale));
  OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
  CHECK(in == left);
}

static void splits(void) {
  MPI_Comm comm;
  int own, count, result;
  // Three colours; the keys reverse the ranks.
  OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 3, -rank, &comm));
  OK(MPI_Comm_rank(comm, &own));
  OK(MPI_Comm_size(comm, &count));
  CHECK(count == (size - rank % 3 + 2) / 3);
  CHECK(own == count - 1 - rank / 3);
  use(comm);
  OK(MPI_Comm_free(&comm));
  // Equal keys keep the old order; rank 0 does not take part.
  OK(MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? MPI_UNDEFINED : 5, 0, &comm));
  if (rank == 0) {
    CHECK(comm == MPI_COMM_NULL);
  } else {
    OK(MPI_Comm_rank(comm, &own));
    CHECK(own == rank - 1);
    use(comm);
    OK(MPI_Comm_free(&comm));
  }
  OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm));
  const int here = count_on_this_machine(0, 1), here_not_0 = count_on_this_machine(1, 1);
  const int above_here = count_on_this_machine(rank + 1, 1);
  OK(MPI_Comm_size(comm, &count));
  CHECK(count == here);
  OK(MPI_Comm_compare(comm, MPI_COMM_WORLD, &result));
  CHECK((result == MPI_CONGRUENT) == (here == size));
  use(comm);
  OK(MPI_Comm_free(&comm));
  OK(MPI_Comm_split_type(MPI_COMM_WORLD, rank == 0 ? MPI_UNDEFINED : MPI_COMM_TYPE_SHARED, -rank,
                         MPI_INFO_NULL, &comm));
  CHECK((comm == MPI_COMM_NULL) == (rank == 0));
  if (comm != MPI_COMM_NULL) {
    OK(MPI_Comm_rank(comm, &own));
    OK(MPI_Comm_size(comm, &count));
    CHECK(count == here_not_0);
    CHECK(own == above_here);
    use(comm);
    OK(MPI_Comm_free(&comm));
  }
  OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, 0, MPI_INFO_NULL, &comm));
  CHECK(comm == MPI_COMM_NULL);
  FAILS(MPI_ERR_ARG, MPI_Comm_split(MPI_COMM_WORLD, -7, 0, &comm));
}

static void creates(void) {
  MPI_Group world, part;
  MPI_Comm comm;
  OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
  int ranges[1][3] = {{size - 1, 0, -2}}, own, result;
  OK(MPI_Group_range_incl(world, 1, ranges, &part));
  OK(MPI_Group_rank(part, &own));
  OK(MPI_Comm_create(MPI_COMM_WORLD, part, &comm));
  CHECK((comm != MPI_COMM_NULL) == (own != MPI_UNDEFINED));
  if (comm != MPI_COMM_NULL) {
    MPI_Group group;
    OK(MPI_Comm_group(comm, &group));
    OK(MPI_Group_compare(group, part, &result));
    CHECK(result == MPI_IDENT);
    OK(MPI_Group_free(&group));
    use(comm);
    OK(MPI_Comm_free(&comm));
  }
  // Only the group takes part, several times and with two tags.
  for (int round = 0; own != MPI_UNDEFINED && round < 4; ++round) {
    MPI_Comm other;
    OK(MPI_Comm_create_group(MPI_COMM_WORLD, part, round % 2, &comm));
    OK(MPI_Comm_create_group(comm, part, 9, &other));
    OK(MPI_Comm_compare(comm, other, &result));
    CHECK(result == MPI_CONGRUENT);
    use(comm);
    use(other);
    OK(MPI_Comm_free(&other));
    OK(MPI_Comm_free(&comm));
  }
  OK(MPI_Comm_create(MPI_COMM_WORLD, MPI_GROUP_EMPTY, &comm));
  CHECK(comm == MPI_COMM_NULL);
  if (size > 1) { FAILS(MPI_ERR_GROUP, MPI_Comm_create(MPI_COMM_SELF, world, &comm)); }
  OK(MPI_Group_free(&part));
  OK(MPI_Group_free(&world));
}

static void names(void) {
  char name[MPI_MAX_OBJECT_NAME], longer[MPI_MAX_OBJECT_NAME + 20];
  int length;
  OK(MPI_Comm_get_name(MPI_COMM_WORLD, name, &length));
  CHECK(strcmp(name, "MPI_COMM_WORLD") == 0 && length == 14);
  OK(MPI_Comm_get_name(MPI_COMM_SELF, name, &length));
  CHECK(strcmp(name, "MPI_COMM_SELF") == 0);
  OK(MPI_Comm_get_name(MPI_COMM_NULL, name, &length));
  CHECK(strcmp(name, "MPI_COMM_NULL") == 0);
  MPI_Comm comm;
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  OK(MPI_Comm_get_name(comm, name, &length));
  CHECK(length == 0 && name[0] == '\0');
  memset(longer, 'x', sizeof longer - 1);
  longer[sizeof longer - 1] = '\0';
  OK(MPI_Comm_set_name(comm, longer));
  OK(MPI_Comm_get_name(comm, name, &length));
  CHECK(length == MPI_MAX_OBJECT_NAME - 1 && strlen(name) == (size_t)length);
  OK(MPI_Comm_free(&comm));
}

static void hints(void) {
  MPI_Info info, used;
  MPI_Comm with, copy, without;
  char value[64];
  int flag, length;
  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, "mpi_assert_no_any_source", "true"));
  OK(MPI_Info_set(info, "no such hint", "true"));
  OK(MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &with));
  OK(MPI_Comm_dup(with, &copy));
  OK(MPI_Comm_dup_with_info(with, MPI_INFO_NULL, &without));
  MPI_Comm comms[3] = {with, copy, without};
  for (int i = 0; i < 3; ++i) {
    OK(MPI_Comm_get_info(comms[i], &used));
    length = sizeof value;
    OK(MPI_Info_get_string(used, "mpi_assert_no_any_source", &length, value, &flag));
    CHECK(flag && strcmp(value, i < 2 ? "true" : "false") == 0);
    OK(MPI_Info_get_string(used, "no such hint", &length, value, &flag));
    CHECK(!flag);
    OK(MPI_Info_free(&used));
    OK(MPI_Comm_free(&comms[i]));
  }
  OK(MPI_Info_free(&info));
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  int result;
  OK(MPI_Comm_compare(MPI_COMM_WORLD, MPI_COMM_WORLD, &result));
  CHECK(result == MPI_IDENT);
  use(MPI_COMM_WORLD);
  use(MPI_COMM_SELF);
  messages_stay_in_their_communicator();
  a_communicator_may_be_freed_before_its_messages_arrived();
  splits();
  creates();
  names();
  hints();
  MPI_Comm world = MPI_COMM_WORLD;
  FAILS(MPI_ERR_COMM, MPI_Comm_free(&world));
  for (int i = 0; i < 300; ++i) {
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_disconnect(&comm));
  }
  OK(MPI_Finalize());
  return 0;
}
