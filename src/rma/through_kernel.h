// Copies through the kernel (CMA) between processes that share no memory.
#pragma once

#include "datatype/datatype.h"
#include "transport/transport.h"

namespace near::rma {

/// Copies the data of `here`, a buffer of this process, to `there`, whose address is the peer's. Both have the same
/// number of bytes. Fails with MPI_ERR_RMA_RANGE if the kernel does not reach the peer's memory.
base::Result store_through_kernel(const datatype::Buffer& here, const datatype::Buffer& there,
                                  transport::Peer& peer);
/// Copies the data of `there`, whose address is the peer's, to `here`, a buffer of this process.
base::Result load_through_kernel(const datatype::Buffer& here, const datatype::Buffer& there,
                                 transport::Peer& peer);

} // namespace near::rma
