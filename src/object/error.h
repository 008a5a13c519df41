// Failures of the MPI layers: a Result whose code is the standard's error class.
#pragma once

#include "abi/types.h"
#include "base/result.h"

namespace near::object {

using base::Result;

/// The MPI error class of any Result; codes of the layers below are translated (no_memory -> MPI_ERR_NO_MEM,
/// limit -> MPI_ERR_NO_SPACE, gone -> MPI_ERR_PROC_ABORTED, unsupported -> MPI_ERR_UNSUPPORTED_OPERATION,
/// invalid -> MPI_ERR_ARG, internal -> MPI_ERR_INTERN, everything else -> MPI_ERR_OTHER).
int error_class(Result result);

} // namespace near::object
