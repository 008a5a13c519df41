// Request calls other than completion: cancel, free, persistent and generalized requests. Source: MPI 5.0,
// sections 3.7.4, 3.8.4, 3.9 and 13.2.
#include "mpi/buffer_argument.h"
#include "mpi/impl.h"

#include <string>

namespace near::mpi::impl {

using p2p::Request;
using p2p::SendMode;

Result Cancel(MPI_Request& request) { return p2p::cancel(*p2p::find_request(request)); }

Result Request_free(MPI_Request& request) {
  p2p::free_request(request, *p2p::find_request(request));
  return {};
}

Result Send_init(const void* buf, MPI_Count count, Datatype& datatype, int dest, int tag, Communicator& comm,
                 Request*& request) {
  return p2p::make_send(buffer_of(buf, count, datatype), dest, tag, comm, SendMode::standard, request);
}

Result Bsend_init(const void* buf, MPI_Count count, Datatype& datatype, int dest, int tag, Communicator& comm,
                  Request*& request) {
  return p2p::make_send(buffer_of(buf, count, datatype), dest, tag, comm, SendMode::buffered, request);
}

Result Ssend_init(const void* buf, MPI_Count count, Datatype& datatype, int dest, int tag, Communicator& comm,
                  Request*& request) {
  return p2p::make_send(buffer_of(buf, count, datatype), dest, tag, comm, SendMode::synchronous, request);
}

Result Rsend_init(const void* buf, MPI_Count count, Datatype& datatype, int dest, int tag, Communicator& comm,
                  Request*& request) {
  return p2p::make_send(buffer_of(buf, count, datatype), dest, tag, comm, SendMode::ready, request);
}

Result Recv_init(void* buf, MPI_Count count, Datatype& datatype, int source, int tag, Communicator& comm,
                 Request*& request) {
  return p2p::make_receive(buffer_of(buf, count, datatype), source, tag, comm, request);
}

Result Start(MPI_Request& request) { return p2p::start(*p2p::find_request(request)); }

Result Startall(int count, MPI_Request* array_of_requests) {
  for (int i = 0; i < count; ++i)
    if (Result started = p2p::start(*p2p::find_request(array_of_requests[i])); !started.ok())
      return base::fail(started.code(), "element {} of array_of_requests: {}", i,
                        std::string(base::failure_text()));
  return {};
}

Result Grequest_start(MPI_Grequest_query_function* query_fn, MPI_Grequest_free_function* free_fn,
                      MPI_Grequest_cancel_function* cancel_fn, void* extra_state, Request*& request) {
  return p2p::make_generalized(query_fn, free_fn, cancel_fn, extra_state, request);
}

Result Grequest_complete(MPI_Request request) {
  return p2p::complete_generalized(*p2p::find_request(request));
}

} // namespace near::mpi::impl
