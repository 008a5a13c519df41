// Datatypes as the program sees them: envelopes and contents, handles freed while in use, wrong arguments,
// counts of received elements, packing in both representations, names.
#include "check.h"

#include <stddef.h>
#include <string.h>

static void contents_give_back_what_went_in(void) {
  int lengths[2] = {2, 1}, integers[8], ni, na, nd, combiner;
  MPI_Aint at[2] = {0, 16}, addresses[8];
  MPI_Datatype types[2] = {MPI_INT, MPI_DATATYPE_NULL}, outer, got[2];
  OK(MPI_Type_vector(3, 1, 2, MPI_DOUBLE, &types[1]));
  OK(MPI_Type_create_struct(2, lengths, at, types, &outer));
  MPI_Datatype inner = types[1];
  OK(MPI_Type_free(&types[1]));
  FAILS(MPI_ERR_TYPE, MPI_Type_free(&inner));
  OK(MPI_Type_get_envelope(outer, &ni, &na, &nd, &combiner));
  CHECK(ni == 3 && na == 2 && nd == 2 && combiner == MPI_COMBINER_STRUCT);
  FAILS(MPI_ERR_ARG, MPI_Type_get_contents(outer, 2, 2, 2, integers, addresses, got));
  OK(MPI_Type_get_contents(outer, 8, 8, 2, integers, addresses, got));
  CHECK(integers[0] == 2 && integers[1] == 2 && integers[2] == 1 && addresses[1] == 16 && got[0] == MPI_INT);
  // The inner type was freed by its first handle; this handle stays valid until it is freed, even without the
  // outer type.
  OK(MPI_Type_free(&outer));
  OK(MPI_Type_get_envelope(got[1], &ni, &na, &nd, &combiner));
  CHECK(ni == 3 && na == 0 && nd == 1 && combiner == MPI_COMBINER_VECTOR);
  OK(MPI_Type_free(&got[1]));
  OK(MPI_Type_get_envelope(MPI_INT, &ni, &na, &nd, &combiner));
  CHECK(ni == 0 && na == 0 && nd == 0 && combiner == MPI_COMBINER_NAMED);
  FAILS(MPI_ERR_TYPE, MPI_Type_get_contents(MPI_INT, 0, 0, 0, NULL, NULL, NULL));
}

static void large_constructors_need_large_questions(void) {
  MPI_Count lengths[2] = {1, 2}, at[2] = {0, 9}, ni, na, nc, nd, counts[8];
  int small, combiner, integers[1];
  MPI_Aint addresses[1];
  MPI_Datatype type, old[1];
  OK(MPI_Type_create_hindexed_c(2, lengths, at, MPI_INT, &type));
  FAILS(MPI_ERR_TYPE, MPI_Type_get_envelope(type, &small, &small, &small, &combiner));
  OK(MPI_Type_get_envelope_c(type, &ni, &na, &nc, &nd, &combiner));
  CHECK(ni == 0 && na == 0 && nc == 5 && nd == 1 && combiner == MPI_COMBINER_HINDEXED);
  OK(MPI_Type_get_contents_c(type, 0, 0, 8, 1, integers, addresses, counts, old));
  CHECK(counts[0] == 2 && counts[1] == 1 && counts[2] == 2 && counts[3] == 0 && counts[4] == 9);
  OK(MPI_Type_free(&type));
  MPI_Count size;
  OK(MPI_Type_contiguous_c((MPI_Count)1 << 40, MPI_DOUBLE, &type));
  OK(MPI_Type_size(type, &small));
  CHECK(small == MPI_UNDEFINED);
  OK(MPI_Type_size_c(type, &size));
  CHECK(size == (MPI_Count)8 << 40);
  OK(MPI_Type_free(&type));
}

static void wrong_arguments_are_told(void) {
  MPI_Datatype type = MPI_INT, derived;
  int value = 0, position = 0, one[1] = {1}, two[1] = {2}, four[1] = {4};
  char buffer[8];
  FAILS(MPI_ERR_TYPE, MPI_Type_free(&type));
  FAILS(MPI_ERR_COUNT, MPI_Type_contiguous(-1, MPI_INT, &derived));
  FAILS(MPI_ERR_TYPE, MPI_Type_contiguous(1, MPI_DATATYPE_NULL, &derived));
  FAILS(MPI_ERR_ARG, MPI_Type_create_subarray(1, four, four, one, MPI_ORDER_C, MPI_INT, &derived));
  FAILS(MPI_ERR_ARG, MPI_Type_create_subarray(1, four, two, one, 99, MPI_INT, &derived));
  FAILS(MPI_ERR_ARG, MPI_Type_contiguous_c(((MPI_Count)1 << 62), MPI_INT, &derived));
  OK(MPI_Type_contiguous(2, MPI_INT, &derived));
  FAILS(MPI_ERR_TYPE, MPI_Send(&value, 0, derived, 0, 0, MPI_COMM_SELF));
  OK(MPI_Type_commit(&derived));
  FAILS(MPI_ERR_ARG, MPI_Pack(&value, 1, MPI_INT, buffer, 3, &position, MPI_COMM_SELF));
  CHECK(position == 0);
  FAILS(MPI_ERR_OP, MPI_Reduce_local(buffer, buffer + 4, 1, derived, MPI_SUM));
  FAILS(MPI_ERR_OP, MPI_Reduce_local(&value, buffer, 1, MPI_FLOAT, MPI_BAND));
  OK(MPI_Type_free(&derived));
  CHECK(derived == MPI_DATATYPE_NULL);
}

