// Datatypes: one normal form for every constructor, and the calls that move bytes through it.
// Source: MPI 5.0, chapter 5.
//
// Glossary
//   type map     the standard's sequence of (basic type, displacement)
//   packed       the type map's bytes in order, without gaps: what travels
//   block        a run of bytes that are contiguous in memory and in the packed form
//   size         bytes of data in one element;  extent = ub - lb;  true extent: from first to last byte of
//   data
#pragma once

#include "object/attribute.h"
#include "object/object.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace near::datatype {

using object::Result;

struct NormalForm; ///< defined by normal_form.h; what pack, unpack and iterate run on

/// How a type was made: the arguments of its constructor, for MPI_Type_get_envelope and _get_contents.
/// With `large` false all of counts came as int arguments.
struct Envelope {
  int combiner = MPI_COMBINER_NAMED;
  bool large = false; ///< made by a _c constructor
  std::vector<int> integers;
  std::vector<MPI_Aint> addresses;     ///< displacements of a non-_c constructor
  std::vector<MPI_Count> counts;       ///< of a _c constructor
  std::vector<struct Datatype*> types; ///< owned references
};

/// What reductions and heterogeneous checks need to know of a basic type.
enum class Basic : std::uint8_t {
  none,
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  float16,
  float32,
  float64,
  float80,
  float128,
  complex32,
  complex64,
  complex80,
  complex128,
  complex16,
  logical1,
  logical2,
  logical4,
  logical8,
  logical16,
  boolean,
  byte,
  character,
  wide_character,
  pair,
  packed,
};

struct Datatype : object::Object {
  MPI_Count size = 0;
  MPI_Count lb = 0, extent = 0;
  MPI_Count true_lb = 0, true_extent = 0;
  bool committed = false;
  bool dense =
      false; ///< n elements are one block of n * size bytes at address + true_lb (extent == size, no gap)
  Basic basic = Basic::none;   ///< for named types
  Datatype* element = nullptr; ///< the one basic type all of this consists of, or nullptr (mixed)
  MPI_Count element_count = 0; ///< basic types in one element of this type (MPI_Get_elements)
  std::shared_ptr<const NormalForm> form;
  Envelope envelope;
  object::AttributeSet attributes;
  std::string name;
};

/// A user's buffer: where, how many, of what. The memory kind joins when device buffers do.
struct View {
  void* address = nullptr;
  MPI_Count count = 0;
  Datatype* type = nullptr;
  MPI_Count bytes() const { return count * type->size; }
  bool is_dense() const { return type->dense || bytes() == 0; }
  /// First byte of the data of a dense view.
  std::byte* dense_start() const { return static_cast<std::byte*>(address) + type->true_lb; }
};

/// Builds the predefined types; idempotent.
Result make_predefined_types();
object::Pool<Datatype, object::Kind::datatype>& datatypes();
/// Predefined or dynamic; nullptr for MPI_DATATYPE_NULL and anything that is no datatype.
Datatype* find_datatype(MPI_Datatype handle);
void release(Datatype* type);
std::string describe(const Datatype& type);

/// Copies packed bytes [offset, offset + bytes) of the view into `out`. Any offset, also inside a basic type.
/// Precondition: offset + bytes <= view.bytes().
void pack(const View& view, MPI_Count offset, void* out, MPI_Count bytes);
/// The inverse: `in` holds packed bytes [offset, offset + bytes) of the view.
void unpack(const View& view, MPI_Count offset, const void* in, MPI_Count bytes);
/// Typed copy between two layouts of `bytes` packed bytes each; for messages to self and collectives' local
/// part.
void copy(const View& from, const View& to, MPI_Count bytes);
/// Appends the blocks of packed bytes [offset, offset + bytes) as (address, length), at most `limit` of them;
/// returns how many packed bytes they cover. For providers that take lists of pieces.
struct Piece {
  std::byte* address;
  std::size_t bytes;
};
MPI_Count pieces(const View& view, MPI_Count offset, MPI_Count bytes, std::vector<Piece>& out,
                 std::size_t limit);

// Constructors. Each returns a new, uncommitted type with one reference; overflow of a size or extent is
// MPI_ERR_ARG with the figures. Callers keep their references to the old types; the new type takes its own.
// The glue records the envelope.
Result make_contiguous(MPI_Count count, Datatype& old, Datatype*& made);
/// `stride` in elements (vector) or bytes (hvector).
Result make_vector(MPI_Count count, MPI_Count block_length, MPI_Count stride, bool stride_in_bytes,
                   Datatype& old, Datatype*& made);
/// Displacements in elements or bytes.
Result make_indexed(std::span<const MPI_Count> block_lengths, std::span<const MPI_Count> displacements,
                    bool displacements_in_bytes, Datatype& old, Datatype*& made);
Result make_indexed_block(MPI_Count block_length, std::span<const MPI_Count> displacements,
                          bool displacements_in_bytes, Datatype& old, Datatype*& made);
Result make_struct(std::span<const MPI_Count> block_lengths, std::span<const MPI_Count> displacements,
                   std::span<Datatype* const> types, Datatype*& made);
Result make_subarray(std::span<const MPI_Count> sizes, std::span<const MPI_Count> subsizes,
                     std::span<const MPI_Count> starts, int order, Datatype& old, Datatype*& made);
Result make_darray(int size, int rank, std::span<const MPI_Count> global_sizes,
                   std::span<const int> distributions, std::span<const int> arguments,
                   std::span<const int> process_sizes, int order, Datatype& old, Datatype*& made);
Result make_resized(Datatype& old, MPI_Count lb, MPI_Count extent, Datatype*& made);
Result make_duplicate(Datatype& old, Datatype*& made);
/// Compiles the normal form for speed; idempotent.
Result commit(Datatype& type);

/// Whole basic types in the first `bytes` packed bytes of elements of `type`; MPI_UNDEFINED when they end
/// inside one.
MPI_Count elements_in(const Datatype& type, MPI_Count bytes);

inline MPI_Datatype public_handle(const Datatype& type) {
  return reinterpret_cast<MPI_Datatype>(static_cast<std::uintptr_t>(type.handle));
}

} // namespace near::datatype
