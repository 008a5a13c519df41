// Datatypes: one normal form for every constructor, and the calls that move bytes through it.
// Source: MPI 5.0, chapter 5.
//
// Glossary
//   type map     the standard's sequence of (basic type, displacement)
//   packed       the type map's bytes in order, without gaps: what travels
//   block        a run of bytes that are contiguous in memory and in the packed form
//   size         bytes of data in one element
//   extent       ub - lb;  true extent: from the first to the last byte of data
#pragma once

#include "copy/moves.h"
#include "copy/raw.h"
#include "copy/windows.h"
#include "datatype/layout.h"
#include "object/attribute.h"
#include "object/object.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace near::datatype {

using object::Result;

/// How a type was made: the arguments of its constructor, for MPI_Type_get_envelope and _get_contents. Unless
/// `large`, all counts were passed as int.
struct Envelope {
  int combiner = MPI_COMBINER_NAMED;
  bool large = false; ///< made by a _c constructor
  std::vector<int> integers;
  std::vector<MPI_Aint> addresses;     ///< displacements of a non-_c constructor
  std::vector<MPI_Count> counts;       ///< of a _c constructor
  std::vector<struct Datatype*> types; ///< owned references
};

/// Which row of the standard's table of reductions (MPI 5.0, section 6.9.2) a named type belongs to.
enum class Family : std::uint8_t {
  none,
  c_integer,
  fortran_integer,
  floating,
  logical,
  complex,
  byte,
  multi_language, ///< MPI_AINT, MPI_OFFSET, MPI_COUNT
  pair,
};

/// A pair type's second half.
struct PairIndex {
  Basic value = Basic::none, index = Basic::none;
  MPI_Count at = 0; ///< bytes from the value to the index
};

/// A grid or list within an element, and the functions that copy it. It takes more memory than the description of a vector, so an
/// element has only a few of them.
struct Part {
  MPI_Count at = 0; ///< its origin, relative to the element's form.at
  MPI_Count bytes = 0;
  copy::Grid grid;
  copy::CopyGrid gather = nullptr, scatter = nullptr;
};
static_assert(sizeof(Part) == 104, "construct.cpp names this size as the reason for its limit");

/// A short list of blocks.
struct FewBlocks {
  std::vector<std::int32_t> numbers; ///< the memory of `blocks`
  copy::Blocks blocks;
  copy::CutBlocks cut;                     ///< the blocks of one element, unless all of one length
  std::vector<copy::Window> window_memory; ///< the memory of `windows`
  copy::Windows windows;                   ///< for small elements, if the processor copies windows
  /// Whether several elements are copied block by block: the first block of each, then the second block of each.
  bool by_columns;
};

struct Datatype : object::Object, Layout {
  int user_handles = 1; ///< of the references, those that MPI_Type_free may drop
  bool committed = false;
  bool contiguous = false; ///< n elements are one block of n * size bytes at address + true_lb
  /// One element as a grid or list, starting at form.at, and its copy functions; these are null if it is neither.
  copy::Grid grid;
  copy::CopyGrid gather = nullptr, scatter = nullptr;
  /// The blocks of a committed element that is not a grid or has windows.
  /// Null if there are too many, or if they are too far apart for 32 bits.
  std::shared_ptr<const FewBlocks> few;
  /// Small committed elements as windows, the largest count of elements
  /// for which these are used, and the functions for several elements.
  const copy::Windows* windows = nullptr;
  MPI_Count most_by_windows = -1; ///< -1 if there are none, since a count may be 0
  copy::CopyElements gather_several = nullptr, scatter_several = nullptr;
  /// The grids and lists of which a committed element consists, in packed order, if there are several with more than a few blocks.
  std::vector<Part> parts;
  Basic basic = Basic::none;    ///< of named types and their duplicates
  Family family = Family::none; ///< of named types and their duplicates
  PairIndex pair;               ///< of pair types
  Envelope envelope;
  object::AttributeSet attributes;
  std::string name;
};

using copy::MemoryKind;

/// A user's buffer: its address, the number and datatype of its elements, and its kind of memory.
struct Buffer {
  void* address = nullptr;
  MPI_Count count = 0;
  Datatype* type = nullptr;
  MemoryKind kind = MemoryKind::host;
  MPI_Count bytes() const { return count * type->size; }
  bool is_contiguous() const { return type->contiguous || bytes() == 0; }
  /// First byte of the data of a contiguous buffer.
  std::byte* contiguous_start() const {
    // Computed as integers, since MPI_BOTTOM is null and its displacements are addresses.
    return reinterpret_cast<std::byte*>(reinterpret_cast<std::intptr_t>(address) + type->true_lb);
  }
};

