// The neighbourhood collectives and their forms. Source: MPI 5.0, sections 8.6 to 8.8. The entry points have checked
// that the communicator has a topology.
#include "mpi/collective.h"

#include <algorithm>

namespace near::mpi::impl {

namespace {

using object::Topology;

/// Fails with MPI_ERR_BUFFER if a block on either side begins at the same address as its counterpart. MPI_IN_PLACE
/// does not exist here.
template <class SendBlock, class ReceiveBlock>
Result check_separate(const Topology& topology, SendBlock send_block, ReceiveBlock receive_block) {
  const std::size_t pairs = std::min(topology.sources.size(), topology.destinations.size());
  for (std::size_t i = 0; i < pairs; ++i) {
    if (topology.sources[i] == MPI_PROC_NULL || topology.destinations[i] == MPI_PROC_NULL) continue;
    if (begin_together(send_block(static_cast<int>(i)), receive_block(static_cast<int>(i)))) [[unlikely]]
      return base::fail(
          MPI_ERR_BUFFER,
          "sendbuf and recvbuf are the same memory in block {}; a neighbourhood collective needs two "
          "buffers, since it has no MPI_IN_PLACE",
          i);
  }
  return {};
}

Result check_separate(const Blocks& send, const Blocks& receive, const Topology& topology) {
  return check_separate(topology, [&](int i) { return send.at(i); }, [&](int i) { return receive.at(i); });
}

} // namespace

Result Neighbor_allgather_call(const void* sendbuf, MPI_Count sendcount, Datatype& sendtype, void* recvbuf,
                               MPI_Count recvcount, Datatype& recvtype, Communicator& comm,
                               CollectiveCall& call) {
  const Buffer send = buffer_of(sendbuf, sendcount, &sendtype),
               receive = buffer_of(recvbuf, recvcount, &recvtype);
  NEAR_TRY(check_separate(
      *comm.topology, [&](int) { return send; }, [&](int i) { return coll::block(receive, i); }));
  call.make([&] { return coll::neighbor_allgather_call(send, receive, *comm.topology); });
  return {};
}

Result Neighbor_allgatherv_call(const void* sendbuf, MPI_Count sendcount, Datatype& sendtype, void* recvbuf,
                                Counts recvcounts, Counts displs, Datatype& recvtype, Communicator& comm,
                                CollectiveCall& call) {
  const Buffer send = buffer_of(sendbuf, sendcount, &sendtype);
  const Blocks receive{recvbuf, recvcounts, displs, &recvtype, nullptr};
  NEAR_TRY(check_separate(*comm.topology, [&](int) { return send; }, [&](int i) { return receive.at(i); }));
  call.make([&] { return coll::neighbor_allgatherv_call(send, receive, *comm.topology); });
  return {};
}

Result Neighbor_alltoall_call(const void* sendbuf, MPI_Count sendcount, Datatype& sendtype, void* recvbuf,
                              MPI_Count recvcount, Datatype& recvtype, Communicator& comm,
                              CollectiveCall& call) {
  const Buffer send = buffer_of(sendbuf, sendcount, &sendtype),
               receive = buffer_of(recvbuf, recvcount, &recvtype);
  NEAR_TRY(check_separate(
      *comm.topology, [&](int i) { return coll::block(send, i); },
      [&](int i) { return coll::block(receive, i); }));
  call.make([&] { return coll::neighbor_alltoall_call(send, receive, *comm.topology); });
  return {};
}

Result Neighbor_alltoallv_call(const void* sendbuf, Counts sendcounts, Counts sdispls, Datatype& sendtype,
                               void* recvbuf, Counts recvcounts, Counts rdispls, Datatype& recvtype,
                               Communicator& comm, CollectiveCall& call) {
  const Blocks send{const_cast<void*>(sendbuf), sendcounts, sdispls, &sendtype, nullptr};
  const Blocks receive{recvbuf, recvcounts, rdispls, &recvtype, nullptr};
  NEAR_TRY(check_separate(send, receive, *comm.topology));
  call.make([&] { return coll::neighbor_alltoallv_call(send, receive, *comm.topology); });
  return {};
}

Result Neighbor_alltoallw_call(const void* sendbuf, Counts sendcounts, Counts sdispls,
                               const MPI_Datatype* sendtypes, void* recvbuf, Counts recvcounts,
                               Counts rdispls, const MPI_Datatype* recvtypes, Communicator& comm,
                               CollectiveCall& call) {
  call.send_types = resolve(sendtypes, static_cast<int>(comm.topology->destinations.size()));
  call.receive_types = resolve(recvtypes, static_cast<int>(comm.topology->sources.size()));
  const Blocks send{const_cast<void*>(sendbuf), sendcounts, sdispls, nullptr, call.send_types.data()};
  const Blocks receive{recvbuf, recvcounts, rdispls, nullptr, call.receive_types.data()};
  NEAR_TRY(check_separate(send, receive, *comm.topology));
  call.make([&] { return coll::neighbor_alltoallw_call(send, receive, *comm.topology); });
  return {};
}

} // namespace near::mpi::impl
