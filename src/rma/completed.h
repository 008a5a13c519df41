// Requests of messages that serve windows.
#pragma once

#include "p2p/p2p.h"

#include <utility>

namespace near::rma {

/// Ends a request that is complete, sets it to nullptr, and returns its error.
inline base::Result end(p2p::Request*& request) {
  MPI_Request handle = p2p::public_handle(*request);
  return p2p::finish(handle, *std::exchange(request, nullptr), MPI_STATUS_IGNORE, false);
}

} // namespace near::rma
