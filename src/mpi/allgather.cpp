// MPI_Allgather, MPI_Allgatherv and their forms. Source: MPI 5.0, sections 6.7, 6.12 and 6.13.
#include "mpi/collective.h"

namespace near::mpi::impl {
namespace {

Result allgather_of(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
                    MPI_Count recvcount, Datatype& recvtype, Communicator& comm, coll::Call& call) {
  const Buffer send = buffer_of(sendbuf, sendcount, sendtype),
               receive = buffer_of(recvbuf, recvcount, &recvtype);
  NEAR_TRY(check_aliasing(send, receive));
  if (!comm.is_inter()) NEAR_TRY(check_aliasing(send, coll::block(receive, comm.rank)));
  call = coll::allgather_call(send, receive, comm);
  return {};
}

Result allgatherv_of(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
                     Counts recvcounts, Counts displs, Datatype& recvtype, Communicator& comm,
                     coll::Call& call) {
  const Buffer send = buffer_of(sendbuf, sendcount, sendtype);
  const Blocks receive{recvbuf, recvcounts, displs, &recvtype, nullptr};
  NEAR_TRY(check_aliasing(send, receive, comm.peers));
  call = coll::allgatherv_call(send, receive, comm);
  return {};
}

} // namespace

Result Allgather(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
                 MPI_Count recvcount, Datatype& recvtype, Communicator& comm) {
  coll::Call call;
  NEAR_TRY(allgather_of(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, call));
  return coll::run(call, comm);
}

Result Iallgather(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
                  MPI_Count recvcount, Datatype& recvtype, Communicator& comm, p2p::Request*& request) {
  coll::Call call;
  NEAR_TRY(allgather_of(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, call));
  return coll::start(call, comm, request);
}

Result Allgather_init(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
                      MPI_Count recvcount, Datatype& recvtype, Communicator& comm, Info*,
                      p2p::Request*& request) {
  coll::Call call;
  NEAR_TRY(allgather_of(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, call));
  return coll::prepare(call, comm, request);
}

Result Allgatherv(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
                  Counts recvcounts, Counts displs, Datatype& recvtype, Communicator& comm) {
  coll::Call call;
  NEAR_TRY(allgatherv_of(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm, call));
  return coll::run(call, comm);
}

Result Iallgatherv(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
                   Counts recvcounts, Counts displs, Datatype& recvtype, Communicator& comm,
                   p2p::Request*& request) {
  coll::Call call;
  NEAR_TRY(allgatherv_of(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm, call));
  return coll::start(call, comm, request);
}

Result Allgatherv_init(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
                       Counts recvcounts, Counts displs, Datatype& recvtype, Communicator& comm, Info*,
                       p2p::Request*& request) {
  coll::Call call;
  NEAR_TRY(allgatherv_of(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm, call));
  return coll::prepare(call, comm, request);
}

} // namespace near::mpi::impl
