// MPI_Scan, MPI_Exscan and their forms: on one group only. Source: MPI 5.0, sections 6.11, 6.12 and 6.13.
#include "mpi/collective.h"

namespace near::mpi::impl {
namespace {

Result scan_of(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Operation& op,
               Communicator& comm, coll::Call& call) {
  NEAR_TRY(check_intra(comm));
  NEAR_TRY(check_aliasing(buffer_of(sendbuf, count, &datatype), buffer_of(recvbuf, count, &datatype)));
  call = coll::scan_call(sendbuf, recvbuf, count, datatype, op);
  return {};
}

Result exscan_of(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Operation& op,
                 Communicator& comm, coll::Call& call) {
  NEAR_TRY(check_intra(comm));
  NEAR_TRY(check_aliasing(buffer_of(sendbuf, count, &datatype), buffer_of(recvbuf, count, &datatype)));
  call = coll::exscan_call(sendbuf, recvbuf, count, datatype, op);
  return {};
}

} // namespace

Result Scan(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Operation& op,
            Communicator& comm) {
  coll::Call call;
  NEAR_TRY(scan_of(sendbuf, recvbuf, count, datatype, op, comm, call));
  return coll::run(call, comm);
}

Result Iscan(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Operation& op,
             Communicator& comm, p2p::Request*& request) {
  coll::Call call;
  NEAR_TRY(scan_of(sendbuf, recvbuf, count, datatype, op, comm, call));
  return coll::start(call, comm, request);
}

Result Scan_init(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Operation& op,
                 Communicator& comm, Info*, p2p::Request*& request) {
  coll::Call call;
  NEAR_TRY(scan_of(sendbuf, recvbuf, count, datatype, op, comm, call));
  return coll::prepare(call, comm, request);
}

Result Exscan(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Operation& op,
              Communicator& comm) {
  coll::Call call;
  NEAR_TRY(exscan_of(sendbuf, recvbuf, count, datatype, op, comm, call));
  return coll::run(call, comm);
}

Result Iexscan(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Operation& op,
               Communicator& comm, p2p::Request*& request) {
  coll::Call call;
  NEAR_TRY(exscan_of(sendbuf, recvbuf, count, datatype, op, comm, call));
  return coll::start(call, comm, request);
}

Result Exscan_init(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Operation& op,
                   Communicator& comm, Info*, p2p::Request*& request) {
  coll::Call call;
  NEAR_TRY(exscan_of(sendbuf, recvbuf, count, datatype, op, comm, call));
  return coll::prepare(call, comm, request);
}

} // namespace near::mpi::impl
