// Translates the codes of the layers that do not know MPI's codes. Source: MPI 5.0, section 9.4.
#include "object/error.h"

namespace near::object {

int error_class(Result result) {
  if (result.code() < static_cast<int>(base::Code::invalid)) return result.code();
  switch (static_cast<base::Code>(result.code())) {
  case base::Code::invalid: return MPI_ERR_ARG;
  case base::Code::no_memory: return MPI_ERR_NO_MEM;
  case base::Code::limit: return MPI_ERR_NO_SPACE;
  case base::Code::gone: return MPI_ERR_PROC_ABORTED;
  case base::Code::unsupported: return MPI_ERR_UNSUPPORTED_OPERATION;
  case base::Code::internal: return MPI_ERR_INTERN;
  default: return MPI_ERR_OTHER;
  }
}

} // namespace near::object
