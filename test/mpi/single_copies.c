// Scatter and alltoall whose ranks read each other's buffers where they lie, wherever that is. To be run with
// NEAR_COLL=scatter=single_copy,alltoall=single_copy.
//   single_copies            in all kinds of memory
//   single_copies denied     the last rank may not read the others' memory, so all do without that
//   single_copies holes      pages of rank 0's buffer are not mapped: the others get an error
//   single_copies short      rank 0 has blocks that are shorter than the others expect
#include "check.h"
#include "deny.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum { ints = 30000, page = 4096 };

static int rank, size;

static int value(int from, int to, int place) { return from * 1000003 + to * 7919 + place; }

enum memory { private, shareable, kinds };
static int* allocate(enum memory kind, size_t count) {
  int* made;
  if (kind == private) {
    made = malloc(count * sizeof *made);
    CHECK(made != NULL);
  } else {
    OK(MPI_Alloc_mem((MPI_Aint)(count * sizeof *made), MPI_INFO_NULL, &made));
  }
  memset(made, 0x55, count * sizeof *made);
  return made;
}
static void give_back(enum memory kind, int* memory) {
  if (kind == private)
    free(memory);
  else
    OK(MPI_Free_mem(memory));
}

enum form { blocking, nonblocking, persistent, forms };
static void complete(MPI_Request* request, enum form form) {
  for (int again = 0; form == persistent && again < 2; ++again) {
    OK(MPI_Start(request));
    OK(MPI_Wait(request, MPI_STATUS_IGNORE));
  }
  if (form == persistent) OK(MPI_Request_free(request));
  if (form == nonblocking) OK(MPI_Wait(request, MPI_STATUS_IGNORE));
}

/// `stride`: an element of the sent and received data every so many ints.
static void exchange(enum memory out_kind, enum memory in_kind, enum form form, int out_stride,
                     int in_stride) {
  MPI_Comm comm = MPI_COMM_WORLD;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Datatype out_type, in_type;
  OK(MPI_Type_create_resized(MPI_INT, 0, (MPI_Aint)sizeof(int) * out_stride, &out_type));
  OK(MPI_Type_create_resized(MPI_INT, 0, (MPI_Aint)sizeof(int) * in_stride, &in_type));
  OK(MPI_Type_commit(&out_type));
  OK(MPI_Type_commit(&in_type));
  int *out = allocate(out_kind, (size_t)ints * size * out_stride),
      *in = allocate(in_kind, (size_t)ints * size * in_stride);
  for (int to = 0; to < size; ++to)
    for (int i = 0; i < ints; ++i) out[(to * ints + i) * out_stride] = value(rank, to, i);

  if (form == blocking) OK(MPI_Alltoall(out, ints, out_type, in, ints, in_type, comm));
  if (form == nonblocking) OK(MPI_Ialltoall(out, ints, out_type, in, ints, in_type, comm, &request));
  if (form == persistent)
    OK(MPI_Alltoall_init(out, ints, out_type, in, ints, in_type, comm, MPI_INFO_NULL, &request));
  complete(&request, form);
  for (int from = 0; from < size; ++from)
    for (int i = 0; i < ints; ++i) CHECK(in[(from * ints + i) * in_stride] == value(from, rank, i));
  for (int i = 0; i < size * ints * in_stride; ++i) CHECK(i % in_stride == 0 || in[i] == 0x55555555);

  for (int root = 0; root < size; ++root) {
    memset(in, 0x55, (size_t)ints * in_stride * sizeof *in);
    if (form == blocking) OK(MPI_Scatter(out, ints, out_type, in, ints, in_type, root, comm));
    if (form == nonblocking) OK(MPI_Iscatter(out, ints, out_type, in, ints, in_type, root, comm, &request));
    if (form == persistent)
      OK(MPI_Scatter_init(out, ints, out_type, in, ints, in_type, root, comm, MPI_INFO_NULL, &request));
    complete(&request, form);
    for (int i = 0; i < ints; ++i) CHECK(in[i * in_stride] == value(root, rank, i));
    for (int i = 0; i < ints * in_stride; ++i) CHECK(i % in_stride == 0 || in[i] == 0x55555555);
  }
  give_back(out_kind, out);
  give_back(in_kind, in);
  OK(MPI_Type_free(&out_type));
  OK(MPI_Type_free(&in_type));
}

static void in_all_memory(void) {
  for (enum form form = blocking; form < forms; ++form)
    for (enum memory out = private; out < kinds; ++out)
      for (enum memory in = private; in < kinds; ++in)
        for (int strides = 0; strides < 4; ++strides)
          exchange(out, in, form, 1 + strides % 2, 1 + strides / 2);
}

/// The kernel lets a process load from this page, but reads it for nobody: its memory is not ordinary.
static const char* special_page(void) {
  FILE* maps = fopen("/proc/self/maps", "r");
  char line[512];
  unsigned long begin = 0, found = 0;
  CHECK(maps != NULL);
  while (found == 0 && fgets(line, sizeof line, maps) != NULL)
    if (strstr(line, "[vvar]") != NULL && sscanf(line, "%lx", &begin) == 1) found = begin;
  fclose(maps);
  return (const char*)(uintptr_t)found;
}

/// Data from there is packed first.
static void from_special_memory(void) {
  const char* special = special_page();
  if (special == NULL) return; // this machine has none
  char block[page];
  OK(MPI_Scatter(special, page / size, MPI_BYTE, block, page / size, MPI_BYTE, 0, MPI_COMM_WORLD));
}

/// A page of each block of rank 0 but its own is missing, though neither the first nor the last one of all.
static void with_holes(void) {
  enum { bytes = 4 * page };
  char* out = mmap(NULL, (size_t)size * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  char* in = malloc(bytes);
  CHECK(out != MAP_FAILED && in != NULL);
  for (int to = 1; to < size; ++to) CHECK(munmap(out + (size_t)to * bytes + page, page) == 0);
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  if (rank == 0)
    OK(MPI_Scatter(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, 0, MPI_COMM_WORLD));
  else
    FAILS(MPI_ERR_BUFFER, MPI_Scatter(NULL, 0, MPI_BYTE, in, bytes, MPI_BYTE, 0, MPI_COMM_WORLD));
  OK(MPI_Barrier(MPI_COMM_WORLD)); // the communicator can still be used
  free(in);
}

static void with_short_blocks(void) {
  char *out = calloc((size_t)size, page), *in = malloc(page);
  CHECK(out != NULL && in != NULL);
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  if (rank == 0)
    OK(MPI_Scatter(out, page / 2, MPI_BYTE, in, page, MPI_BYTE, 0, MPI_COMM_WORLD));
  else
    FAILS(MPI_ERR_TRUNCATE, MPI_Scatter(NULL, 0, MPI_BYTE, in, page, MPI_BYTE, 0, MPI_COMM_WORLD));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  free(out);
  free(in);
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  const char* what = argc > 1 ? argv[1] : "";
  if (strcmp(what, "holes") == 0) {
    with_holes();
  } else if (strcmp(what, "short") == 0) {
    with_short_blocks();
  } else {
    if (strcmp(what, "denied") == 0 && rank == size - 1) deny(SYS_process_vm_readv);
    in_all_memory();
    from_special_memory();
  }
  OK(MPI_Finalize());
  return 0;
}
