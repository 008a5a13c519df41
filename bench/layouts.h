// Layouts of data that programs send: a derived datatype for each, and the loops that a user would write instead of it.
//
// Vectors have names such as d1s16: blocks of 1 double, starting 16 doubles apart (f: floats). The loops know neither length nor
// distance when they are compiled, as in a program whose grid is an input. The others follow the descriptions of
// applications in: Schneider, Gerstenberger, Hoefler, "Micro-applications for communication data access patterns and MPI
// datatypes", EuroMPI 2012.
#pragma once

#include "mpi_measure.h"

#include <stddef.h>

struct layout;
typedef void move_all(const struct layout*, char* strided, char* packed);

struct layout {
  size_t bytes; // packed
  size_t span;  // memory that the elements lie in
  int count;    // elements of `type`
  MPI_Datatype type;
  move_all *pack, *unpack; // by hand
  // What the loops by hand know: blocks of `block` elements.
  long blocks, block, stride, rows, row_stride;
  int* list;
  int* lengths; // of the blocks, where they differ (typed.c)
};

// ---- loops by hand ----

/// Defines pack_<name> and unpack_<name>, whose body copies, in order, in[AT] to out[k++].
#define BY_HAND(name, T, BODY)                                                                               \
  static void pack_##name(const struct layout* my, char* strided, char* packed) {                            \
    const T* restrict in = (const T*)strided;                                                                \
    T* restrict out = (T*)packed;                                                                            \
    long k = 0;                                                                                              \
    BODY(out[k++], in)                                                                                       \
  }                                                                                                          \
  static void unpack_##name(const struct layout* my, char* strided, char* packed) {                          \
    T* restrict out = (T*)strided;                                                                           \
    const T* restrict in = (const T*)packed;                                                                 \
    long k = 0;                                                                                              \
    BACK_##BODY(in[k++], out)                                                                                \
  }

#define EACH_ELEMENT(packed, data)                                                                           \
  for (long i = 0; i < my->blocks; ++i) packed = data[i * my->stride];
#define BACK_EACH_ELEMENT(packed, data)                                                                      \
  for (long i = 0; i < my->blocks; ++i) data[i * my->stride] = packed;
#define EACH_BLOCK(packed, data)                                                                             \
  for (long i = 0; i < my->blocks; ++i)                                                                      \
    for (long j = 0; j < my->block; ++j) packed = data[i * my->stride + j];
#define BACK_EACH_BLOCK(packed, data)                                                                        \
  for (long i = 0; i < my->blocks; ++i)                                                                      \
    for (long j = 0; j < my->block; ++j) data[i * my->stride + j] = packed;
#define EACH_ROW(packed, data)                                                                               \
  for (long r = 0; r < my->rows; ++r)                                                                        \
    for (long i = 0; i < my->blocks; ++i)                                                                    \
      for (long j = 0; j < my->block; ++j) packed = data[r * my->row_stride + i * my->stride + j];
#define BACK_EACH_ROW(packed, data)                                                                          \
  for (long r = 0; r < my->rows; ++r)                                                                        \
    for (long i = 0; i < my->blocks; ++i)                                                                    \
      for (long j = 0; j < my->block; ++j) data[r * my->row_stride + i * my->stride + j] = packed;
#define EACH_LISTED(packed, data)                                                                            \
  for (long i = 0; i < my->blocks; ++i) packed = data[my->list[i]];
#define BACK_EACH_LISTED(packed, data)                                                                       \
  for (long i = 0; i < my->blocks; ++i) data[my->list[i]] = packed;
#define EACH_LISTED_BLOCK(packed, data)                                                                      \
  for (long i = 0; i < my->blocks; ++i)                                                                      \
    for (long j = 0; j < my->block; ++j) packed = data[my->list[i] + j];
#define BACK_EACH_LISTED_BLOCK(packed, data)                                                                 \
  for (long i = 0; i < my->blocks; ++i)                                                                      \
    for (long j = 0; j < my->block; ++j) data[my->list[i] + j] = packed;

BY_HAND(doubles, double, EACH_ELEMENT)
BY_HAND(floats, float, EACH_ELEMENT)
BY_HAND(double_blocks, double, EACH_BLOCK)
BY_HAND(float_blocks, float, EACH_BLOCK)
BY_HAND(double_rows, double, EACH_ROW)
BY_HAND(float_rows, float, EACH_ROW)
BY_HAND(listed_doubles, double, EACH_LISTED)
BY_HAND(listed_floats, float, EACH_LISTED)
BY_HAND(listed_double_blocks, double, EACH_LISTED_BLOCK)
BY_HAND(listed_float_blocks, float, EACH_LISTED_BLOCK)

