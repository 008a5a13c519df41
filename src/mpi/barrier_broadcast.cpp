// MPI_Barrier, MPI_Bcast and their forms. Source: MPI 5.0, sections 6.3, 6.4, 6.12 and 6.13.
#include "mpi/collective.h"

namespace near::mpi::impl {

Result Barrier_call(Communicator&, CollectiveCall& call) {
  call.make([&] { return coll::barrier_call(); });
  return {};
}

Result Bcast_call(void* buffer, MPI_Count count, Datatype& datatype, int root, Communicator&,
                  CollectiveCall& call) {
  call.make([&] { return coll::broadcast_call(buffer_of(buffer, count, &datatype), root); });
  return {};
}

} // namespace near::mpi::impl
