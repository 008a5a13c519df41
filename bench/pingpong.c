// Latency and bandwidth between ranks 0 and 1: one line "bytes microseconds" a size, half of a round trip,
// the median of many rounds. Plain MPI, so the same binary runs on every library of the standard ABI.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { largest = 16 << 20, samples = 21 };

static int ascending(const void* left, const void* right) {
  double difference = *(const double*)left - *(const double*)right;
  return (difference > 0) - (difference < 0);
}

static double round_trips(char* buffer, int bytes, int count, int rank) {
  double start = MPI_Wtime();
  for (int i = 0; i < count; ++i) {
    if (rank == 0) {
      MPI_Send(buffer, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
      MPI_Recv(buffer, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(buffer, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(buffer, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
  }
  return (MPI_Wtime() - start) / count / 2 * 1e6;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size != 2) {
    if (rank == 0) fprintf(stderr, "pingpong: needs exactly two ranks\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  if (rank == 0) {
    char name[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(name, &length);
    name[strcspn(name, "\r\n")] = 0;
    printf("library %s\n", name);
  }
  char* buffer = malloc(largest);
  memset(buffer, 1, largest);
  for (int bytes = 0; bytes <= largest; bytes = bytes ? bytes * 8 : 8) {
    int count = bytes < 65536 ? 1000 : bytes < (1 << 20) ? 50 : 4;
    double times[samples];
    round_trips(buffer, bytes, count, rank); // warm-up
    for (int i = 0; i < samples; ++i) times[i] = round_trips(buffer, bytes, count, rank);
    qsort(times, samples, sizeof times[0], ascending);
    if (rank == 0) printf("%d %.3f\n", bytes, times[samples / 2]);
  }
  free(buffer);
  MPI_Finalize();
  return 0;
}
