// MPI_Reduce, MPI_Allreduce, MPI_Reduce_scatter(_block) and their forms.
// Source: MPI 5.0, sections 6.9, 6.10, 6.12 and 6.13.
#include "mpi/collective.h"

namespace near::mpi::impl {

Result Reduce_call(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Operation& op,
                   int root, Communicator& comm, CollectiveCall& call) {
  if (comm.rank == root && !comm.is_inter())
    NEAR_TRY(check_aliasing(buffer_of(sendbuf, count, &datatype), buffer_of(recvbuf, count, &datatype)));
  call.make([&] { return coll::reduce_call(sendbuf, recvbuf, count, datatype, op, root, comm); });
  return {};
}

Result Allreduce_call(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Operation& op,
                      Communicator&, CollectiveCall& call) {
  NEAR_TRY(check_aliasing(buffer_of(sendbuf, count, &datatype), buffer_of(recvbuf, count, &datatype)));
  call.make([&] { return coll::allreduce_call(sendbuf, recvbuf, count, datatype, op); });
  return {};
}

Result Reduce_scatter_call(const void* sendbuf, void* recvbuf, Counts recvcounts, Datatype& datatype,
                           Operation& op, Communicator& comm, CollectiveCall& call) {
  if (recvcounts[comm.rank] != 0)
    NEAR_TRY(check_aliasing(buffer_of(sendbuf, 1, &datatype), buffer_of(recvbuf, 1, &datatype)));
  call.make([&] { return coll::reduce_scatter_call(sendbuf, recvbuf, recvcounts, datatype, op); });
  return {};
}

Result Reduce_scatter_block_call(const void* sendbuf, void* recvbuf, MPI_Count recvcount, Datatype& datatype,
                                 Operation& op, Communicator&, CollectiveCall& call) {
  NEAR_TRY(
      check_aliasing(buffer_of(sendbuf, recvcount, &datatype), buffer_of(recvbuf, recvcount, &datatype)));
  call.make([&] { return coll::reduce_scatter_block_call(sendbuf, recvbuf, recvcount, datatype, op); });
  return {};
}

} // namespace near::mpi::impl