/// Builds the predefined types, once.
Result make_predefined_types();
/// The standard's datatype constants (MPI 5.0, appendix A.1.1) lie in one range.
using PredefinedTypes = object::PredefinedTable<Datatype, 0x200, 0x100>;
/// In the header, so that entry points find a datatype without a function call.
struct Datatypes {
  PredefinedTypes predefined;
  /// Bytes in one element of each predefined contiguous type, in the order of `predefined`; 0 for others.
  std::uint8_t contiguous_sizes[0x100] = {};
  object::Pool<Datatype, object::Kind::datatype> pool;
};
extern constinit object::Immortal<Datatypes> datatype_storage;
inline object::Pool<Datatype, object::Kind::datatype>& datatypes() { return datatype_storage.value.pool; }
/// The size of an element of a predefined contiguous datatype, whose elements lie one after another at the
/// buffer's address; 0 for any other handle. This byte is all that small messages need to know about the type.
inline std::uint8_t predefined_contiguous_size(MPI_Datatype handle) {
  std::uintptr_t index = reinterpret_cast<std::uintptr_t>(handle) - PredefinedTypes::first_handle;
  return index < sizeof datatype_storage.value.contiguous_sizes
             ? datatype_storage.value.contiguous_sizes[index]
             : 0;
}
/// The predefined type with this handle; nullptr for any other handle.
inline Datatype* find_predefined(MPI_Datatype handle) {
  return datatype_storage.value.predefined.find(reinterpret_cast<std::uintptr_t>(handle));
}
/// Returns the name of the first predefined datatype with such elements, such as "MPI_INT"; "" if there is none.
const char* name_of(Basic basic);
/// Returns the live datatype with this handle, predefined or not; nullptr for MPI_DATATYPE_NULL and any other value.
inline Datatype* find_datatype(MPI_Datatype handle) {
  if (Datatype* named = find_predefined(handle)) [[likely]]
    return named;
  return datatypes().find(reinterpret_cast<std::uintptr_t>(handle));
}
/// Drops one reference; the last one destroys the type and drops its references to the types it was made of.
void release(Datatype* type);
/// Implements MPI_Type_free: runs the attributes' delete callbacks when the last of the program's handles is
/// freed, then releases the type. If a callback fails, the type stays. Fails with MPI_ERR_TYPE for a
/// predefined type.
Result free_type(Datatype& type);
/// Counts one more handle of the program, as returned by MPI_Type_get_contents. Revives the handle of a type
/// that only other types still refer to. Has no effect on predefined types.
Datatype* give_handle(Datatype& type);
/// Describes the type in messages: by its name, or as "datatype 0x4c000001" if it has none.
std::string describe(const Datatype& type);

/// The failure that check_copyable() returns for a buffer outside host memory.
[[gnu::cold]] Result refuse_kind(const Buffer& buffer);
/// Fails with MPI_ERR_BUFFER unless the processor can copy the data; an empty buffer needs no copy.
inline Result check_copyable(const Buffer& buffer) {
  if (copy::can_copy(buffer.kind)) [[likely]]
    return {};
  return refuse_kind(buffer);
}

// The functions below copy host memory. The calls that take buffers from the program have called check_copyable().

