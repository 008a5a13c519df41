// Handles become integers of Fortran and come back: mpi.h defines these conversions by those of the ABI, MPI_Comm_toint and so on.
#include "check.h"

#define COMES_BACK(Name, handle)                                                                             \
  do {                                                                                                       \
    CHECK(MPI_##Name##_f2c(MPI_##Name##_c2f(handle)) == (handle));                                           \
    CHECK(PMPI_##Name##_f2c(PMPI_##Name##_c2f(handle)) == (handle));                                         \
    CHECK(MPI_##Name##_c2f(handle) == MPI_##Name##_toint(handle));                                           \
  } while (0)

static void check_predefined(void) {
  COMES_BACK(Comm, MPI_COMM_NULL);
  COMES_BACK(Comm, MPI_COMM_WORLD);
  COMES_BACK(Errhandler, MPI_ERRORS_RETURN);
  COMES_BACK(File, MPI_FILE_NULL);
  COMES_BACK(Group, MPI_GROUP_EMPTY);
  COMES_BACK(Info, MPI_INFO_ENV);
  COMES_BACK(Message, MPI_MESSAGE_NO_PROC);
  COMES_BACK(Op, MPI_MAXLOC);
  COMES_BACK(Request, MPI_REQUEST_NULL);
  COMES_BACK(Session, MPI_SESSION_NULL);
  COMES_BACK(Type, MPI_DOUBLE);
  COMES_BACK(Win, MPI_WIN_NULL);
}

static void check_made(void) {
  MPI_Comm comm;
  MPI_Datatype pair;
  MPI_Request request;
  int rank, size, value = -1;
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  OK(MPI_Type_contiguous(2, MPI_INT, &pair));
  OK(MPI_Type_commit(&pair));
  COMES_BACK(Comm, comm);
  COMES_BACK(Type, pair);
  OK(MPI_Comm_rank(comm, &rank));
  OK(MPI_Comm_size(comm, &size));
  OK(MPI_Irecv(&value, 1, MPI_INT, (rank + size - 1) % size, 0, comm, &request));
  COMES_BACK(Request, request);
  OK(MPI_Send(&rank, 1, MPI_INT, (rank + 1) % size, 0, MPI_Comm_f2c(MPI_Comm_c2f(comm))));
  request = MPI_Request_f2c(MPI_Request_c2f(request));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  CHECK(value == (rank + size - 1) % size);
  OK(MPI_Type_free(&pair));
  OK(MPI_Comm_free(&comm));
}

int main(void) {
  OK(MPI_Init(NULL, NULL));
  check_predefined();
  check_made();
  OK(MPI_Finalize());
  return 0;
}
