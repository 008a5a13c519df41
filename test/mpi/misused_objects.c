// Makes one mistake, named by the argument, with a communicator, group, info object or key. The job ends with
// one readable line.
#include "check.h"

#include <string.h>

static int is(const char* wanted, const char* given) { return strcmp(wanted, given) == 0; }

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const char* mistake = argc > 1 ? argv[1] : "";
  int rank, size, value, grid_size[1], periods[1] = {0};
  MPI_Comm comm, copy;
  MPI_Group world, part;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_name(comm, "ocean");
  MPI_Comm_group(comm, &world);
  copy = comm;
  grid_size[0] = size + 1;
  if (is("free_twice", mistake)) {
    MPI_Comm_free(&comm);
    MPI_Comm_free(&copy);
  } else if (is("use_after_free", mistake)) {
    MPI_Comm_free(&comm);
    MPI_Barrier(copy);
  } else if (is("free_world", mistake)) {
    comm = MPI_COMM_WORLD;
    MPI_Comm_free(&comm);
  } else if (is("group_for_communicator", mistake)) {
    memcpy(&comm, &world, sizeof comm);
    MPI_Comm_size(comm, &value);
  } else if (is("no_grid", mistake)) {
    MPI_Cartdim_get(comm, &value);
  } else if (is("grid_too_large", mistake)) {
    MPI_Cart_create(comm, 1, grid_size, periods, 0, &copy);
  } else if (is("rank_twice", mistake)) {
    int twice[2] = {0, 0};
    MPI_Group_incl(world, 2, twice, &part);
  } else if (is("long_key", mistake)) {
    char key[MPI_MAX_INFO_KEY + 1];
    MPI_Info info;
    memset(key, 'k', MPI_MAX_INFO_KEY);
    key[MPI_MAX_INFO_KEY] = '\0';
    MPI_Info_create(&info);
    MPI_Info_set(info, key, "value");
  } else if (is("predefined_key", mistake)) {
    MPI_Comm_set_attr(comm, MPI_TAG_UB, &value);
  } else if (is("remote_of_intra", mistake)) {
    MPI_Comm_remote_size(comm, &value);
  }
  MPI_Finalize();
  return 0;
}
