// MPI_Gather, MPI_Gatherv, MPI_Scatter, MPI_Scatterv and their forms: what only the root looks at is checked
// at the root only. Source: MPI 5.0, sections 6.5, 6.6, 6.12 and 6.13.
#include "mpi/collective.h"

namespace near::mpi::impl {
namespace {

Result gather_of(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
                 MPI_Count recvcount, Datatype* recvtype, int root, Communicator& comm, coll::Call& call) {
  const Buffer send = buffer_of(sendbuf, sendcount, sendtype),
               receive = buffer_of(recvbuf, recvcount, recvtype);
  if (!comm.is_inter() && comm.rank == root && sendbuf != MPI_IN_PLACE)
    NEAR_TRY(check_aliasing(send, coll::block(receive, root)));
  call = coll::gather_call(send, receive, root, comm);
  return {};
}

Result gatherv_of(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
                  Counts recvcounts, Counts displs, Datatype* recvtype, int root, Communicator& comm,
                  coll::Call& call) {
  const Buffer send = buffer_of(sendbuf, sendcount, sendtype);
  const Blocks receive{recvbuf, recvcounts, displs, recvtype, nullptr};
  if (!comm.is_inter() && comm.rank == root) NEAR_TRY(check_aliasing(send, receive, comm.size));
  call = coll::gatherv_call(send, receive, root, comm);
  return {};
}

Result scatter_of(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
                  MPI_Count recvcount, Datatype* recvtype, int root, Communicator& comm, coll::Call& call) {
  const Buffer send = buffer_of(sendbuf, sendcount, sendtype),
               receive = buffer_of(recvbuf, recvcount, recvtype);
  if (!comm.is_inter() && comm.rank == root && recvbuf != MPI_IN_PLACE)
    NEAR_TRY(check_aliasing(coll::block(send, root), receive));
  call = coll::scatter_call(send, receive, root, comm);
  return {};
}

Result scatterv_of(const void* sendbuf, Counts sendcounts, Counts displs, Datatype* sendtype, void* recvbuf,
                   MPI_Count recvcount, Datatype* recvtype, int root, Communicator& comm, coll::Call& call) {
  const Blocks send{const_cast<void*>(sendbuf), sendcounts, displs, sendtype, nullptr};
  const Buffer receive = buffer_of(recvbuf, recvcount, recvtype);
  if (!comm.is_inter() && comm.rank == root) NEAR_TRY(check_aliasing(receive, send, comm.size));
  call = coll::scatterv_call(send, receive, root, comm);
  return {};
}

} // namespace

Result Gather(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
              MPI_Count recvcount, Datatype* recvtype, int root, Communicator& comm) {
  coll::Call call;
  NEAR_TRY(gather_of(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, call));
  return coll::run(call, comm);
}

Result Igather(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
               MPI_Count recvcount, Datatype* recvtype, int root, Communicator& comm,
               p2p::Request*& request) {
  coll::Call call;
  NEAR_TRY(gather_of(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, call));
  return coll::start(call, comm, request);
}

Result Gather_init(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
                   MPI_Count recvcount, Datatype* recvtype, int root, Communicator& comm, Info*,
                   p2p::Request*& request) {
  coll::Call call;
  NEAR_TRY(gather_of(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, call));
  return coll::prepare(call, comm, request);
}

Result Gatherv(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, Counts recvcounts,
               Counts displs, Datatype* recvtype, int root, Communicator& comm) {
  coll::Call call;
  NEAR_TRY(gatherv_of(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm, call));
  return coll::run(call, comm);
}

Result Igatherv(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
                Counts recvcounts, Counts displs, Datatype* recvtype, int root, Communicator& comm,
                p2p::Request*& request) {
  coll::Call call;
  NEAR_TRY(gatherv_of(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm, call));
  return coll::start(call, comm, request);
}

Result Gatherv_init(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
                    Counts recvcounts, Counts displs, Datatype* recvtype, int root, Communicator& comm, Info*,
                    p2p::Request*& request) {
  coll::Call call;
  NEAR_TRY(gatherv_of(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm, call));
  return coll::prepare(call, comm, request);
}

Result Scatter(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
               MPI_Count recvcount, Datatype* recvtype, int root, Communicator& comm) {
  coll::Call call;
  NEAR_TRY(scatter_of(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, call));
  return coll::run(call, comm);
}

Result Iscatter(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
                MPI_Count recvcount, Datatype* recvtype, int root, Communicator& comm,
                p2p::Request*& request) {
  coll::Call call;
  NEAR_TRY(scatter_of(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, call));
  return coll::start(call, comm, request);
}

Result Scatter_init(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
                    MPI_Count recvcount, Datatype* recvtype, int root, Communicator& comm, Info*,
                    p2p::Request*& request) {
  coll::Call call;
  NEAR_TRY(scatter_of(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, call));
  return coll::prepare(call, comm, request);
}

Result Scatterv(const void* sendbuf, Counts sendcounts, Counts displs, Datatype* sendtype, void* recvbuf,
                MPI_Count recvcount, Datatype* recvtype, int root, Communicator& comm) {
  coll::Call call;
  NEAR_TRY(
      scatterv_of(sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm, call));
  return coll::run(call, comm);
}

Result Iscatterv(const void* sendbuf, Counts sendcounts, Counts displs, Datatype* sendtype, void* recvbuf,
                 MPI_Count recvcount, Datatype* recvtype, int root, Communicator& comm,
                 p2p::Request*& request) {
  coll::Call call;
  NEAR_TRY(
      scatterv_of(sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm, call));
  return coll::start(call, comm, request);
}

Result Scatterv_init(const void* sendbuf, Counts sendcounts, Counts displs, Datatype* sendtype, void* recvbuf,
                     MPI_Count recvcount, Datatype* recvtype, int root, Communicator& comm, Info*,
                     p2p::Request*& request) {
  coll::Call call;
  NEAR_TRY(
      scatterv_of(sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm, call));
  return coll::prepare(call, comm, request);
}

} // namespace near::mpi::impl
