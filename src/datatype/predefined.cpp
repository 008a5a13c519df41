// The predefined types: named ones from the table, pairs, and the Fortran types that are selected by
// precision. Source: MPI 5.0, sections 3.2.2, 5.1.1 (value-index types), 6.9.4, 19.1.9 (sized Fortran types),
// 20.3.
#include "datatype/construct.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <tuple>

namespace near::datatype {

constinit object::Immortal<Datatypes> datatype_storage;

namespace {

using object::Immortal;

// Short names for the values in the table's columns.
using enum Basic;

struct NamedRow {
  MPI_Datatype handle;
  const char* name;
  MPI_Count size, alignment;
  Basic basic;
  Family family;
  MPI_Count external_size;
};

std::span<const NamedRow> named_rows() {
  static const NamedRow rows[] = {
#define NEAR_TYPE(constant, name, type, basic, family, external)                                             \
  {constant, name, sizeof(type), alignof(type), basic, Family::family, external},
#include "datatype/predefined_table.def"
#undef NEAR_TYPE
  };
  return rows;
}

struct PairRow {
  MPI_Datatype handle;
  const char* name;
  MPI_Datatype value, index;
};

std::span<const PairRow> pair_rows() {
  static const PairRow rows[] = {
      {MPI_FLOAT_INT, "MPI_FLOAT_INT", MPI_FLOAT, MPI_INT},
      {MPI_DOUBLE_INT, "MPI_DOUBLE_INT", MPI_DOUBLE, MPI_INT},
      {MPI_LONG_INT, "MPI_LONG_INT", MPI_LONG, MPI_INT},
      {MPI_2INT, "MPI_2INT", MPI_INT, MPI_INT},
      {MPI_SHORT_INT, "MPI_SHORT_INT", MPI_SHORT, MPI_INT},
      {MPI_LONG_DOUBLE_INT, "MPI_LONG_DOUBLE_INT", MPI_LONG_DOUBLE, MPI_INT},
      {MPI_2REAL, "MPI_2REAL", MPI_REAL, MPI_REAL},
      {MPI_2DOUBLE_PRECISION, "MPI_2DOUBLE_PRECISION", MPI_DOUBLE_PRECISION, MPI_DOUBLE_PRECISION},
      {MPI_2INTEGER, "MPI_2INTEGER", MPI_INTEGER, MPI_INTEGER},
  };
  return rows;
}

/// The widths of Fortran kinds, narrowest first, with what they hold.
struct FortranRow {
  int combiner;
  int precision, range; ///< decimal digits and decimal exponent (or digits, for integers)
  MPI_Datatype type;
};

std::span<const FortranRow> fortran_rows() {
  static const FortranRow rows[] = {
      {MPI_COMBINER_F90_REAL, 6, 37, MPI_REAL4},          {MPI_COMBINER_F90_REAL, 15, 307, MPI_REAL8},
      {MPI_COMBINER_F90_REAL, 33, 4931, MPI_REAL16},      {MPI_COMBINER_F90_COMPLEX, 6, 37, MPI_COMPLEX8},
      {MPI_COMBINER_F90_COMPLEX, 15, 307, MPI_COMPLEX16}, {MPI_COMBINER_F90_COMPLEX, 33, 4931, MPI_COMPLEX32},
      {MPI_COMBINER_F90_INTEGER, 0, 2, MPI_INTEGER1},     {MPI_COMBINER_F90_INTEGER, 0, 4, MPI_INTEGER2},
      {MPI_COMBINER_F90_INTEGER, 0, 9, MPI_INTEGER4},     {MPI_COMBINER_F90_INTEGER, 0, 18, MPI_INTEGER8},
      {MPI_COMBINER_F90_INTEGER, 0, 38, MPI_INTEGER16},
  };
  return rows;
}

object::HandleBits bits_of(MPI_Datatype handle) {
  return static_cast<object::HandleBits>(reinterpret_cast<std::uintptr_t>(handle));
}

void add_predefined(MPI_Datatype handle, Datatype* type) {
  type->kind = object::Kind::datatype;
  type->committed = true;
  plan_copies(*type);
  datatype_storage.value.predefined.set(bits_of(handle), type);
  if (type->contiguous && type->true_lb == 0 && type->size < 256)
    datatype_storage.value.contiguous_sizes[bits_of(handle) - PredefinedTypes::first_handle] =
        static_cast<std::uint8_t>(type->size);
}

void add_named(const NamedRow& row) {
  auto* type = new Datatype;
  type->name = row.name;
  type->size = type->extent = type->true_extent = row.size;
  type->alignment = row.alignment;
  type->basic = row.basic;
  type->family = row.family;
  type->form = block_form(0, row.size);
  type->signature = leaf_signature(*type, row.size, row.external_size);
  type->element = type;
  type->element_count = 1;
  add_predefined(row.handle, type);
}

/// Laid out as struct { value; index; }.
Result add_pair(const PairRow& row) {
  Datatype& value = *find_datatype(row.value);
  Datatype& index = *find_datatype(row.index);
  MPI_Count at = (value.size + index.alignment - 1) / index.alignment * index.alignment;
  Member members[] = {{&value, 0, 1}, {&index, at, 1}};
  Layout layout;
  NEAR_TRY(join(members, true, layout));
  auto* type = new Datatype;
  static_cast<Layout&>(*type) = std::move(layout);
  type->name = row.name;
  type->basic = Basic::pair;
  type->family = Family::pair;
  type->pair = {value.basic, index.basic, at};
  type->element = type;
  add_predefined(row.handle, type);
  return {};
}

struct FortranKey {
  int combiner, precision, range;
  auto operator<=>(const FortranKey&) const = default;
};

} // namespace

const char* name_of(Basic basic) {
  for (const NamedRow& row : named_rows())
    if (row.basic == basic) return row.name;
  return "";
}

Result make_predefined_types() {
  if (find_datatype(MPI_BYTE) != nullptr) return {};
  try {
    for (const NamedRow& row : named_rows()) add_named(row);
    for (const PairRow& row : pair_rows()) NEAR_TRY(add_pair(row));
  } catch (const std::bad_alloc&) {
    return base::fail(MPI_ERR_NO_MEM, "no memory is left for the predefined datatypes");
  }
  return {};
}

Result value_index_type(Datatype& value, Datatype& index, Datatype*& pair) {
  pair = nullptr;
  for (const PairRow& row : pair_rows())
    if (row.value == public_handle(value) && row.index == public_handle(index))
      pair = find_datatype(row.handle);
  return {};
}

Result fortran_type(int combiner, int precision, int range, Datatype*& made) {
  static Immortal<std::map<FortranKey, Datatype*>> known;
  FortranKey key{combiner, precision, range};
  if (auto found = known.value.find(key); found != known.value.end()) {
    made = found->second;
    return {};
  }
  // Any value will do if it is not given.
  int digits = precision == MPI_UNDEFINED ? 0 : precision, exponent = range == MPI_UNDEFINED ? 0 : range;
  for (const FortranRow& row : fortran_rows()) {
    if (row.combiner != combiner || digits > row.precision || exponent > row.range) continue;
    NEAR_TRY(make_duplicate(*find_datatype(row.type), made));
    std::vector<int> integers{precision, range};
    if (combiner == MPI_COMBINER_F90_INTEGER) integers = {range};
    record_envelope(*made, combiner, false, std::move(integers), {}, {}, {});
    made->predefined = true;
    known.value.emplace(key, made);
    return {};
  }
  return base::fail(MPI_ERR_ARG, "no Fortran type here has precision {} and range {}", digits, exponent);
}

Result match_size(int type_class, int size, Datatype*& found) {
  int combiner = type_class == MPI_TYPECLASS_INTEGER   ? MPI_COMBINER_F90_INTEGER
                 : type_class == MPI_TYPECLASS_REAL    ? MPI_COMBINER_F90_REAL
                 : type_class == MPI_TYPECLASS_COMPLEX ? MPI_COMBINER_F90_COMPLEX
                                                       : MPI_UNDEFINED;
  if (combiner == MPI_UNDEFINED)
    return base::fail(MPI_ERR_ARG, "{} is not an MPI_TYPECLASS constant", type_class);
  // Fortran compilers offer half precision for no range, but a size may select it.
  if (combiner == MPI_COMBINER_F90_REAL && size == 2)
    found = find_datatype(MPI_REAL2);
  else if (combiner == MPI_COMBINER_F90_COMPLEX && size == 4)
    found = find_datatype(MPI_COMPLEX4);
  else {
    found = nullptr;
    for (const FortranRow& row : fortran_rows())
      if (row.combiner == combiner && find_datatype(row.type)->size == size) found = find_datatype(row.type);
  }
  if (found != nullptr) return {};
  return base::fail(MPI_ERR_ARG, "no type of that class has {} bytes", size);
}

Datatype* give_handle(Datatype& type) {
  if (type.predefined) return &type;
  object::keep(&type);
  ++type.user_handles;
  type.handle &= ~object::retired_bit;
  return &type;
}

Result free_type(Datatype& type) {
  if (type.predefined)
    return base::fail(MPI_ERR_TYPE, "{} is predefined and cannot be freed", describe(type));
  if (type.user_handles == 1) {
    NEAR_TRY(type.attributes.remove_all(type));
    datatypes().retire(&type);
  }
  --type.user_handles;
  release(&type);
  return {};
}

namespace {

[[gnu::cold]] [[gnu::noinline]] void destroy(Datatype* type) {
  // A list instead of recursion: a program may chain a million duplicates.
  std::vector<Datatype*> work(type->envelope.types);
  datatypes().destroy(type);
  while (!work.empty()) {
    Datatype* next = work.back();
    work.pop_back();
    // SYNC: datatype-references. The thread that drops the last reference sees what the others did with it.
    if (next->predefined || next->references.add_acq_rel(-1) != 1) continue;
    work.insert(work.end(), next->envelope.types.begin(), next->envelope.types.end());
    datatypes().destroy(next);
  }
}

} // namespace

void release(Datatype* type) {
  // SYNC: datatype-references. As in destroy.
  if (!type->predefined && type->references.add_acq_rel(-1) == 1) destroy(type);
}

std::string describe(const Datatype& type) {
  if (!type.name.empty()) return type.name;
  return base::format("datatype {:#x}", type.handle & ~object::retired_bit);
}

} // namespace near::datatype
