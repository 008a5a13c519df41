// Makes a Buffer from the arguments for a buffer, its count and its datatype.
#pragma once

#include "datatype/datatype.h"

namespace near::mpi {

/// Casts away const, only here: sends only read the buffer.
inline datatype::Buffer buffer_of(const void* buffer, MPI_Count count, datatype::Datatype& type) {
  return datatype::Buffer{const_cast<void*>(buffer), count, &type};
}

} // namespace near::mpi