static void received_elements_are_counted(void) {
  struct {
    int number;
    double values[2];
  } record = {1, {2, 3}}, got[2];
  int lengths[2] = {1, 2}, count, elements;
  MPI_Aint at[2] = {offsetof(__typeof__(record), number), offsetof(__typeof__(record), values)};
  MPI_Datatype types[2] = {MPI_INT, MPI_DOUBLE}, type;
  MPI_Status status;
  OK(MPI_Type_create_struct(2, lengths, at, types, &type));
  OK(MPI_Type_commit(&type));
  char half[12];
  memset(half, 0, sizeof half);
  OK(MPI_Sendrecv(half, 12, MPI_BYTE, 0, 7, got, 2, type, 0, 7, MPI_COMM_SELF, &status));
  OK(MPI_Get_count(&status, type, &count));
  OK(MPI_Get_elements(&status, type, &elements));
  CHECK(count == MPI_UNDEFINED && elements == 2);
  OK(MPI_Status_set_elements(&status, type, 4));
  OK(MPI_Get_elements(&status, type, &elements));
  CHECK(elements == 4);
  OK(MPI_Sendrecv(&record, 1, type, 0, 7, got, 2, type, 0, 7, MPI_COMM_SELF, &status));
  OK(MPI_Get_count(&status, type, &count));
  CHECK(count == 1 && got[0].values[1] == 3);
  OK(MPI_Type_free(&type));
}

static void packing_comes_back(void) {
  double values[6] = {1, 2, 3, 4, 5, 6}, back[6] = {0};
  int size, position = 0, number = 77, back_number = 0;
  MPI_Aint external_size, place = 0;
  char buffer[128];
  MPI_Datatype column;
  OK(MPI_Type_vector(3, 1, 2, MPI_DOUBLE, &column));
  OK(MPI_Type_commit(&column));
  OK(MPI_Pack_size(1, column, MPI_COMM_SELF, &size));
  CHECK(size >= 24 && size <= 100);
  OK(MPI_Pack(&number, 1, MPI_INT, buffer, 128, &position, MPI_COMM_SELF));
  OK(MPI_Pack(values, 1, column, buffer, 128, &position, MPI_COMM_SELF));
  int end = position;
  position = 0;
  OK(MPI_Unpack(buffer, end, &position, &back_number, 1, MPI_INT, MPI_COMM_SELF));
  OK(MPI_Unpack(buffer, end, &position, back, 1, column, MPI_COMM_SELF));
  CHECK(position == end && back_number == 77 && back[2] == 3 && back[4] == 5 && back[1] == 0);
  OK(MPI_Pack_external_size("external32", 1, column, &external_size));
  CHECK(external_size == 24);
  OK(MPI_Pack_external("external32", values, 1, column, buffer, 128, &place));
  CHECK(place == 24 && (unsigned char)buffer[0] == 0x3f && (unsigned char)buffer[8] == 0x40);
  memset(back, 0, sizeof back);
  place = 0;
  OK(MPI_Unpack_external("external32", buffer, 24, &place, back, 1, column));
  CHECK(back[2] == 3 && back[4] == 5);
  FAILS(MPI_ERR_ARG, MPI_Pack_external("native", values, 1, column, buffer, 128, &place));
  OK(MPI_Type_free(&column));
}

