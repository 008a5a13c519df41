// Queries about the ABI, and the values that the Fortran bindings set. Source: MPI 5.0, section 20.2.
#include "datatype/datatype.h"
#include "mpi/impl.h"

#include <cstring>

namespace near::mpi::impl {

namespace {

struct Booleans {
  int size = 0; ///< bytes of a Fortran LOGICAL; 0 if not set
  char true_value[16] = {}, false_value[16] = {};
};
Booleans booleans;

Info* fortran_info = nullptr; ///< set by MPI_Abi_set_fortran_info

Result new_info(Info*& made) {
  made = object::make_info();
  return made != nullptr ? Result() : base::fail(MPI_ERR_NO_MEM, "no memory for an info object");
}

bool is_logical_size(int size) { return size == 1 || size == 2 || size == 4 || size == 8 || size == 16; }

Result check_logical_size(int size) {
  if (is_logical_size(size)) return {};
  return base::fail(MPI_ERR_ARG, "logical_size is {}, but must be 1, 2, 4, 8 or 16", size);
}

/// The sizes of Fortran datatypes in this library. A program that assumed others would exchange wrong bytes.
struct FortranSize {
  const char* key;
  MPI_Datatype type;
};
const FortranSize fortran_sizes[] = {{"mpi_logical_size", MPI_LOGICAL},
                                     {"mpi_integer_size", MPI_INTEGER},
                                     {"mpi_real_size", MPI_REAL},
                                     {"mpi_double_precision_size", MPI_DOUBLE_PRECISION}};

} // namespace

Result Abi_get_version(int* abi_major, int* abi_minor) {
  *abi_major = MPI_ABI_VERSION;
  *abi_minor = MPI_ABI_SUBVERSION;
  return {};
}

Result Abi_get_info(Info*& info) {
  NEAR_TRY(new_info(info));
  info->set("mpi_aint_size", std::to_string(sizeof(MPI_Aint)));
  info->set("mpi_count_size", std::to_string(sizeof(MPI_Count)));
  info->set("mpi_offset_size", std::to_string(sizeof(MPI_Offset)));
  return {};
}

Result Abi_get_fortran_info(Info*& info) {
  info = nullptr;
  if (fortran_info == nullptr) return {};
  NEAR_TRY(new_info(info));
  info->entries = fortran_info->entries;
  return {};
}

Result Abi_set_fortran_info(Info* info) {
  if (info == nullptr) return base::fail(MPI_ERR_INFO, "info is MPI_INFO_NULL, but must be an info object");
  if (fortran_info != nullptr) return base::fail(MPI_ERR_ABI, "the Fortran information is set already");
  NEAR_TRY(datatype::make_predefined_types());
  for (const FortranSize& row : fortran_sizes) {
    const std::string* given = info->find(row.key);
    std::string own = std::to_string(datatype::find_datatype(row.type)->size);
    if (given != nullptr && *given != own)
      return base::fail(MPI_ERR_ABI, "{} is {}, but this library has {}", row.key, *given, own);
  }
  Info* kept = nullptr;
  NEAR_TRY(new_info(kept));
  kept->entries = info->entries;
  fortran_info = kept;
  return {};
}

Result Abi_set_fortran_booleans(int logical_size, void* logical_true, void* logical_false) {
  NEAR_TRY(check_logical_size(logical_size));
  if (booleans.size != 0) return base::fail(MPI_ERR_ABI, "the Fortran booleans are set already");
  booleans.size = logical_size;
  std::memcpy(booleans.true_value, logical_true, static_cast<std::size_t>(logical_size));
  std::memcpy(booleans.false_value, logical_false, static_cast<std::size_t>(logical_size));
  return {};
}

Result Abi_get_fortran_booleans(int logical_size, void* logical_true, void* logical_false, int* is_set) {
  NEAR_TRY(check_logical_size(logical_size));
  *is_set = booleans.size != 0;
  if (booleans.size == 0) return {};
  if (booleans.size != logical_size)
    return base::fail(MPI_ERR_ARG, "logical_size is {}, but the booleans were set with {}", logical_size,
                      booleans.size);
  std::memcpy(logical_true, booleans.true_value, static_cast<std::size_t>(logical_size));
  std::memcpy(logical_false, booleans.false_value, static_cast<std::size_t>(logical_size));
  return {};
}

} // namespace near::mpi::impl
