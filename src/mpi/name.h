// Names of communicators, datatypes and windows (MPI 5.0, section 7.8): cut after MPI_MAX_OBJECT_NAME - 1
// characters, as the standard says.
#pragma once

#include "abi/types.h"

#include <cstring>
#include <string>
#include <string_view>

namespace near::mpi {

inline void keep_name(std::string& kept, const char* given) {
  kept.assign(given, strnlen(given, MPI_MAX_OBJECT_NAME - 1));
}

/// `given` has room for MPI_MAX_OBJECT_NAME characters.
inline void give_name(std::string_view kept, char* given, int* length) {
  std::size_t bytes = kept.size() < MPI_MAX_OBJECT_NAME ? kept.size() : MPI_MAX_OBJECT_NAME - 1;
  std::memcpy(given, kept.data(), bytes);
  given[bytes] = '\0';
  *length = static_cast<int>(bytes);
}

} // namespace near::mpi
