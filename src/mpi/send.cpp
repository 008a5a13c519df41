// Blocking and nonblocking sends in the four modes; send-receive. Source: MPI 5.0, sections 3.2 to 3.10.
#include "mpi/buffer_argument.h"
#include "mpi/fast.h"
#include "mpi/impl.h"
#include "transport/transport.h"

namespace near::mpi {

int fast::finish_small(transport::SendState& send_state) {
  p2p::more_to_do(send_state);
  return MPI_SUCCESS;
}

namespace impl {

using p2p::Completion;
using p2p::Request;
using p2p::SendMode;

Result Send(const void* buf, MPI_Count count, Datatype& datatype, int dest, int tag, Communicator& comm) {
  return p2p::send(buffer_of(buf, count, datatype), dest, tag, comm, SendMode::standard);
}

Result Bsend(const void* buf, MPI_Count count, Datatype& datatype, int dest, int tag, Communicator& comm) {
  return p2p::send(buffer_of(buf, count, datatype), dest, tag, comm, SendMode::buffered);
}

Result Ssend(const void* buf, MPI_Count count, Datatype& datatype, int dest, int tag, Communicator& comm) {
  return p2p::send(buffer_of(buf, count, datatype), dest, tag, comm, SendMode::synchronous);
}

Result Rsend(const void* buf, MPI_Count count, Datatype& datatype, int dest, int tag, Communicator& comm) {
  return p2p::send(buffer_of(buf, count, datatype), dest, tag, comm, SendMode::ready);
}

Result Isend(const void* buf, MPI_Count count, Datatype& datatype, int dest, int tag, Communicator& comm,
             Request*& request) {
  return p2p::start_send(buffer_of(buf, count, datatype), dest, tag, comm, SendMode::standard, request);
}

Result Ibsend(const void* buf, MPI_Count count, Datatype& datatype, int dest, int tag, Communicator& comm,
              Request*& request) {
  return p2p::start_send(buffer_of(buf, count, datatype), dest, tag, comm, SendMode::buffered, request);
}

Result Issend(const void* buf, MPI_Count count, Datatype& datatype, int dest, int tag, Communicator& comm,
              Request*& request) {
  return p2p::start_send(buffer_of(buf, count, datatype), dest, tag, comm, SendMode::synchronous, request);
}

Result Irsend(const void* buf, MPI_Count count, Datatype& datatype, int dest, int tag, Communicator& comm,
              Request*& request) {
  return p2p::start_send(buffer_of(buf, count, datatype), dest, tag, comm, SendMode::ready, request);
}

Result Sendrecv(const void* sendbuf, MPI_Count sendcount, Datatype& sendtype, int dest, int sendtag,
                void* recvbuf, MPI_Count recvcount, Datatype& recvtype, int source, int recvtag,
                Communicator& comm, MPI_Status* status) {
  Completion completion;
  Result result =
      p2p::send_receive(buffer_of(sendbuf, sendcount, sendtype), dest, sendtag,
                        buffer_of(recvbuf, recvcount, recvtype), source, recvtag, comm, completion);
  p2p::write_status(status, completion, false);
  return result;
}

Result Sendrecv_replace(void* buf, MPI_Count count, Datatype& datatype, int dest, int sendtag, int source,
                        int recvtag, Communicator& comm, MPI_Status* status) {
  Completion completion;
  Result result = p2p::send_receive_replace(buffer_of(buf, count, datatype), dest, sendtag, source, recvtag,
                                            comm, completion);
  p2p::write_status(status, completion, false);
  return result;
}

Result Isendrecv(const void* sendbuf, MPI_Count sendcount, Datatype& sendtype, int dest, int sendtag,
                 void* recvbuf, MPI_Count recvcount, Datatype& recvtype, int source, int recvtag,
                 Communicator& comm, Request*& request) {
  return p2p::start_send_receive(buffer_of(sendbuf, sendcount, sendtype), dest, sendtag,
                                 buffer_of(recvbuf, recvcount, recvtype), source, recvtag, comm, request);
}

Result Isendrecv_replace(void* buf, MPI_Count count, Datatype& datatype, int dest, int sendtag, int source,
                         int recvtag, Communicator& comm, Request*& request) {
  return p2p::start_send_receive_replace(buffer_of(buf, count, datatype), dest, sendtag, source, recvtag,
                                         comm, request);
}

} // namespace impl

} // namespace near::mpi
