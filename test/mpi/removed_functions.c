// The functions that MPI 3.0 removed still work: mpi.h defines them by their replacements.
#include "check.h"

static int handled;

static void count_errors(MPI_Comm* communicator, int* error, ...) {
  (void)communicator, (void)error;
  ++handled;
}

static void check_errhandlers(void) {
  MPI_Handler_function* function = count_errors;
  MPI_Errhandler ours, found;
  OK(MPI_Errhandler_create(function, &ours));
  OK(MPI_Errhandler_set(MPI_COMM_SELF, ours));
  OK(MPI_Errhandler_get(MPI_COMM_SELF, &found));
  CHECK(found == ours);
  MPI_Send(NULL, -1, MPI_INT, 0, 0, MPI_COMM_SELF);
  CHECK(handled == 1);
  OK(MPI_Errhandler_set(MPI_COMM_SELF, MPI_ERRORS_RETURN));
  OK(MPI_Errhandler_free(&ours));
  OK(MPI_Errhandler_free(&found));
}

struct Particle {
  int kind;
  double place[3];
};

static void check_struct(void) {
  struct Particle sent[2] = {{1, {2, 3, 4}}, {5, {6, 7, 8}}}, received[2] = {{0, {0, 0, 0}}, {0, {0, 0, 0}}};
  const int lengths[2] = {1, 3};
  const MPI_Datatype types[2] = {MPI_INT, MPI_DOUBLE};
  MPI_Datatype particle;
  MPI_Aint start, displacements[2], extent, lower, upper;
  OK(MPI_Address(&sent[0], &start));
  OK(MPI_Address(&sent[0].kind, &displacements[0]));
  OK(MPI_Address(&sent[0].place, &displacements[1]));
  displacements[0] -= start;
  displacements[1] -= start;
  OK(MPI_Type_struct(2, lengths, displacements, types, &particle));
  OK(MPI_Type_commit(&particle));
  OK(MPI_Type_extent(particle, &extent));
  OK(MPI_Type_lb(particle, &lower));
  OK(MPI_Type_ub(particle, &upper));
  CHECK(extent == sizeof(struct Particle) && lower == 0 && upper == extent);
  OK(MPI_Sendrecv(sent, 2, particle, 0, 0, received, 2, particle, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE));
  CHECK(received[0].kind == 1 && received[1].kind == 5 && received[1].place[2] == 8);
  OK(MPI_Type_free(&particle));
}

static void check_layouts(void) {
  int from[6] = {0, 1, 2, 3, 4, 5}, to[3] = {0, 0, 0}, lengths[2] = {1, 2};
  MPI_Aint displacements[2] = {sizeof(int), 3 * sizeof(int)}, lower, upper, extent;
  MPI_Datatype pieces, rows;
  OK(MPI_Type_hindexed(2, lengths, displacements, MPI_INT, &pieces));
  OK(MPI_Type_commit(&pieces));
  OK(MPI_Type_lb(pieces, &lower));
  OK(MPI_Type_extent(pieces, &extent));
  OK(MPI_Type_ub(pieces, &upper));
  CHECK(lower == sizeof(int) && extent == 4 * sizeof(int) && upper == 5 * sizeof(int));
  OK(MPI_Sendrecv(from, 1, pieces, 0, 0, to, 3, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE));
  CHECK(to[0] == 1 && to[1] == 3 && to[2] == 4);
  OK(MPI_Type_hvector(3, 1, 2 * sizeof(int), MPI_INT, &rows));
  OK(MPI_Type_commit(&rows));
  OK(MPI_Sendrecv(from, 1, rows, 0, 0, to, 3, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE));
  CHECK(to[0] == 0 && to[1] == 2 && to[2] == 4);
  OK(MPI_Type_free(&pieces));
  OK(MPI_Type_free(&rows));
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  check_errhandlers();
  check_struct();
  check_layouts();
  OK(MPI_Finalize());
  return 0;
}