/// Packs `count` elements of the type at `position` and unpacks them again. `places` are where its `blocks` ints lie in an element,
/// which is `extent` ints long.
static void come_back(MPI_Datatype type, int count, const int* places, int blocks, int extent) {
  enum { most = 4096, middle = most / 2 };
  static int data[most], back[most], packed[most + 2];
  const int bytes = count * blocks * (int)sizeof(int);
  for (int i = 0; i < most; ++i) data[i] = 1000 + i;
  memset(back, 0, sizeof back);
  memset(packed, 0, sizeof packed);
  int position = 4;
  // One byte too few is refused, and nothing is written.
  FAILS(MPI_ERR_ARG, MPI_Pack(data + middle, count, type, packed, bytes + 3, &position, MPI_COMM_SELF));
  CHECK(position == 4 && packed[1] == 0);
  OK(MPI_Pack(data + middle, count, type, packed, bytes + 4, &position, MPI_COMM_SELF));
  CHECK(position == bytes + 4 && packed[0] == 0 && packed[1 + count * blocks] == 0);
  for (int e = 0; e < count; ++e)
    for (int i = 0; i < blocks; ++i)
      CHECK(packed[1 + e * blocks + i] == data[middle + e * extent + places[i]]);
  position = 4;
  FAILS(MPI_ERR_ARG, MPI_Unpack(packed, bytes + 3, &position, back + middle, count, type, MPI_COMM_SELF));
  CHECK(position == 4);
  OK(MPI_Unpack(packed, bytes + 4, &position, back + middle, count, type, MPI_COMM_SELF));
  CHECK(position == bytes + 4);
  int there = 0;
  for (int i = 0; i < most; ++i) {
    CHECK(back[i] == 0 || back[i] == data[i]);
    there += back[i] != 0;
  }
  CHECK(there == count * blocks);
  position = bytes + 4;
  OK(MPI_Pack(data, 0, type, packed, bytes + 4, &position, MPI_COMM_SELF));
  OK(MPI_Unpack(packed, bytes + 4, &position, back, 0, type, MPI_COMM_SELF));
  CHECK(position == bytes + 4);
}

static void small_types_come_back(void) {
  int places[70], lengths[70];
  // Vectors with as many blocks as fill a register, one more and one less, forwards and backwards.
  for (int blocks = 1; blocks <= 66; ++blocks)
    for (int stride = -4; stride <= 4; ++stride) {
      if (stride == 0) continue;
      MPI_Datatype type;
      OK(MPI_Type_vector(blocks, 1, stride, MPI_INT, &type));
      int position = 0;
      FAILS(MPI_ERR_TYPE, MPI_Pack(lengths, 1, type, places, sizeof places, &position, MPI_COMM_SELF));
      FAILS(MPI_ERR_TYPE, MPI_Unpack(lengths, sizeof lengths, &position, places, 1, type, MPI_COMM_SELF));
      OK(MPI_Type_commit(&type));
      for (int i = 0; i < blocks; ++i) places[i] = i * stride;
      come_back(type, 1, places, blocks, 0);
      OK(MPI_Type_free(&type));
    }
  // Blocks of 1 to 3 ints, up to more of them than are copied together.
  for (int blocks = 1; blocks <= 34; ++blocks) {
    int at[34], ints = 0, end = 0;
    for (int i = 0; i < blocks; ++i) {
      at[i] = end + i % 3;
      lengths[i] = 1 + i % 2 + i % 3 / 2;
      for (int j = 0; j < lengths[i]; ++j) places[ints++] = at[i] + j;
      end = at[i] + lengths[i] + 1;
    }
    MPI_Datatype packed_tight, type;
    OK(MPI_Type_indexed(blocks, lengths, at, MPI_INT, &packed_tight));
    OK(MPI_Type_create_resized(packed_tight, 0, (end + 1) * (MPI_Aint)sizeof(int), &type));
    OK(MPI_Type_commit(&type));
    for (int count = 1; count <= 9; count += 4) come_back(type, count, places, ints, end + 1);
    OK(MPI_Type_free(&packed_tight));
    OK(MPI_Type_free(&type));
  }
}

static void names_are_kept(void) {
  char name[MPI_MAX_OBJECT_NAME];
  int length;
  MPI_Datatype type;
  OK(MPI_Type_get_name(MPI_FLOAT_INT, name, &length));
  CHECK(strcmp(name, "MPI_FLOAT_INT") == 0 && length == 13);
  OK(MPI_Type_dup(MPI_INT, &type));
  OK(MPI_Type_get_name(type, name, &length));
  CHECK(length == 0 && name[0] == 0);
  OK(MPI_Type_set_name(type, "counter"));
  OK(MPI_Type_get_name(type, name, &length));
  CHECK(strcmp(name, "counter") == 0);
  int one = 1, two = 2;
  OK(MPI_Reduce_local(&one, &two, 1, type, MPI_SUM)); // a duplicate of a predefined type works as well
  CHECK(two == 3);
  OK(MPI_Type_free(&type));
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
  contents_give_back_what_went_in();
  large_constructors_need_large_questions();
  wrong_arguments_are_told();
  received_elements_are_counted();
  packing_comes_back();
  small_types_come_back();
  names_are_kept();
  OK(MPI_Finalize());
  return 0;
}
