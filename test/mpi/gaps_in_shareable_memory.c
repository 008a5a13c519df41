// Rank 0 sends data with gaps from memory of MPI_Alloc_mem, in every layout to every layout of rank 1's: all arrive as they were,
// and nothing beside them changes.
#include "check.h"

#include <stdint.h>
#include <string.h>

enum { layouts = 7, most = 49152, untouched = 0xee, space = 9 * most * (int)sizeof(double) };

static char* memory;
static double data[most], packed[most];

/// A layout of `count` doubles, multiples of 48: how many elements of `*type`, of which the first byte of data lies `*at` bytes
/// behind the beginning of the memory.
static int make_layout(int layout, int count, MPI_Datatype* type, MPI_Aint* at) {
  int elements = 1;
  *at = 0;
  switch (layout) {
  case 0: OK(MPI_Type_contiguous(count, MPI_DOUBLE, type)); break;
  case 1: OK(MPI_Type_vector(count, 1, 3, MPI_DOUBLE, type)); break;
  case 2: OK(MPI_Type_vector(count / 4, 4, 9, MPI_DOUBLE, type)); break;
  case 3:
    OK(MPI_Type_vector(count / 2, 2, -5, MPI_DOUBLE, type));
    *at = (MPI_Aint)(count / 2 - 1) * 5 * (MPI_Aint)sizeof(double);
    break;
  case 4: { // a face of a box: rows of single elements
    int sizes[] = {count / 48, 48, 7}, parts[] = {count / 48, 48, 1}, starts[] = {0, 0, 3};
    OK(MPI_Type_create_subarray(3, sizes, parts, starts, MPI_ORDER_C, MPI_DOUBLE, type));
    break;
  }
  case 5: { // at no regular distance
    static int places[most];
    for (int i = 0; i < count; ++i) places[i] = 2 * i + i % 5 / 4;
    OK(MPI_Type_create_indexed_block(count, 1, places, MPI_DOUBLE, type));
    break;
  }
  default: { // several elements, with space between them
    MPI_Datatype row;
    elements = 16;
    OK(MPI_Type_vector(count / 16, 1, 2, MPI_DOUBLE, &row));
    OK(MPI_Type_create_resized(row, 0, (MPI_Aint)(count / 16 * 2 + 5) * (MPI_Aint)sizeof(double), type));
    OK(MPI_Type_free(&row));
  }
  }
  OK(MPI_Type_commit(type));
  return elements;
}

static void transfer(int rank, int from, int to, int count) {
  MPI_Datatype type;
  MPI_Aint at;
  const int bytes = count * (int)sizeof(double),
            elements = make_layout(rank == 0 ? from : to, count, &type, &at);
  int position = 0;
  memset(memory, untouched, space);
  if (rank == 0) {
    for (int i = 0; i < count; ++i) data[i] = i + 1000 * from + to;
    OK(MPI_Unpack(data, bytes, &position, memory + at, elements, type, MPI_COMM_SELF));
    OK(MPI_Send(memory + at, elements, type, 1, 0, MPI_COMM_WORLD));
  } else {
    MPI_Status status;
    int received, changed = 0;
    OK(MPI_Recv(memory + at, elements, type, 0, 0, MPI_COMM_WORLD, &status));
    OK(MPI_Get_count(&status, type, &received));
    CHECK(received == elements);
    OK(MPI_Pack(memory + at, elements, type, packed, bytes, &position, MPI_COMM_SELF));
    for (int i = 0; i < count; ++i) CHECK(packed[i] == i + 1000 * from + to);
    for (int i = 0; i < space; ++i) changed += (unsigned char)memory[i] != untouched;
    CHECK(changed <= bytes);
  }
  OK(MPI_Type_free(&type));
}

/// The receive buffer holds less than the message.
static void cut(int rank, int layout) {
  MPI_Datatype type;
  MPI_Aint at;
  const int count = most, elements = make_layout(layout, count, &type, &at);
  int position = 0;
  if (rank == 0) {
    for (int i = 0; i < count; ++i) data[i] = i;
    OK(MPI_Unpack(data, (int)sizeof data, &position, memory + at, elements, type, MPI_COMM_SELF));
    OK(MPI_Send(memory + at, elements, type, 1, 1, MPI_COMM_WORLD));
  } else {
    const int less = most - 1001;
    memset(packed, 0, sizeof packed);
    FAILS(MPI_ERR_TRUNCATE, MPI_Recv(packed, less, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int i = 0; i < most; ++i) CHECK(packed[i] == (i < less ? i : 0));
  }
  OK(MPI_Type_free(&type));
}

/// Half of the data lie in private memory.
static void half_private(int rank, int shareable_first) {
  double* own = malloc(most * sizeof(double));
  CHECK(own != NULL);
  if (rank == 0) {
    MPI_Datatype type;
    char* const first = shareable_first ? memory : (char*)own;
    char* const second = shareable_first ? (char*)own : memory;
    for (int i = 0; i < most; ++i) own[i] = i, ((double*)memory)[i] = -i;
    OK(MPI_Type_create_hvector(2, most / 2, (MPI_Aint)((intptr_t)second - (intptr_t)first), MPI_DOUBLE,
                               &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Send(first, 1, type, 1, 2, MPI_COMM_WORLD));
    OK(MPI_Type_free(&type));
  } else {
    OK(MPI_Recv(packed, most, MPI_DOUBLE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int i = 0; i < most; ++i)
      CHECK(packed[i] == ((i < most / 2) == shareable_first ? -(i % (most / 2)) : i % (most / 2)));
  }
  free(own);
}

int main(int argc, char** argv) {
  int rank;
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  OK(MPI_Alloc_mem(space, MPI_INFO_NULL, &memory));
  for (int count = most / 4; count <= most; count *= 4)
    for (int from = 0; from < layouts; ++from)
      for (int to = 0; to < layouts; ++to) transfer(rank, from, to, count);
  for (int layout = 0; layout < layouts; ++layout) cut(rank, layout);
  half_private(rank, 1);
  half_private(rank, 0);
  OK(MPI_Free_mem(memory));
  OK(MPI_Finalize());
  return 0;
}
