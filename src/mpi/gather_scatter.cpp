// MPI_Gather, MPI_Gatherv, MPI_Scatter, MPI_Scatterv and their forms. Arguments that are significant only at
// the root are checked only there. Source: MPI 5.0, sections 6.5, 6.6, 6.12 and 6.13.
#include "mpi/collective.h"

namespace near::mpi::impl {

Result Gather_call(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
                   MPI_Count recvcount, Datatype* recvtype, int root, Communicator& comm,
                   CollectiveCall& call) {
  const Buffer send = buffer_of(sendbuf, sendcount, sendtype),
               receive = buffer_of(recvbuf, recvcount, recvtype);
  if (!comm.is_inter() && comm.rank == root && sendbuf != MPI_IN_PLACE)
    NEAR_TRY(check_aliasing(send, coll::block(receive, root)));
  call.make([&] { return coll::gather_call(send, receive, root, comm); });
  return {};
}

Result Gatherv_call(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
                    Counts recvcounts, Counts displs, Datatype* recvtype, int root, Communicator& comm,
                    CollectiveCall& call) {
  const Buffer send = buffer_of(sendbuf, sendcount, sendtype);
  const Blocks receive{recvbuf, recvcounts, displs, recvtype, nullptr};
  if (!comm.is_inter() && comm.rank == root) NEAR_TRY(check_aliasing(send, receive, comm.size));
  call.make([&] { return coll::gatherv_call(send, receive, root, comm); });
  return {};
}

Result Scatter_call(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
                    MPI_Count recvcount, Datatype* recvtype, int root, Communicator& comm,
                    CollectiveCall& call) {
  const Buffer send = buffer_of(sendbuf, sendcount, sendtype),
               receive = buffer_of(recvbuf, recvcount, recvtype);
  if (!comm.is_inter() && comm.rank == root && recvbuf != MPI_IN_PLACE)
    NEAR_TRY(check_aliasing(coll::block(send, root), receive));
  call.make([&] { return coll::scatter_call(send, receive, root, comm); });
  return {};
}

Result Scatterv_call(const void* sendbuf, Counts sendcounts, Counts displs, Datatype* sendtype, void* recvbuf,
                     MPI_Count recvcount, Datatype* recvtype, int root, Communicator& comm,
                     CollectiveCall& call) {
  const Blocks send{const_cast<void*>(sendbuf), sendcounts, displs, sendtype, nullptr};
  const Buffer receive = buffer_of(recvbuf, recvcount, recvtype);
  if (!comm.is_inter() && comm.rank == root) NEAR_TRY(check_aliasing(receive, send, comm.size));
  call.make([&] { return coll::scatterv_call(send, receive, root, comm); });
  return {};
}

} // namespace near::mpi::impl
