/* A small benchmark in the manner of the Intel MPI Benchmarks: a few patterns over growing messages, each
 * checked. One binary, built once for the standard ABI, runs on every library that implements it.
 *
 * Usage: mini_imb [largest message in bytes]. If all results are right, the exit status is 0 and the last line is
 * "all results are right". */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { repetitions = 20 };

static int rank, size;
static unsigned char *sent, *received;
static long errors;

static unsigned char byte_of(int from, long i) { return (unsigned char)(from * 7 + i * 3 + (i >> 8) + 1); }

static void fill(unsigned char* at, long bytes, int from) {
  for (long i = 0; i < bytes; ++i) at[i] = byte_of(from, i);
}

static void check(const unsigned char* at, long bytes, int from) {
  for (long i = 0; i < bytes; ++i)
    if (at[i] != byte_of(from, i)) {
      ++errors;
      return;
    }
}

static void ping_pong(long bytes) {
  if (rank > 1 || size < 2) return;
  int other = 1 - rank;
  for (int i = 0; i < repetitions; ++i) {
    if (rank == 0) {
      MPI_Send(sent, (int)bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD);
      MPI_Recv(received, (int)bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(received, (int)bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(sent, (int)bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD);
    }
  }
  check(received, bytes, other);
}

static void ring_shift(long bytes) {
  int next = (rank + 1) % size, before = (rank + size - 1) % size;
  for (int i = 0; i < repetitions; ++i) {
    MPI_Status status;
    int count;
    MPI_Sendrecv(sent, (int)bytes, MPI_BYTE, next, 2, received, (int)bytes, MPI_BYTE, before, 2,
                 MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_BYTE, &count);
    if (count != bytes || status.MPI_SOURCE != before || status.MPI_TAG != 2) ++errors;
  }
  check(received, bytes, before);
}

static void exchange(long bytes) {
  int next = (rank + 1) % size, before = (rank + size - 1) % size;
  for (int i = 0; i < repetitions; ++i) {
    MPI_Request requests[4];
    MPI_Irecv(received, (int)bytes, MPI_BYTE, before, 3, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(received + bytes, (int)bytes, MPI_BYTE, next, 4, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(sent, (int)bytes, MPI_BYTE, next, 3, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(sent, (int)bytes, MPI_BYTE, before, 4, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
  }
  check(received, bytes, before);
  check(received + bytes, bytes, next);
}

static void broadcast(long bytes) {
  for (int i = 0; i < repetitions; ++i) {
    int root = i % size;
    if (rank == root) memcpy(received, sent, (size_t)bytes);
    MPI_Bcast(received, (int)bytes, MPI_BYTE, root, MPI_COMM_WORLD);
    check(received, bytes, root);
  }
}

static void all_reduce(long bytes) {
  int n = (int)(bytes / (long)sizeof(double));
  double *in = (double*)sent, *out = (double*)received;
  for (int i = 0; i < n; ++i) in[i] = rank + i;
  for (int i = 0; i < repetitions; ++i) MPI_Allreduce(in, out, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < n; ++i)
    if (out[i] != size * (double)i + size * (size - 1) / 2.0) {
      ++errors;
      break;
    }
  fill(sent, bytes, rank);
}

static void all_gather(long bytes) {
  for (int i = 0; i < repetitions; ++i)
    MPI_Allgather(sent, (int)bytes, MPI_BYTE, received, (int)bytes, MPI_BYTE, MPI_COMM_WORLD);
  for (int r = 0; r < size; ++r) check(received + r * bytes, bytes, r);
}

static void all_to_all(long bytes) {
  long part = bytes / size;
  for (int i = 0; i < repetitions; ++i)
    MPI_Alltoall(sent, (int)part, MPI_BYTE, received, (int)part, MPI_BYTE, MPI_COMM_WORLD);
  for (int r = 0; r < size; ++r)
    for (long i = 0; i < part; ++i)
      if (received[r * part + i] != byte_of(r, rank * part + i)) {
        ++errors;
        break;
      }
}

static void barrier(long bytes) {
  (void)bytes;
  for (int i = 0; i < repetitions; ++i) MPI_Barrier(MPI_COMM_WORLD);
}

static const struct {
  const char* name;
  void (*run)(long bytes);
} cases[] = {
    {"PingPong", ping_pong},   {"Sendrecv", ring_shift},  {"Exchange", exchange},   {"Bcast", broadcast},
    {"Allreduce", all_reduce}, {"Allgather", all_gather}, {"Alltoall", all_to_all}, {"Barrier", barrier},
};

int main(int argc, char** argv) {
  long largest = argc > 1 ? atol(argv[1]) : 1 << 20;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  sent = malloc((size_t)largest);
  received = malloc((size_t)largest * (size_t)(size > 2 ? size : 2));
  if (rank == 0) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(version, &length);
    version[strcspn(version, "\n")] = 0;
    printf("# %s, %d ranks\n# %-10s %10s %12s\n", version, size, "pattern", "bytes", "microseconds");
  }
  for (size_t c = 0; c < sizeof cases / sizeof *cases; ++c)
    for (long bytes = 0; bytes <= largest; bytes = bytes == 0 ? 64 : bytes * 16) {
      fill(sent, bytes, rank);
      MPI_Barrier(MPI_COMM_WORLD);
      double start = MPI_Wtime();
      cases[c].run(bytes);
      double mine = (MPI_Wtime() - start) / repetitions * 1e6, slowest;
      MPI_Reduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
      if (rank == 0) printf("  %-10s %10ld %12.2f\n", cases[c].name, bytes, slowest);
    }
  long all = 0;
  MPI_Reduce(&errors, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf(all == 0 ? "all results are right\n" : "%ld wrong results\n", all);
  int wrong = errors != 0;
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  free(sent);
  free(received);
  MPI_Finalize();
  return wrong;
}
