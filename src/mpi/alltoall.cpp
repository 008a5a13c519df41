// MPI_Alltoall, MPI_Alltoallv, MPI_Alltoallw and their forms. Source: MPI 5.0, sections 6.8, 6.12 and 6.13.
#include "mpi/collective.h"

namespace near::mpi::impl {
namespace {

Result alltoall_of(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
                   MPI_Count recvcount, Datatype& recvtype, coll::Call& call) {
  const Buffer send = buffer_of(sendbuf, sendcount, sendtype),
               receive = buffer_of(recvbuf, recvcount, &recvtype);
  NEAR_TRY(check_aliasing(send, receive));
  call = coll::alltoall_call(send, receive);
  return {};
}

Result alltoallv_of(const void* sendbuf, Counts sendcounts, Counts sdispls, Datatype* sendtype, void* recvbuf,
                    Counts recvcounts, Counts rdispls, Datatype& recvtype, Communicator& comm,
                    coll::Call& call) {
  const Blocks send{const_cast<void*>(sendbuf), sendcounts, sdispls, sendtype, nullptr};
  const Blocks receive{recvbuf, recvcounts, rdispls, &recvtype, nullptr};
  NEAR_TRY(check_aliasing(send, receive, comm.peers));
  call = coll::alltoallv_call(send, receive);
  return {};
}

/// The w forms' arguments, with the type arrays that the Call points to.
class TypedExchange {
public:
  TypedExchange(const void* sendbuf, Counts sendcounts, Counts sdispls, const MPI_Datatype* sendtypes,
                void* recvbuf, Counts recvcounts, Counts rdispls, const MPI_Datatype* recvtypes,
                const Communicator& comm)
      : receive_types_(resolve(recvtypes, comm.peers)), peers_(comm.peers),
        in_place_(sendbuf == MPI_IN_PLACE) {
    if (!in_place_) send_types_ = resolve(sendtypes, comm.peers);
    call_ = coll::alltoallv_call(
        Blocks{const_cast<void*>(sendbuf), sendcounts, sdispls, nullptr, send_types_.data()},
        Blocks{recvbuf, recvcounts, rdispls, nullptr, receive_types_.data()});
  }
  Result check() const {
    if (in_place_) return {}; // the call has the receive buffer on both sides then
    return check_aliasing(call_.send_blocks, call_.receive_blocks, peers_);
  }
  const coll::Call& call() const { return call_; }

private:
  std::vector<Datatype*> send_types_, receive_types_;
  int peers_;
  bool in_place_;
  coll::Call call_;
};

} // namespace

Result Alltoall(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
                MPI_Count recvcount, Datatype& recvtype, Communicator& comm) {
  coll::Call call;
  NEAR_TRY(alltoall_of(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, call));
  return coll::run(call, comm);
}

Result Ialltoall(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
                 MPI_Count recvcount, Datatype& recvtype, Communicator& comm, p2p::Request*& request) {
  coll::Call call;
  NEAR_TRY(alltoall_of(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, call));
  return coll::start(call, comm, request);
}

Result Alltoall_init(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
                     MPI_Count recvcount, Datatype& recvtype, Communicator& comm, Info*,
                     p2p::Request*& request) {
  coll::Call call;
  NEAR_TRY(alltoall_of(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, call));
  return coll::prepare(call, comm, request);
}

Result Alltoallv(const void* sendbuf, Counts sendcounts, Counts sdispls, Datatype* sendtype, void* recvbuf,
                 Counts recvcounts, Counts rdispls, Datatype& recvtype, Communicator& comm) {
  coll::Call call;
  NEAR_TRY(alltoallv_of(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm,
                        call));
  return coll::run(call, comm);
}

Result Ialltoallv(const void* sendbuf, Counts sendcounts, Counts sdispls, Datatype* sendtype, void* recvbuf,
                  Counts recvcounts, Counts rdispls, Datatype& recvtype, Communicator& comm,
                  p2p::Request*& request) {
  coll::Call call;
  NEAR_TRY(alltoallv_of(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm,
                        call));
  return coll::start(call, comm, request);
}

Result Alltoallv_init(const void* sendbuf, Counts sendcounts, Counts sdispls, Datatype* sendtype,
                      void* recvbuf, Counts recvcounts, Counts rdispls, Datatype& recvtype,
                      Communicator& comm, Info*, p2p::Request*& request) {
  coll::Call call;
  NEAR_TRY(alltoallv_of(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm,
                        call));
  return coll::prepare(call, comm, request);
}

Result Alltoallw(const void* sendbuf, Counts sendcounts, Counts sdispls, const MPI_Datatype* sendtypes,
                 void* recvbuf, Counts recvcounts, Counts rdispls, const MPI_Datatype* recvtypes,
                 Communicator& comm) {
  const TypedExchange exchange(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls,
                               recvtypes, comm);
  NEAR_TRY(exchange.check());
  return coll::run(exchange.call(), comm);
}

Result Ialltoallw(const void* sendbuf, Counts sendcounts, Counts sdispls, const MPI_Datatype* sendtypes,
                  void* recvbuf, Counts recvcounts, Counts rdispls, const MPI_Datatype* recvtypes,
                  Communicator& comm, p2p::Request*& request) {
  const TypedExchange exchange(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls,
                               recvtypes, comm);
  NEAR_TRY(exchange.check());
  return coll::start(exchange.call(), comm, request);
}

Result Alltoallw_init(const void* sendbuf, Counts sendcounts, Counts sdispls, const MPI_Datatype* sendtypes,
                      void* recvbuf, Counts recvcounts, Counts rdispls, const MPI_Datatype* recvtypes,
                      Communicator& comm, Info*, p2p::Request*& request) {
  const TypedExchange exchange(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls,
                               recvtypes, comm);
  NEAR_TRY(exchange.check());
  return coll::prepare(exchange.call(), comm, request);
}

} // namespace near::mpi::impl
