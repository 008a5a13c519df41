// The buffer that a buffer argument, its count and its datatype describe.
#pragma once

#include "datatype/datatype.h"

namespace near::mpi {

/// Sends only read through it; the standard's const is given up here, once.
inline datatype::Buffer buffer_of(const void* buffer, MPI_Count count, datatype::Datatype& type) {
  return datatype::Buffer{const_cast<void*>(buffer), count, &type};
}

} // namespace near::mpi