// Atoms that leave a part of space (LAMMPS): of each, its place, a tag and a type. `rows` is the number of atoms in memory, whose
// tags lie behind all places, and types behind all tags.
static void pack_atoms(const struct layout* my, char* strided, char* packed) {
  const double* restrict places = (const double*)strided;
  const int* restrict tags = (const int*)(places + 3 * my->rows), * restrict types = tags + my->rows;
  double* restrict out = (double*)packed;
  int* restrict numbers = (int*)(out + 3 * my->blocks);
  for (long i = 0; i < my->blocks; ++i)
    for (long j = 0; j < 3; ++j) *out++ = places[3 * my->list[i] + j];
  for (long i = 0; i < my->blocks; ++i) *numbers++ = tags[my->list[i]];
  for (long i = 0; i < my->blocks; ++i) *numbers++ = types[my->list[i]];
}
static void unpack_atoms(const struct layout* my, char* strided, char* packed) {
  double* restrict places = (double*)strided;
  int* restrict tags = (int*)(places + 3 * my->rows), * restrict types = tags + my->rows;
  const double* restrict in = (const double*)packed;
  const int* restrict numbers = (const int*)(in + 3 * my->blocks);
  for (long i = 0; i < my->blocks; ++i)
    for (long j = 0; j < 3; ++j) places[3 * my->list[i] + j] = *in++;
  for (long i = 0; i < my->blocks; ++i) tags[my->list[i]] = *numbers++;
  for (long i = 0; i < my->blocks; ++i) types[my->list[i]] = *numbers++;
}

// Structs with padding, one after another.
struct record {
  int tag;
  double place[3];
  char kind;
};
enum { record_bytes = sizeof(int) + 3 * sizeof(double) + 1 };
static void pack_records(const struct layout* my, char* strided, char* packed) {
  const struct record* restrict in = (const struct record*)strided;
  char* restrict out = packed;
  for (long i = 0; i < my->blocks; ++i, out += record_bytes) {
    memcpy(out, &in[i].tag, sizeof in->tag);
    memcpy(out + sizeof in->tag, in[i].place, sizeof in->place);
    out[record_bytes - 1] = in[i].kind;
  }
}
static void unpack_records(const struct layout* my, char* strided, char* packed) {
  struct record* restrict out = (struct record*)strided;
  const char* restrict in = packed;
  for (long i = 0; i < my->blocks; ++i, in += record_bytes) {
    memcpy(&out[i].tag, in, sizeof out->tag);
    memcpy(out[i].place, in + sizeof out->tag, sizeof out->place);
    out[i].kind = in[record_bytes - 1];
  }
}

// Blocks of 1 to 20 doubles: `list` has the place and the length of each.
static void pack_lengths(const struct layout* my, char* strided, char* packed) {
  const double* restrict in = (const double*)strided;
  double* restrict out = (double*)packed;
  for (long i = 0; i < my->blocks; ++i)
    for (long j = 0; j < my->list[2 * i + 1]; ++j) *out++ = in[my->list[2 * i] + j];
}
static void unpack_lengths(const struct layout* my, char* strided, char* packed) {
  double* restrict out = (double*)strided;
  const double* restrict in = (const double*)packed;
  for (long i = 0; i < my->blocks; ++i)
    for (long j = 0; j < my->list[2 * i + 1]; ++j) out[my->list[2 * i] + j] = *in++;
}

// ---- layouts ----

/// `blocks` blocks of `block` doubles or floats, `stride` apart, in one element of the datatype.
static inline struct layout vector_layout(bool doubles, long blocks, long block, long stride) {
  size_t each = doubles ? sizeof(double) : sizeof(float);
  struct layout made = {.count = 1, .blocks = blocks, .block = block, .stride = stride};
  made.bytes = (size_t)(blocks * block) * each;
  made.span = (size_t)((blocks - 1) * stride + block) * each;
  if (block == 1) {
    made.pack = doubles ? pack_doubles : pack_floats;
    made.unpack = doubles ? unpack_doubles : unpack_floats;
  } else {
    made.pack = doubles ? pack_double_blocks : pack_float_blocks;
    made.unpack = doubles ? unpack_double_blocks : unpack_float_blocks;
  }
  MPI_Type_vector((int)blocks, (int)block, (int)stride, doubles ? MPI_DOUBLE : MPI_FLOAT, &made.type);
  return made;
}

