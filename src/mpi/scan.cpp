// MPI_Scan, MPI_Exscan and their forms; not defined on intercommunicators. Source: MPI 5.0, sections 6.11,
// 6.12 and 6.13.
#include "mpi/collective.h"

namespace near::mpi::impl {

Result Scan_call(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Operation& op,
                 Communicator& comm, CollectiveCall& call) {
  NEAR_TRY(check_intra(comm));
  NEAR_TRY(check_aliasing(buffer_of(sendbuf, count, &datatype), buffer_of(recvbuf, count, &datatype)));
  call.make([&] { return coll::scan_call(sendbuf, recvbuf, count, datatype, op); });
  return {};
}

Result Exscan_call(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Operation& op,
                   Communicator& comm, CollectiveCall& call) {
  NEAR_TRY(check_intra(comm));
  NEAR_TRY(check_aliasing(buffer_of(sendbuf, count, &datatype), buffer_of(recvbuf, count, &datatype)));
  call.make([&] { return coll::exscan_call(sendbuf, recvbuf, count, datatype, op); });
  return {};
}

} // namespace near::mpi::impl
