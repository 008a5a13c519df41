// Wrong programs: `wrong NAME` makes one mistake, on every rank unless noted otherwise.
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
  // A common mistake: a handle of another type in place of a communicator.
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

static void null_operation(void) {
  int out;
  MPI_Allreduce(buffer, &out, 1, MPI_INT, MPI_OP_NULL, MPI_COMM_WORLD);
}
static void null_error_handler(void) { MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRHANDLER_NULL); }
static void coordinates_of_nobody(void) {
  int dims[1] = {0}, periods[1] = {0}, coordinates[1];
  MPI_Comm grid;
  MPI_Dims_create(size, 1, dims);
  MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &grid);
  MPI_Cart_coords(grid, 9, 1, coordinates);
}
static void struct_of_nothing(void) {
  int lengths[2] = {1, 1};
  MPI_Aint places[2] = {0, 8};
  MPI_Datatype types[2] = {MPI_INT, MPI_DATATYPE_NULL}, made;
  MPI_Type_create_struct(2, lengths, places, types, &made);
}
static void freed_world(void) {
  MPI_Comm world = MPI_COMM_WORLD;
  MPI_Comm_free(&world);
}
static void freed_operation(void) {
  MPI_Op sum = MPI_SUM;
  MPI_Op_free(&sum);
}
static void buffer_nowhere(void) { MPI_Buffer_attach(NULL, 100); }
static void negative_requests(void) {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Waitall(-1, &request, MPI_STATUSES_IGNORE);
}
static void huge_grid(void) {
  int dims[4] = {1 << 30, 1 << 30, 1 << 30, 1 << 30}, periods[4] = {0};
  MPI_Comm grid;
  MPI_Cart_create(MPI_COMM_WORLD, 4, dims, periods, 0, &grid);
}

static void second_init(void) { MPI_Init(NULL, NULL); }
static void not_there_yet(void) {
  MPI_Comm made;
  MPI_Comm_accept("port", MPI_INFO_NULL, 0, MPI_COMM_WORLD, &made);
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
                {"null_operation", null_operation},
                {"null_error_handler", null_error_handler},
                {"coordinates_of_nobody", coordinates_of_nobody},
                {"struct_of_nothing", struct_of_nothing},
                {"freed_world", freed_world},
                {"freed_operation", freed_operation},
                {"buffer_nowhere", buffer_nowhere},
                {"negative_requests", negative_requests},
                {"huge_grid", huge_grid},
                {"second_init", second_init},
                {"not_there_yet", not_there_yet}};

int main(int argc, char** argv) {
  if (argc < 2) return 100;
  if (strcmp(argv[1], "before_init") == 0) MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int provided;
  if (strcmp(argv[1], "unknown_thread_level") == 0) MPI_Init_thread(&argc, &argv, 7, &provided);
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
