// Two ranks that call different collectives get errors, also if one of them has started messages before it could know. Nobody
// waits for a message that does not come.
#include "check.h"

enum { most = 1 << 20 };

static int rank;
static char out[2 * most], in[2 * most];

static int class_of(int code) {
  int class = 0;
  OK(MPI_Error_class(code, &class));
  return class;
}
/// Rank 1 calls after rank 0, which has then started what it can.
static void after_rank_0(MPI_Comm comm) {
  if (rank == 0) OK(MPI_Send(NULL, 0, MPI_BYTE, 1, 0, comm));
  if (rank == 1) OK(MPI_Recv(NULL, 0, MPI_BYTE, 0, 0, comm, MPI_STATUS_IGNORE));
}

/// Rank 1 returns at once, and waits in the next call.
static void only_publishes(MPI_Comm comm, int bytes) {
  MPI_Request request;
  if (rank == 0) OK(MPI_Iallgather(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, comm, &request));
  after_rank_0(comm);
  if (rank == 0) CHECK(class_of(MPI_Wait(&request, MPI_STATUS_IGNORE)) == MPI_ERR_OTHER);
  if (rank == 1) OK(MPI_Bcast(out, 64, MPI_BYTE, 1, comm));
}
/// The messages of one call meet those of the other.
static void exchanges(MPI_Comm comm, int bytes) {
  MPI_Request request;
  int code = MPI_SUCCESS;
  if (rank == 0) OK(MPI_Iallgather(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, comm, &request));
  after_rank_0(comm);
  if (rank == 1) code = MPI_Ialltoall(out, bytes / 2, MPI_BYTE, in, bytes / 2, MPI_BYTE, comm, &request);
  if (code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(class_of(code) == MPI_ERR_OTHER);
}
/// Rank 0 only sends in both calls; rank 1 reads first what rank 0 calls.
static void scans(MPI_Comm comm, int bytes) {
  const int code = rank == 0 ? MPI_Scan(out, in, bytes, MPI_BYTE, MPI_BOR, comm)
                             : MPI_Exscan(out, in, bytes, MPI_BYTE, MPI_BOR, comm);
  CHECK(class_of(code) == MPI_ERR_OTHER || (rank == 0 && code == MPI_SUCCESS));
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  void (*const cases[])(MPI_Comm, int) = {only_publishes, exchanges, scans};
  for (int bytes = 8 << 10; bytes <= most; bytes *= 2)
    for (int i = 0; i < 3; ++i) {
      MPI_Comm comm;
      OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
      OK(MPI_Barrier(comm)); // makes the area
      cases[i](comm, bytes);
      CHECK(class_of(MPI_Barrier(comm)) == MPI_ERR_OTHER);
      OK(MPI_Comm_free(&comm));
    }
  OK(MPI_Finalize());
  return 0;
}
