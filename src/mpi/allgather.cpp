// MPI_Allgather, MPI_Allgatherv and their forms. Source: MPI 5.0, sections 6.7, 6.12 and 6.13.
#include "mpi/collective.h"

namespace near::mpi::impl {

Result Allgather_call(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
                      MPI_Count recvcount, Datatype& recvtype, Communicator& comm, CollectiveCall& call) {
  const Buffer send = buffer_of(sendbuf, sendcount, sendtype),
               receive = buffer_of(recvbuf, recvcount, &recvtype);
  NEAR_TRY(check_aliasing(send, receive));
  if (!comm.is_inter()) NEAR_TRY(check_aliasing(send, coll::block(receive, comm.rank)));
  call.make([&] { return coll::allgather_call(send, receive, comm); });
  return {};
}

Result Allgatherv_call(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
                       Counts recvcounts, Counts displs, Datatype& recvtype, Communicator& comm,
                       CollectiveCall& call) {
  const Buffer send = buffer_of(sendbuf, sendcount, sendtype);
  const Blocks receive{recvbuf, recvcounts, displs, &recvtype, nullptr};
  NEAR_TRY(check_aliasing(send, receive, comm.peers));
  call.make([&] { return coll::allgatherv_call(send, receive, comm); });
  return {};
}

} // namespace near::mpi::impl
