// A matrix is sent column by column, to consecutive bytes, to columns of another matrix, and back: each part of such a message is
// in lines that other parts need, too, so it is packed and unpacked at once. All arrives as it was, and nothing beside it changes,
// whether it was expected, comes in several pieces, or is longer or shorter than the receive.
#include "check.h"

#include <string.h>

enum { rows = 512, most_columns = 128, wide = most_columns + 3 };

static double matrix[rows][wide][2], packed[most_columns][rows][2];

static double value(int column, int row, int part) { return column * 2000. + row * 2. + part; }

/// A column of pairs of doubles, behind which the next one begins.
static MPI_Datatype one_column(void) {
  MPI_Datatype column, next;
  OK(MPI_Type_vector(rows, 2, 2 * wide, MPI_DOUBLE, &column));
  OK(MPI_Type_create_resized(column, 0, 2 * sizeof(double), &next));
  OK(MPI_Type_commit(&next));
  OK(MPI_Type_free(&column));
  return next;
}
/// Columns of pairs of doubles, one after another.
static MPI_Datatype columns_of(int columns) {
  MPI_Datatype column, all;
  OK(MPI_Type_vector(rows, 2, 2 * wide, MPI_DOUBLE, &column));
  OK(MPI_Type_create_hvector(columns, 1, 2 * sizeof(double), column, &all));
  OK(MPI_Type_commit(&all));
  OK(MPI_Type_free(&column));
  return all;
}

static void fill(int columns) {
  for (int row = 0; row < rows; ++row)
    for (int column = 0; column < wide; ++column)
      for (int part = 0; part < 2; ++part) {
        matrix[row][column][part] = value(column, row, part);
        if (column < columns) packed[column][row][part] = value(column, row, part);
      }
}

/// Elements [0, doubles) of the packed order have come, and no others.
static void check_matrix(int doubles) {
  for (int row = 0; row < rows; ++row)
    for (int column = 0; column < wide; ++column)
      for (int part = 0; part < 2; ++part)
        CHECK(matrix[row][column][part] ==
              ((column * rows + row) * 2 + part < doubles ? value(column, row, part) : -1));
}
static void check_packed(int doubles) {
  for (int i = 0; i < doubles; ++i) CHECK((&packed[0][0][0])[i] == value(i / 2 / rows, i / 2 % rows, i % 2));
}
static void clear(void) {
  for (int i = 0; i < rows * wide * 2; ++i) (&matrix[0][0][0])[i] = -1;
  memset(packed, 0, sizeof packed);
}

static void wait_for_both(void) { OK(MPI_Barrier(MPI_COMM_WORLD)); }

/// How the data is described at the sender and at the receiver.
enum way { by_columns, column_by_column, consecutive, ways };

static void transfer(int rank, enum way from, enum way to, int columns, int unexpected) {
  const int doubles = columns * rows * 2;
  const enum way mine = rank == 0 ? from : to;
  const int elements = mine == column_by_column ? columns : 1;
  MPI_Datatype type = mine == column_by_column ? one_column() : columns_of(columns);
  if (rank == 0) {
    fill(columns);
    if (!unexpected) wait_for_both();
    MPI_Request request;
    if (from != consecutive)
      OK(MPI_Isend(matrix, elements, type, 1, 0, MPI_COMM_WORLD, &request));
    else
      OK(MPI_Isend(packed, doubles, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD, &request));
    if (unexpected) wait_for_both();
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  } else {
    MPI_Request request;
    MPI_Status status;
    int received;
    clear();
    if (unexpected) wait_for_both();
    if (to != consecutive)
      OK(MPI_Irecv(matrix, elements, type, 0, 0, MPI_COMM_WORLD, &request));
    else
      OK(MPI_Irecv(packed, doubles, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, &request));
    if (!unexpected) wait_for_both();
    OK(MPI_Wait(&request, &status));
    OK(MPI_Get_elements(&status, MPI_DOUBLE, &received));
    CHECK(received == doubles);
    if (to != consecutive)
      check_matrix(doubles);
    else
      check_packed(doubles);
  }
  OK(MPI_Type_free(&type));
}

/// The receive is for 16 columns, and the message has `doubles` doubles.
static void differ(int rank, int doubles) {
  const int room = 16 * rows * 2;
  MPI_Datatype type = columns_of(16);
  if (rank == 0) {
    fill(most_columns);
    OK(MPI_Send(packed, doubles, MPI_DOUBLE, 1, 1, MPI_COMM_WORLD));
  } else {
    clear();
    const int error = MPI_Recv(matrix, 1, type, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (doubles > room)
      CHECK(error != MPI_SUCCESS);
    else
      CHECK(error == MPI_SUCCESS);
    check_matrix(doubles < room ? doubles : room);
  }
  OK(MPI_Type_free(&type));
}

/// Two messages under way, the second one received first.
static void out_of_order(int rank) {
  enum { columns = 8, doubles = columns * rows * 2 };
  MPI_Datatype type = columns_of(columns);
  if (rank == 0) {
    MPI_Request requests[2];
    fill(columns);
    for (int i = 0; i < 2; ++i) OK(MPI_Isend(matrix, 1, type, 1, 2 + i, MPI_COMM_WORLD, &requests[i]));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
  } else {
    for (int tag = 3; tag >= 2; --tag) {
      clear();
      OK(MPI_Recv(matrix, 1, type, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      check_matrix(doubles);
    }
  }
  OK(MPI_Type_free(&type));
}

int main(int argc, char** argv) {
  int rank;
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  for (int columns = 2; columns <= most_columns; columns *= 2)
    for (int way = 0; way < 8; ++way)
      transfer(rank, way & 1 ? by_columns : consecutive, way & 2 ? by_columns : consecutive, columns,
               way & 4);
  const int room = 16 * rows * 2;
  const int lengths[] = {room - 1, room / 2 + 77, room + 1, 2 * room, room};
  for (int i = 0; i < 5; ++i) differ(rank, lengths[i]);
  out_of_order(rank);
  OK(MPI_Finalize());
  return 0;
}
