// A message that is too long fills the buffer and raises MPI_ERR_TRUNCATE, only at the receiver. The error
// message gives both lengths. Later messages are not affected.
#include "check.h"

#include <string.h>

static void check_sentence(int code, const char* expected) {
  char text[MPI_MAX_ERROR_STRING];
  int length;
  OK(MPI_Error_string(code, text, &length));
  if (strstr(text, expected) == NULL) fprintf(stderr, "%s\n", text);
  CHECK(strstr(text, expected) != NULL);
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  int rank;
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  static const int sizes[] = {40, 400, 8000, 500000};
  static int data[125000], buffer[125000];
  for (int s = 0; s < 4; ++s) {
    const int count = sizes[s] / 4, room = count / 4;
    if (rank == 1) {
      for (int i = 0; i < count; ++i) data[i] = i + s;
      for (int k = 0; k < 3; ++k) OK(MPI_Send(data, count, MPI_INT, 0, 7, MPI_COMM_WORLD));
      OK(MPI_Send(data, room, MPI_INT, 0, 7, MPI_COMM_WORLD));
    } else if (rank == 0) {
      char expected[160];
      snprintf(expected, sizeof expected,
               "message of %d bytes from rank 1 with tag 7 does not fit the receive buffer of %d bytes",
               count * 4, room * 4);
      memset(buffer, 0xff, sizeof buffer);
      MPI_Status status, statuses[2];
      int got;
      const int code = MPI_Recv(buffer, room, MPI_INT, 1, 7, MPI_COMM_WORLD, &status);
      FAILS(MPI_ERR_TRUNCATE, code);
      check_sentence(code, expected);
      for (int i = 0; i < room; ++i) CHECK(buffer[i] == i + s);
      CHECK(buffer[room] == -1);

      MPI_Request requests[2];
      OK(MPI_Irecv(buffer, room, MPI_INT, 1, 7, MPI_COMM_WORLD, &requests[0]));
      FAILS(MPI_ERR_TRUNCATE, MPI_Wait(&requests[0], &status));
      CHECK(requests[0] == MPI_REQUEST_NULL);

      OK(MPI_Irecv(buffer, room, MPI_INT, 1, 7, MPI_COMM_WORLD, &requests[0]));
      OK(MPI_Irecv(buffer, room, MPI_INT, 1, 7, MPI_COMM_WORLD, &requests[1]));
      FAILS(MPI_ERR_IN_STATUS, MPI_Waitall(2, requests, statuses));
      FAILS(MPI_ERR_TRUNCATE, statuses[0].MPI_ERROR);
      CHECK(statuses[1].MPI_ERROR == MPI_SUCCESS);
      OK(MPI_Get_count(&statuses[1], MPI_INT, &got));
      CHECK(got == room && buffer[room - 1] == room - 1 + s);
    }
  }
  OK(MPI_Finalize());
  return 0;
}
