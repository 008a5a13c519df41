// An error runs the handler of the object that the call concerns, or of MPI_COMM_SELF if there is none (MPI
// 5.0, 9.3), and never that of another communicator.
#include "check.h"

#include <string.h>

static char said[16]; ///< which handlers ran: 'w'orld, 's'elf, 'd'uplicate, 'i' window
static void note(char who) {
  size_t n = strlen(said);
  if (n + 1 < sizeof said) said[n] = who;
}
static void in_world(MPI_Comm* comm, int* code, ...) {
  (void)code;
  CHECK(*comm == MPI_COMM_WORLD);
  note('w');
}
static void in_self(MPI_Comm* comm, int* code, ...) {
  (void)code;
  CHECK(*comm == MPI_COMM_SELF);
  note('s');
}
static void in_duplicate(MPI_Comm* comm, int* code, ...) {
  (void)comm;
  (void)code;
  note('d');
}
static void in_window(MPI_Win* win, int* code, ...) {
  (void)win;
  (void)code;
  note('i');
}

/// Requires that the call fails and runs this handler once.
#define RUNS(handler, error_class, call)                                                                     \
  do {                                                                                                       \
    memset(said, 0, sizeof said);                                                                            \
    FAILS(error_class, call);                                                                                \
    CHECK(strcmp(said, handler) == 0);                                                                       \
  } while (0)

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  MPI_Errhandler world, self, duplicate, window;
  OK(MPI_Comm_create_errhandler(in_world, &world));
  OK(MPI_Comm_create_errhandler(in_self, &self));
  OK(MPI_Comm_create_errhandler(in_duplicate, &duplicate));
  OK(MPI_Win_create_errhandler(in_window, &window));
  MPI_Comm other, inherited;
  MPI_Win win;
  int flag, buffer[2] = {0};
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &other));
  OK(MPI_Win_create(buffer, sizeof buffer, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, world));
  OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, self));
  OK(MPI_Comm_set_errhandler(other, duplicate));
  OK(MPI_Win_set_errhandler(win, window));
  OK(MPI_Comm_dup(other, &inherited));

  // Errors that concern an object.
  RUNS("w", MPI_ERR_RANK, MPI_Send(buffer, 1, MPI_INT, -9, 0, MPI_COMM_WORLD));
  RUNS("s", MPI_ERR_RANK, MPI_Send(buffer, 1, MPI_INT, -9, 0, MPI_COMM_SELF));
  RUNS("d", MPI_ERR_RANK, MPI_Send(buffer, 1, MPI_INT, -9, 0, other));
  RUNS("d", MPI_ERR_TAG, MPI_Send(buffer, 1, MPI_INT, 0, -9, inherited));
  RUNS("i", MPI_ERR_COUNT, MPI_Put(buffer, -1, MPI_INT, 0, 0, 1, MPI_INT, win));
  // An error of a request concerns its communicator.
  MPI_Request request;
  OK(MPI_Send_init(buffer, 1, MPI_INT, MPI_PROC_NULL, 0, other, &request));
  OK(MPI_Start(&request));
  RUNS("d", MPI_ERR_REQUEST, MPI_Start(&request));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  OK(MPI_Request_free(&request));
  // Errors that concern no communicator or an invalid one.
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Info info;
  MPI_Comm made;
  char* nothing = NULL;
  OK(MPI_Info_create(&info));
  RUNS("s", MPI_ERR_TYPE, MPI_Type_commit(&type));
  RUNS("s", MPI_ERR_COUNT, MPI_Type_contiguous(-1, MPI_INT, &type));
  RUNS("s", MPI_ERR_INFO_KEY, MPI_Info_set(info, "", "value"));
  RUNS("s", MPI_ERR_COMM, MPI_Comm_dup(MPI_COMM_NULL, &made));
  RUNS("s", MPI_ERR_REQUEST, MPI_Test(&(MPI_Request){(MPI_Request)buffer}, &flag, MPI_STATUS_IGNORE));
  RUNS("s", MPI_ERR_WIN, MPI_Win_fence(0, MPI_WIN_NULL));
  RUNS("s", MPI_ERR_ARG, MPI_Get_address(buffer, (MPI_Aint*)nothing));

  OK(MPI_Info_free(&info));
  OK(MPI_Win_free(&win));
  OK(MPI_Comm_free(&inherited));
  OK(MPI_Comm_free(&other));
  OK(MPI_Errhandler_free(&world));
  OK(MPI_Errhandler_free(&self));
  OK(MPI_Errhandler_free(&duplicate));
  OK(MPI_Errhandler_free(&window));
  OK(MPI_Finalize());
  return 0;
}
