// What a program can learn about its start from an info object. Source: MPI 5.0, section 11.5 (MPI_INFO_ENV)
// and section 10 (MPI_Info_create_env).
#pragma once

#include "object/info.h"

namespace near::mpi {

/// Sets the reserved keys of which something is known: command and argv from the arguments (null: this
/// process's own command line), maxprocs and soft, host, arch, wdir, mpi_memory_alloc_kinds; before MPI_Init
/// as afterwards.
void describe_environment(int argc, char** argv, object::Info& info);

} // namespace near::mpi