/// `rows` rows, `row_stride` apart, of such vectors.
static inline struct layout rows_layout(bool doubles, long rows, long row_stride, long blocks, long block,
                                        long stride) {
  size_t each = doubles ? sizeof(double) : sizeof(float);
  struct layout made = vector_layout(doubles, blocks, block, stride);
  MPI_Datatype row = made.type;
  MPI_Type_create_hvector((int)rows, 1, (MPI_Aint)((size_t)row_stride * each), row, &made.type);
  MPI_Type_free(&row);
  made.rows = rows;
  made.row_stride = row_stride;
  made.bytes *= (size_t)rows;
  made.span += (size_t)((rows - 1) * row_stride) * each;
  made.pack = doubles ? pack_double_rows : pack_float_rows;
  made.unpack = doubles ? unpack_double_rows : unpack_float_rows;
  return made;
}

/// `blocks` blocks of `block` at irregular places, in ascending order, a third of the memory between them unused.
static inline struct layout listed_layout(bool doubles, long blocks, long block) {
  size_t each = doubles ? sizeof(double) : sizeof(float);
  struct layout made = {.count = 1, .blocks = blocks, .block = block};
  made.list = allocate((size_t)blocks, sizeof *made.list);
  long at = 0;
  for (long i = 0; i < blocks; ++i) {
    at += block + (long)(random_number((uint64_t)i) % (uint64_t)(block + 1));
    made.list[i] = (int)at;
  }
  made.bytes = (size_t)(blocks * block) * each;
  made.span = (size_t)(at + block) * each;
  if (block == 1) {
    made.pack = doubles ? pack_listed_doubles : pack_listed_floats;
    made.unpack = doubles ? unpack_listed_doubles : unpack_listed_floats;
  } else {
    made.pack = doubles ? pack_listed_double_blocks : pack_listed_float_blocks;
    made.unpack = doubles ? unpack_listed_double_blocks : unpack_listed_float_blocks;
  }
  MPI_Type_create_indexed_block((int)blocks, (int)block, made.list, doubles ? MPI_DOUBLE : MPI_FLOAT,
                                &made.type);
  return made;
}

/// `atoms` atoms, of half as many again in memory.
static inline struct layout atoms_layout(long atoms) {
  struct layout made = listed_layout(false, atoms, 1);
  MPI_Type_free(&made.type);
  made.rows = made.list[atoms - 1] + 1;
  made.bytes = (size_t)atoms * (3 * sizeof(double) + 2 * sizeof(int));
  made.span = (size_t)made.rows * (3 * sizeof(double) + 2 * sizeof(int));
  made.pack = pack_atoms;
  made.unpack = unpack_atoms;
  MPI_Datatype place, parts[2];
  MPI_Type_contiguous(3, MPI_DOUBLE, &place);
  MPI_Type_create_indexed_block((int)atoms, 1, made.list, place, &parts[0]);
  MPI_Type_create_indexed_block((int)atoms, 1, made.list, MPI_INT, &parts[1]);
  MPI_Aint tags = (MPI_Aint)((size_t)made.rows * 3 * sizeof(double)),
           types = tags + (MPI_Aint)((size_t)made.rows * sizeof(int));
  MPI_Type_create_struct(3, (int[]){1, 1, 1}, (MPI_Aint[]){0, tags, types},
                         (MPI_Datatype[]){parts[0], parts[1], parts[1]}, &made.type);
  MPI_Type_free(&place);
  MPI_Type_free(&parts[0]);
  MPI_Type_free(&parts[1]);
  return made;
}

/// `count` structs with padding, each an element of the datatype.
static inline struct layout records_layout(long count) {
  struct layout made = {.count = (int)count, .blocks = count, .pack = pack_records, .unpack = unpack_records};
  made.bytes = (size_t)count * record_bytes;
  made.span = (size_t)count * sizeof(struct record);
  MPI_Datatype members;
  MPI_Type_create_struct(3, (int[]){1, 3, 1},
                         (MPI_Aint[]){offsetof(struct record, tag), offsetof(struct record, place),
                                      offsetof(struct record, kind)},
                         (MPI_Datatype[]){MPI_INT, MPI_DOUBLE, MPI_CHAR}, &members);
  MPI_Type_create_resized(members, 0, sizeof(struct record), &made.type);
  MPI_Type_free(&members);
  return made;
}

