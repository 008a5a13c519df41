// Names of MPI functions for people, from the numbers that stand in state lines.
#pragma once

#include <cstdint>

namespace near::launch {

/// "MPI_Recv" for the number that the generated entry points write; nullptr for one that is not known.
const char* function_name(std::uint32_t function);

} // namespace near::launch
