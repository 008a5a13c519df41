/* Messages to ranks of other machines are counted under the path "network", and others are not. Each rank sends 3 messages of 1000 bytes
 * and one of 300,000 to its right neighbour.
 *   counted_elsewhere         checks its own sums
 *   counted_elsewhere hold    then waits until rank 0 has read a line from standard input */
#include "check.h"

#include <near.h>
#include <stdio.h>
#include <string.h>

static void so_far(uint64_t* messages, uint64_t* bytes) {
  int network = -1;
  for (int each = 0; each < near_traffic_paths(); ++each)
    if (strcmp(near_traffic_name(each), "network") == 0) network = each;
  CHECK(near_traffic_name(near_traffic_paths()) == NULL && near_traffic_name(-1) == NULL);
  CHECK(network >= 0 && near_traffic(network, messages, bytes) == 0);
}

int main(int count, char** arguments) {
  OK(MPI_Init(&count, &arguments));
  int rank, size, neighbours = 0;
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  int right = (rank + 1) % size, left = (rank + size - 1) % size, to_here;
  MPI_Comm here;
  MPI_Group world, group;
  OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here));
  OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
  OK(MPI_Comm_group(here, &group));
  OK(MPI_Group_translate_ranks(world, 1, &right, group, &to_here));
  neighbours = to_here != MPI_UNDEFINED;

  static char out[300000], in[300000];
  uint64_t messages_before, bytes_before, messages, bytes;
  so_far(&messages_before, &bytes_before);
  for (int i = 0; i < 4; ++i) {
    int length = i < 3 ? 1000 : 300000;
    OK(MPI_Sendrecv(out, length, MPI_BYTE, right, 3, in, length, MPI_BYTE, left, 3, MPI_COMM_WORLD,
                    MPI_STATUS_IGNORE));
  }
  so_far(&messages, &bytes);
  CHECK(messages - messages_before == (neighbours ? 0 : 4));
  CHECK(bytes - bytes_before == (neighbours ? 0 : 303000));
  if (count > 1) {
    char line[8];
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) {
      puts("has-sent");
      fflush(stdout);
      CHECK(fgets(line, sizeof line, stdin) != NULL);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
  }
  OK(MPI_Group_free(&world));
  OK(MPI_Group_free(&group));
  OK(MPI_Comm_free(&here));
  OK(MPI_Finalize());
  return 0;
}
