// MPI_Reduce, MPI_Allreduce, MPI_Reduce_scatter(_block) and their forms.
// Source: MPI 5.0, sections 6.9, 6.10, 6.12 and 6.13.
#include "mpi/collective.h"

namespace near::mpi::impl {
namespace {

Result reduce_of(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Operation& op,
                 int root, Communicator& comm, coll::Call& call) {
  if (comm.rank == root && !comm.is_inter())
    NEAR_TRY(check_aliasing(buffer_of(sendbuf, count, &datatype), buffer_of(recvbuf, count, &datatype)));
  call = coll::reduce_call(sendbuf, recvbuf, count, datatype, op, root, comm);
  return {};
}

Result allreduce_of(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Operation& op,
                    coll::Call& call) {
  NEAR_TRY(check_aliasing(buffer_of(sendbuf, count, &datatype), buffer_of(recvbuf, count, &datatype)));
  call = coll::allreduce_call(sendbuf, recvbuf, count, datatype, op);
  return {};
}

Result reduce_scatter_of(const void* sendbuf, void* recvbuf, Counts recvcounts, Datatype& datatype,
                         Operation& op, Communicator& comm, coll::Call& call) {
  if (recvcounts[comm.rank] != 0)
    NEAR_TRY(check_aliasing(buffer_of(sendbuf, 1, &datatype), buffer_of(recvbuf, 1, &datatype)));
  call = coll::reduce_scatter_call(sendbuf, recvbuf, recvcounts, datatype, op);
  return {};
}

Result reduce_scatter_block_of(const void* sendbuf, void* recvbuf, MPI_Count recvcount, Datatype& datatype,
                               Operation& op, coll::Call& call) {
  NEAR_TRY(
      check_aliasing(buffer_of(sendbuf, recvcount, &datatype), buffer_of(recvbuf, recvcount, &datatype)));
  call = coll::reduce_scatter_block_call(sendbuf, recvbuf, recvcount, datatype, op);
  return {};
}

} // namespace

Result Reduce(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Operation& op,
              int root, Communicator& comm) {
  coll::Call call;
  NEAR_TRY(reduce_of(sendbuf, recvbuf, count, datatype, op, root, comm, call));
  return coll::run(call, comm);
}

Result Ireduce(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Operation& op,
               int root, Communicator& comm, p2p::Request*& request) {
  coll::Call call;
  NEAR_TRY(reduce_of(sendbuf, recvbuf, count, datatype, op, root, comm, call));
  return coll::start(call, comm, request);
}

Result Reduce_init(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Operation& op,
                   int root, Communicator& comm, Info*, p2p::Request*& request) {
  coll::Call call;
  NEAR_TRY(reduce_of(sendbuf, recvbuf, count, datatype, op, root, comm, call));
  return coll::prepare(call, comm, request);
}

Result Allreduce(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Operation& op,
                 Communicator& comm) {
  coll::Call call;
  NEAR_TRY(allreduce_of(sendbuf, recvbuf, count, datatype, op, call));
  return coll::run(call, comm);
}

Result Iallreduce(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Operation& op,
                  Communicator& comm, p2p::Request*& request) {
  coll::Call call;
  NEAR_TRY(allreduce_of(sendbuf, recvbuf, count, datatype, op, call));
  return coll::start(call, comm, request);
}

Result Allreduce_init(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Operation& op,
                      Communicator& comm, Info*, p2p::Request*& request) {
  coll::Call call;
  NEAR_TRY(allreduce_of(sendbuf, recvbuf, count, datatype, op, call));
  return coll::prepare(call, comm, request);
}

Result Reduce_scatter(const void* sendbuf, void* recvbuf, Counts recvcounts, Datatype& datatype,
                      Operation& op, Communicator& comm) {
  coll::Call call;
  NEAR_TRY(reduce_scatter_of(sendbuf, recvbuf, recvcounts, datatype, op, comm, call));
  return coll::run(call, comm);
}

Result Ireduce_scatter(const void* sendbuf, void* recvbuf, Counts recvcounts, Datatype& datatype,
                       Operation& op, Communicator& comm, p2p::Request*& request) {
  coll::Call call;
  NEAR_TRY(reduce_scatter_of(sendbuf, recvbuf, recvcounts, datatype, op, comm, call));
  return coll::start(call, comm, request);
}

Result Reduce_scatter_init(const void* sendbuf, void* recvbuf, Counts recvcounts, Datatype& datatype,
                           Operation& op, Communicator& comm, Info*, p2p::Request*& request) {
  coll::Call call;
  NEAR_TRY(reduce_scatter_of(sendbuf, recvbuf, recvcounts, datatype, op, comm, call));
  return coll::prepare(call, comm, request);
}

Result Reduce_scatter_block(const void* sendbuf, void* recvbuf, MPI_Count recvcount, Datatype& datatype,
                            Operation& op, Communicator& comm) {
  coll::Call call;
  NEAR_TRY(reduce_scatter_block_of(sendbuf, recvbuf, recvcount, datatype, op, call));
  return coll::run(call, comm);
}

Result Ireduce_scatter_block(const void* sendbuf, void* recvbuf, MPI_Count recvcount, Datatype& datatype,
                             Operation& op, Communicator& comm, p2p::Request*& request) {
  coll::Call call;
  NEAR_TRY(reduce_scatter_block_of(sendbuf, recvbuf, recvcount, datatype, op, call));
  return coll::start(call, comm, request);
}

Result Reduce_scatter_block_init(const void* sendbuf, void* recvbuf, MPI_Count recvcount, Datatype& datatype,
                                 Operation& op, Communicator& comm, Info*, p2p::Request*& request) {
  coll::Call call;
  NEAR_TRY(reduce_scatter_block_of(sendbuf, recvbuf, recvcount, datatype, op, call));
  return coll::prepare(call, comm, request);
}

} // namespace near::mpi::impl
