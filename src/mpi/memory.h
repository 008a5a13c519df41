// Memory hints in info objects, for MPI_Alloc_mem and windows.
#pragma once

#include "memory/allocate.h"
#include "object/memory_hints.h"

#include <string>

namespace near::mpi {

/// Reads from `info` (may be nullptr) what the memory should be. Warns of hints that cannot be met, with the
/// function's name, once of each kind.
object::Result read_allocation_hints(const char* function, const object::Info* info,
                                     memory::AllocationHints& allocation);
/// Warns if memory that was just allocated falls short of the hints.
void remark_shortfall(const char* function, const void* made, std::size_t bytes,
                      const memory::AllocationHints& allocation);

} // namespace near::mpi
