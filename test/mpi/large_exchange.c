/* Large messages in both directions at once, contiguous and with gaps, by any protocol that works.
 *   large_exchange              without restrictions
 *   large_exchange undumpable   each rank first denies others access to its memory (PR_SET_DUMPABLE 0)
 *   large_exchange denied       each rank first loses process_vm_readv by a seccomp filter
 *   large_exchange no_help      each rank first loses process_vm_writev, which cooperative copies need
 * At the end every second rank only sends, and its neighbour only receives. */
#include "check.h"
#include "deny.h"

#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static void exchange(int count, MPI_Datatype type, MPI_Aint extent, int rank, int size) {
  size_t bytes = (size_t)count * (size_t)extent;
  int to = (rank + 1) % size, from = (rank + size - 1) % size;
  double *out = calloc(bytes, 1), *in = calloc(bytes, 1), *expected = calloc(bytes, 1);
  for (size_t i = 0; i < bytes / sizeof *out; ++i) out[i] = rank * 1e7 + (double)i;
  MPI_Request requests[2];
  MPI_Irecv(in, count, type, from, 5, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(out, count, type, to, 5, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  int position = 0, packed_size;
  MPI_Pack_size(count, type, MPI_COMM_WORLD, &packed_size);
  char* packed = malloc((size_t)packed_size);
  for (size_t i = 0; i < bytes / sizeof *out; ++i) out[i] = from * 1e7 + (double)i;
  MPI_Pack(out, count, type, packed, packed_size, &position, MPI_COMM_WORLD);
  position = 0;
  MPI_Unpack(packed, packed_size, &position, expected, count, type, MPI_COMM_WORLD);
  CHECK(memcmp(in, expected, bytes) == 0);
  free(packed);
  free(out);
  free(in);
  free(expected);
}

/// Lengths around multiples of the chunk of a cooperative copy; the last receive is shorter than its message.
static void one_way(int rank, int size) {
  static const int lengths[] = {1 << 20, (1 << 20) + 1, (5 << 20) - 7, 16 << 20, 4 << 20};
  enum { lengths_count = sizeof lengths / sizeof *lengths };
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (int round = 0; round < 4 * lengths_count; ++round) {
    int bytes = lengths[round % lengths_count], room = round % lengths_count == 4 ? bytes - 100000 : bytes;
    char* buffer = malloc((size_t)bytes + 1);
    if (rank % 2 == 0 && rank + 1 < size) {
      for (int i = 0; i < bytes; ++i) buffer[i] = (char)(i * 3 + (i >> 12) + round);
      CHECK(MPI_Send(buffer, bytes, MPI_BYTE, rank + 1, 6, MPI_COMM_WORLD) == MPI_SUCCESS);
    } else if (rank % 2 == 1) {
      memset(buffer, 0x55, (size_t)bytes + 1);
      int code = MPI_Recv(buffer, room, MPI_BYTE, rank - 1, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE), class;
      MPI_Error_class(code, &class);
      CHECK(class == (room < bytes ? MPI_ERR_TRUNCATE : MPI_SUCCESS));
      for (int i = 0; i < room; ++i) CHECK(buffer[i] == (char)(i * 3 + (i >> 12) + round));
      for (int i = room; i < bytes + 1; ++i) CHECK(buffer[i] == 0x55);
    }
    free(buffer);
  }
}

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "undumpable") == 0) CHECK(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0);
  if (argc > 1 && strcmp(argv[1], "denied") == 0) deny(SYS_process_vm_readv);
  if (argc > 1 && strcmp(argv[1], "no_help") == 0) deny(SYS_process_vm_writev);
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  exchange(1000000, MPI_DOUBLE, sizeof(double), rank, size);
  MPI_Datatype wide, narrow;
  MPI_Type_vector(300, 100, 200, MPI_DOUBLE, &wide); /* pieces of 800 bytes */
  MPI_Type_vector(20000, 1, 3, MPI_DOUBLE, &narrow); /* pieces of 8 bytes */
  MPI_Type_commit(&wide);
  MPI_Type_commit(&narrow);
  exchange(5, wide, 60000 * sizeof(double), rank, size);
  exchange(4, narrow, 60000 * sizeof(double), rank, size);
  MPI_Type_free(&wide);
  MPI_Type_free(&narrow);
  one_way(rank, size);
  MPI_Finalize();
  return 0;
}
