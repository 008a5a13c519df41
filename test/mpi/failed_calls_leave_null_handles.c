// A call that fails stores the null handle in place of its result before the error handler runs. It does not
// change the arrays that it was given, even if one of them contains the place of the result.
#include "check.h"

#include <stdint.h>

/// Requires that the call fails and sets its result, which held another value, to null.
#define NULLS(error_class, type, null, call)                                                                 \
  do {                                                                                                       \
    type made = (type)(intptr_t)0x7777;                                                                      \
    FAILS(error_class, call);                                                                                \
    CHECK(made == null);                                                                                     \
  } while (0)

static MPI_Comm watched;
static int seen_null;
static void look(MPI_Comm* comm, int* code, ...) {
  (void)comm;
  (void)code;
  seen_null = watched == MPI_COMM_NULL;
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
  int dims[2] = {1 << 20, 1 << 20}, bad[1] = {-1}, buffer[4] = {0};
  const MPI_Comm world = MPI_COMM_WORLD;
  MPI_Group group;
  OK(MPI_Comm_group(world, &group));

  NULLS(MPI_ERR_DIMS, MPI_Comm, MPI_COMM_NULL, MPI_Cart_create(world, 2, dims, dims, 0, &made));
  NULLS(MPI_ERR_TOPOLOGY, MPI_Comm, MPI_COMM_NULL, MPI_Cart_sub(world, dims, &made));
  NULLS(MPI_ERR_ARG, MPI_Comm, MPI_COMM_NULL, MPI_Graph_create(world, -1, dims, dims, 0, &made));
  NULLS(MPI_ERR_ARG, MPI_Comm, MPI_COMM_NULL,
        MPI_Dist_graph_create(world, -1, dims, dims, dims, dims, MPI_INFO_NULL, 0, &made));
  NULLS(MPI_ERR_COMM, MPI_Comm, MPI_COMM_NULL, MPI_Comm_dup(MPI_COMM_NULL, &made));
  NULLS(MPI_ERR_ARG, MPI_Comm, MPI_COMM_NULL, MPI_Comm_split(world, -5, 0, &made));
  NULLS(MPI_ERR_GROUP, MPI_Comm, MPI_COMM_NULL, MPI_Comm_create(world, MPI_GROUP_NULL, &made));
  NULLS(MPI_ERR_RANK, MPI_Group, MPI_GROUP_NULL, MPI_Group_incl(group, 1, bad, &made));
  NULLS(MPI_ERR_GROUP, MPI_Group, MPI_GROUP_NULL, MPI_Group_union(group, MPI_GROUP_NULL, &made));
  NULLS(MPI_ERR_COUNT, MPI_Datatype, MPI_DATATYPE_NULL, MPI_Type_contiguous(-1, MPI_INT, &made));
  NULLS(MPI_ERR_TYPE, MPI_Datatype, MPI_DATATYPE_NULL, MPI_Type_dup(MPI_DATATYPE_NULL, &made));
  NULLS(MPI_ERR_ARG, MPI_Op, MPI_OP_NULL, MPI_Op_create(NULL, 0, &made));
  NULLS(MPI_ERR_ARG, MPI_Errhandler, MPI_ERRHANDLER_NULL, MPI_Comm_create_errhandler(NULL, &made));
  NULLS(MPI_ERR_SIZE, MPI_Win, MPI_WIN_NULL, MPI_Win_create(buffer, -1, 1, MPI_INFO_NULL, world, &made));
  NULLS(MPI_ERR_RANK, MPI_Request, MPI_REQUEST_NULL, MPI_Isend(buffer, 1, MPI_INT, -9, 0, world, &made));
  NULLS(MPI_ERR_TAG, MPI_Request, MPI_REQUEST_NULL, MPI_Irecv(buffer, 1, MPI_INT, 0, -9, world, &made));
  NULLS(MPI_ERR_COUNT, MPI_Request, MPI_REQUEST_NULL, MPI_Send_init(buffer, -1, MPI_INT, 0, 0, world, &made));
  NULLS(MPI_ERR_ROOT, MPI_Request, MPI_REQUEST_NULL, MPI_Ibcast(buffer, 1, MPI_INT, -9, world, &made));
  NULLS(MPI_ERR_RANK, MPI_Message, MPI_MESSAGE_NULL, MPI_Mprobe(-9, 0, world, &made, MPI_STATUS_IGNORE));
  NULLS(MPI_ERR_INFO, MPI_Info, MPI_INFO_NULL, MPI_Info_dup(MPI_INFO_NULL, &made));
  NULLS(MPI_ERR_UNSUPPORTED_OPERATION, MPI_File, MPI_FILE_NULL,
        MPI_File_open(world, "no-such-file", MPI_MODE_RDONLY, MPI_INFO_NULL, &made));
  NULLS(MPI_ERR_UNSUPPORTED_OPERATION, MPI_Session, MPI_SESSION_NULL,
        MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &made));

  // The error handler already sees the null handle.
  MPI_Errhandler handler;
  OK(MPI_Comm_create_errhandler(look, &handler));
  OK(MPI_Comm_set_errhandler(world, handler));
  watched = world;
  FAILS(MPI_ERR_DIMS, MPI_Cart_create(world, 2, dims, dims, 0, &watched));
  CHECK(seen_null);
  OK(MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN));
  OK(MPI_Errhandler_free(&handler));

  // The result may be stored where an argument is.
  int lengths[2] = {1, 1};
  MPI_Aint places[2] = {0, 8};
  MPI_Datatype types[2] = {MPI_INT, MPI_DOUBLE};
  OK(MPI_Type_create_struct(2, lengths, places, types, &types[0]));
  MPI_Count size;
  OK(MPI_Type_size_x(types[0], &size));
  CHECK(size == sizeof(int) + sizeof(double));
  OK(MPI_Type_free(&types[0]));

  OK(MPI_Group_free(&group));
  OK(MPI_Finalize());
  return 0;
}