/// Copies packed bytes [offset, offset + bytes) of the buffer into `out`. The offset may lie inside a basic
/// type. Precondition: offset + bytes <= buffer.bytes().
void pack(const Buffer& buffer, MPI_Count offset, void* out, MPI_Count bytes);
/// The inverse of pack(): writes `in`, which holds packed bytes [offset, offset + bytes) of the buffer, into
/// the buffer.
void unpack(const Buffer& buffer, MPI_Count offset, const void* in, MPI_Count bytes);
/// unpack() for bytes that another processor has just written.
void unpack_arrived(const Buffer& buffer, MPI_Count offset, const void* in, MPI_Count bytes);
/// The first byte, in packed order, of the data of an element at `address`.
inline std::byte* first_byte(void* address, const Datatype& type) {
  return reinterpret_cast<std::byte*>(reinterpret_cast<std::intptr_t>(address) + type.form.at);
}
/// pack() of a whole buffer of `bytes` bytes. Inline, so that one element, or several small ones, go straight to the function for
/// them.
[[gnu::always_inline]] inline void pack_whole(void* address, MPI_Count count, Datatype& type, std::byte* out,
                                              MPI_Count bytes) {
  if (count == 1 && type.gather != nullptr) [[likely]]
    type.gather(out, first_byte(address, type), type.grid);
  else if (count <= type.most_by_windows)
    type.gather_several(out, first_byte(address, type), *type.windows, static_cast<std::size_t>(count));
  else
    pack({address, count, &type}, 0, out, bytes);
}
/// unpack() of the first `bytes` bytes of a buffer. Inline for one whole element and for several small ones.
[[gnu::always_inline]] inline void unpack_first(void* address, MPI_Count count, Datatype& type,
                                                const std::byte* in, MPI_Count bytes) {
  if (count == 1 && type.scatter != nullptr && bytes == type.size) [[likely]]
    type.scatter(const_cast<std::byte*>(in), first_byte(address, type), type.grid);
  else if (count <= type.most_by_windows && bytes == count * type.size)
    type.scatter_several(const_cast<std::byte*>(in), first_byte(address, type), *type.windows,
                         static_cast<std::size_t>(count));
  else
    unpack({address, count, &type}, 0, in, bytes);
}
/// Whether moving the buffer in parts takes longer than moving it at once. This holds for columns of a matrix, one after
/// another, whose lines each part would need again.
bool loses_by_parts(const Buffer& buffer);
/// Copies `bytes` packed bytes from one layout to another, for messages to self and the local part
/// of collectives.
void copy(const Buffer& from, const Buffer& to, MPI_Count bytes);
/// Consecutive bytes in memory.
struct Piece {
  std::byte* address;
  std::size_t bytes;
};
/// Appends the memory of packed bytes [offset, offset + bytes) to `out`, as at most `limit` pieces. Returns how many
/// packed bytes they cover. For providers that take lists of pieces.
MPI_Count pieces(const Buffer& buffer, MPI_Count offset, MPI_Count bytes, std::vector<Piece>& out,
                 std::size_t limit);

// Constructors. Each makes a new, uncommitted type with one reference. An overflow of a size or extent is an
// MPI_ERR_ARG whose message contains the numbers. Callers keep their references to the old types; the new
// type takes its own. The bindings record the envelope.
Result make_contiguous(MPI_Count count, Datatype& old, Datatype*& made);
/// `stride` is in elements (vector) or bytes (hvector).
Result make_vector(MPI_Count count, MPI_Count block_length, MPI_Count stride, bool stride_in_bytes,
                   Datatype& old, Datatype*& made);
/// Displacements are in elements or bytes.
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
/// Allows the type in communication. Has no effect if it is already committed. The normal form already exists.
Result commit(Datatype& type);
/// Records how `type` was made and takes a reference to each of `types`.
void record_envelope(Datatype& type, int combiner, bool large, std::vector<int> integers,
                     std::vector<MPI_Aint> addresses, std::vector<MPI_Count> counts,
                     std::span<Datatype* const> types);

// Predefined types without a name: the same arguments yield the same type, which cannot be freed.
/// Finds the pair type of `value` and `index` for MPI_MINLOC and MPI_MAXLOC (MPI_Type_get_value_index);
/// nullptr if there is none.
Result value_index_type(Datatype& value, Datatype& index, Datatype*& pair);
/// Finds the type of MPI_Type_create_f90_real, _complex or _integer, selected by `combiner`. `precision` or
/// `range` is MPI_UNDEFINED if it is not given. Fails with MPI_ERR_ARG if no representation is wide enough.
Result fortran_type(int combiner, int precision, int range, Datatype*& made);
/// Finds the predefined type of that class and size (MPI_Type_match_size).
Result match_size(int type_class, int size, Datatype*& found);

/// The number of whole basic types in the first `bytes` packed bytes of elements of `type`; MPI_UNDEFINED if
/// the bytes end inside one.
MPI_Count elements_in(const Datatype& type, MPI_Count bytes);
/// The inverse of elements_in(), for MPI_Status_set_elements: the packed bytes of the first `elements` basic
/// types; -1 if the type holds none or the number does not fit in 63 bits.
MPI_Count bytes_of_elements(const Datatype& type, MPI_Count elements);

inline MPI_Datatype public_handle(const Datatype& type) {
  return reinterpret_cast<MPI_Datatype>(static_cast<std::uintptr_t>(type.handle));
}

} // namespace near::datatype
