// MPI_Alltoall, MPI_Alltoallv, MPI_Alltoallw and their forms. Source: MPI 5.0, sections 6.8, 6.12 and 6.13.
#include "mpi/collective.h"

namespace near::mpi::impl {

Result Alltoall_call(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
                     MPI_Count recvcount, Datatype& recvtype, Communicator&, CollectiveCall& call) {
  const Buffer send = buffer_of(sendbuf, sendcount, sendtype),
               receive = buffer_of(recvbuf, recvcount, &recvtype);
  NEAR_TRY(check_aliasing(send, receive));
  call.make([&] { return coll::alltoall_call(send, receive); });
  return {};
}

Result Alltoallv_call(const void* sendbuf, Counts sendcounts, Counts sdispls, Datatype* sendtype,
                      void* recvbuf, Counts recvcounts, Counts rdispls, Datatype& recvtype,
                      Communicator& comm, CollectiveCall& call) {
  const Blocks send{const_cast<void*>(sendbuf), sendcounts, sdispls, sendtype, nullptr};
  const Blocks receive{recvbuf, recvcounts, rdispls, &recvtype, nullptr};
  NEAR_TRY(check_aliasing(send, receive, comm.peers));
  call.make([&] { return coll::alltoallv_call(send, receive); });
  return {};
}

Result Alltoallw_call(const void* sendbuf, Counts sendcounts, Counts sdispls, const MPI_Datatype* sendtypes,
                      void* recvbuf, Counts recvcounts, Counts rdispls, const MPI_Datatype* recvtypes,
                      Communicator& comm, CollectiveCall& call) {
  const bool in_place = sendbuf == MPI_IN_PLACE;
  call.receive_types = resolve(recvtypes, comm.peers);
  if (!in_place) call.send_types = resolve(sendtypes, comm.peers);
  const Blocks send{const_cast<void*>(sendbuf), sendcounts, sdispls, nullptr, call.send_types.data()};
  const Blocks receive{recvbuf, recvcounts, rdispls, nullptr, call.receive_types.data()};
  if (!in_place) NEAR_TRY(check_aliasing(send, receive, comm.peers));
  call.make([&] { return coll::alltoallv_call(send, receive); });
  return {};
}

} // namespace near::mpi::impl