/// `blocks` blocks of 1 to 20 doubles, 1 to 3 doubles apart.
static inline struct layout lengths_layout(long blocks) {
  struct layout made = {.count = 1, .blocks = blocks, .pack = pack_lengths, .unpack = unpack_lengths};
  made.list = allocate((size_t)blocks, 2 * sizeof *made.list);
  int *lengths = allocate((size_t)blocks, sizeof *lengths),
      *places = allocate((size_t)blocks, sizeof *places);
  long at = 0;
  for (long i = 0; i < blocks; ++i) {
    lengths[i] = 1 + (int)(random_number((uint64_t)(2 * i)) % 20);
    places[i] = (int)at;
    made.list[2 * i] = places[i];
    made.list[2 * i + 1] = lengths[i];
    made.bytes += (size_t)lengths[i] * sizeof(double);
    made.span = (size_t)(at + lengths[i]) * sizeof(double);
    at += lengths[i] + 1 + (long)(random_number((uint64_t)(2 * i + 1)) % 3);
  }
  MPI_Type_indexed((int)blocks, lengths, places, MPI_DOUBLE, &made.type);
  free(lengths);
  free(places);
  return made;
}

static inline long at_least(long value, long least) { return value < least ? least : value; }

enum { side = 130 }; // of the grids of NAS MG and LU, with their halo

/// The layout with this name and about `bytes` bytes of data; .pack is NULL if there is no such name.
static inline struct layout layout_of(const char* name, size_t bytes) {
  const long doubles = at_least((long)(bytes / sizeof(double)), 1),
             floats = at_least((long)(bytes / sizeof(float)), 1);
  long block, stride;
  char element;
  if (sscanf(name, "%c%lds%ld", &element, &block, &stride) == 3 && (element == 'd' || element == 'f'))
    return vector_layout(element == 'd', at_least((element == 'd' ? doubles : floats) / block, 1), block,
                         stride);
  if (sscanf(name, "indexed%ld", &block) == 1)
    return listed_layout(true, at_least(doubles / block, 1), block);
  // A face of a grid with a halo, for the three directions of the sweep. The last dimension is consecutive.
  if (strcmp(name, "mg_x") == 0)
    return rows_layout(true, at_least(doubles / (side - 2), 1), (long)side * side, side - 2, 1, side);
  if (strcmp(name, "mg_y") == 0)
    return vector_layout(true, at_least(doubles / (side - 2), 1), side - 2, (long)side * side);
  if (strcmp(name, "mg_z") == 0)
    return vector_layout(true, at_least(doubles / (side - 2), 1), side - 2, side);
  // Five unknowns in each cell of a plane.
  if (strcmp(name, "lu_y") == 0) return vector_layout(true, at_least(doubles / 5, 1), 5, 5L * side);
  // Vectors of three complex numbers in a lattice of four dimensions: half of each plane, for each time slice.
  if (strcmp(name, "milc") == 0)
    return vector_layout(false, at_least(floats / (6 * 128), 1), 6 * 128, 6L * 128 * 16);
  // Halos of fields with levels: three cells wide in the consecutive direction.
  if (strcmp(name, "wrf_x") == 0)
    return rows_layout(false, at_least(floats / (3 * 40), 1), 136L * 40, 40, 3, 136);
  if (strcmp(name, "records") == 0) return records_layout(at_least((long)bytes / record_bytes, 1));
  if (strcmp(name, "lengths") == 0) return lengths_layout(at_least(doubles * 2 / 21, 1));
  if (strcmp(name, "lammps") == 0) return atoms_layout(at_least((long)(bytes / 32), 1));
  // Points and vectors on the boundary of a mesh.
  if (strcmp(name, "specfem_oc") == 0) return listed_layout(false, floats, 1);
  if (strcmp(name, "specfem_cm") == 0) return listed_layout(false, at_least(floats / 3, 1), 3);
  // Columns of a matrix of complex numbers, one after another: a transpose of 512 rows.
  if (strcmp(name, "fft") == 0) {
    long columns = at_least(doubles / 2 / 512, 1);
    return rows_layout(true, columns, 2, 512, 2, 2 * at_least(columns, 512));
  }
  return (struct layout){0};
}

/// Whether there are about `bytes` bytes of data, in a few blocks at least.
static inline bool has_gaps_and_size(const struct layout* layout, size_t bytes) {
  long blocks = layout->blocks * at_least(layout->rows, 1);
  return blocks >= 4 && 2 * layout->bytes <= 3 * bytes && 3 * layout->bytes >= 2 * bytes;
}

static inline void free_layout(struct layout* layout) {
  MPI_Type_free(&layout->type);
  free(layout->list);
}
