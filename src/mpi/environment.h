// The info objects that describe how the program was started. Source: MPI 5.0, section 11.5 (MPI_INFO_ENV)
// and chapter 10 (MPI_Info_create_env).
#pragma once

#include "object/info.h"

namespace near::mpi {

/// Sets the reserved keys whose value is known: command and argv from the arguments (argv may be null: this
/// process's own command line is used), maxprocs and soft, host, arch, wdir, mpi_memory_alloc_kinds. May be
/// called before MPI_Init.
void describe_environment(int argc, char** argv, object::Info& info);

} // namespace near::mpi
