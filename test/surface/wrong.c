// Wrong programs: `wrong NAME` does one thing that no MPI program may do, on every rank unless it says
// otherwise.
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int rank, size, buffer[64];

static void bad_rank(void) { MPI_Send(buffer, 1, MPI_INT, size + 3, 0, MPI_COMM_WORLD); }
static void bad_count(void) { MPI_Send(buffer, -1, MPI_INT, 0, 0, MPI_COMM_WORLD); }
static void too_many_bytes(void) {
  MPI_Send_c(buffer, ((MPI_Count)1 << 61) + 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
}
static void bad_tag(void) { MPI_Send(buffer, 1, MPI_INT, 0, -7, MPI_COMM_WORLD); }
static void bad_root(void) { MPI_Bcast(buffer, 1, MPI_INT, size, MPI_COMM_WORLD); }
static void null_buffer(void) { MPI_Send(NULL, 1, MPI_INT, 0, 0, MPI_COMM_WORLD); }

static void truncation(void) {
  if (rank == 1) MPI_Send(buffer, 4, MPI_INT, 0, 0, MPI_COMM_WORLD);
  if (rank == 0) MPI_Recv(buffer, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void mismatched_communicator(void) {
  // An old and frequent mistake: a handle of another type where a communicator belongs.
  MPI_Barrier((MPI_Comm)MPI_INT);
}

static void null_communicator(void) { MPI_Barrier(MPI_COMM_NULL); }

static void double_free_of_communicator(void) {
  MPI_Comm made, again;
  MPI_Comm_dup(MPI_COMM_WORLD, &made);
  again = made;
  MPI_Comm_free(&made);
  MPI_Comm_free(&again);
}

static void double_free_of_datatype(void) {
  MPI_Datatype made, again;
  MPI_Type_contiguous(3, MPI_INT, &made);
  again = made;
  MPI_Type_free(&made);
  MPI_Type_free(&again);
}

static void double_wait(void) {
  MPI_Request request, again;
  MPI_Isend(buffer, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &request);
  again = request;
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Wait(&again, MPI_STATUS_IGNORE);
}

static void uncommitted_type(void) {
  MPI_Datatype made;
  MPI_Type_contiguous(3, MPI_INT, &made);
  MPI_Send(buffer, 1, made, 0, 0, MPI_COMM_WORLD);
}

static void freed_predefined(void) {
  MPI_Datatype type = MPI_INT;
  MPI_Type_free(&type);
}

static void operation_without_meaning(void) {
  float in = 1, out = 0;
  MPI_Allreduce(&in, &out, 1, MPI_FLOAT, MPI_BAND, MPI_COMM_WORLD);
}

static void second_init(void) { MPI_Init(NULL, NULL); }
static void not_there_yet(void) {
  MPI_Win window;
  MPI_Win_create(buffer, sizeof buffer, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
}

static const struct {
  const char* name;
  void (*run)(void);
} mistakes[] = {{"bad_rank", bad_rank},
                {"bad_count", bad_count},
                {"too_many_bytes", too_many_bytes},
                {"bad_tag", bad_tag},
                {"bad_root", bad_root},
                {"null_buffer", null_buffer},
                {"truncation", truncation},
                {"mismatched_communicator", mismatched_communicator},
                {"null_communicator", null_communicator},
                {"double_free_of_communicator", double_free_of_communicator},
                {"double_free_of_datatype", double_free_of_datatype},
                {"double_wait", double_wait},
                {"uncommitted_type", uncommitted_type},
                {"freed_predefined", freed_predefined},
                {"operation_without_meaning", operation_without_meaning},
                {"second_init", second_init},
                {"not_there_yet", not_there_yet}};

int main(int argc, char** argv) {
  if (argc < 2) return 100;
  if (strcmp(argv[1], "before_init") == 0) MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; ++i)
    if (strcmp(argv[1], mistakes[i].name) == 0) {
      mistakes[i].run();
      fprintf(stderr, "the mistake was not noticed\n");
      return 101;
    }
  MPI_Finalize();
  if (strcmp(argv[1], "after_finalize") == 0) MPI_Barrier(MPI_COMM_WORLD);
  return 102;
}
