// MPI_Barrier, MPI_Bcast and their forms. Source: MPI 5.0, sections 6.3, 6.4, 6.12 and 6.13.
#include "mpi/collective.h"

namespace near::mpi::impl {

Result Barrier(Communicator& comm) { return coll::run(coll::barrier_call(), comm); }

Result Ibarrier(Communicator& comm, p2p::Request*& request) {
  return coll::start(coll::barrier_call(), comm, request);
}

Result Barrier_init(Communicator& comm, Info*, p2p::Request*& request) {
  return coll::prepare(coll::barrier_call(), comm, request);
}

Result Bcast(void* buffer, MPI_Count count, Datatype& datatype, int root, Communicator& comm) {
  return coll::run(coll::broadcast_call(buffer_of(buffer, count, &datatype), root), comm);
}

Result Ibcast(void* buffer, MPI_Count count, Datatype& datatype, int root, Communicator& comm,
              p2p::Request*& request) {
  return coll::start(coll::broadcast_call(buffer_of(buffer, count, &datatype), root), comm, request);
}

Result Bcast_init(void* buffer, MPI_Count count, Datatype& datatype, int root, Communicator& comm, Info*,
                  p2p::Request*& request) {
  return coll::prepare(coll::broadcast_call(buffer_of(buffer, count, &datatype), root), comm, request);
}

} // namespace near::mpi::impl
