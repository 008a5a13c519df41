// What info objects ask of memory, for MPI_Alloc_mem and windows.
#pragma once

#include "memory/allocate.h"
#include "object/memory_hints.h"

#include <string>

namespace near::mpi {

/// What the memory should be, by the hints in `info` (may be nullptr); what cannot be is remarked under the
/// function's name, once of each kind.
object::Result read_allocation_hints(const char* function, const object::Info* info,
                                     memory::AllocationHints& allocation);
/// Remarks how memory that was allocated just now falls short of the hints.
void remark_shortfall(const char* function, const void* made, std::size_t bytes,
                      const memory::AllocationHints& allocation);

} // namespace near::mpi
