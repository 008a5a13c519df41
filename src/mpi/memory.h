// Memory hints in info objects, for MPI_Alloc_mem and windows.
#pragma once

#include "memory/allocate.h"
#include "object/memory_hints.h"

#include <string>

namespace near::mpi {

/// Reads the requested properties of the memory from `info` (may be nullptr). Warns about hints that cannot
/// be met, naming the function, once for each kind.
object::Result read_allocation_hints(const char* function, const object::Info* info,
                                     memory::AllocationHints& allocation);
/// Warns if memory just allocated falls short of the hints.
void remark_shortfall(const char* function, const void* made, std::size_t bytes,
                      const memory::AllocationHints& allocation);

} // namespace near::mpi
