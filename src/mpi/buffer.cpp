// The buffers of buffered sends. Source: MPI 5.0, section 3.6.
#include "mpi/impl.h"

namespace near::mpi::impl {

namespace {

Result attach(Communicator* communicator, void* buffer, MPI_Count size) {
  if (buffer == nullptr && size != 0)
    return base::fail(MPI_ERR_BUFFER, "buffer is a null pointer, but its size is {}", size);
  return p2p::attach_buffer(communicator, buffer, size);
}

/// `address` points to the pointer that receives the buffer's address.
Result detach(Communicator* communicator, void* address, MPI_Count& size) {
  void* buffer = nullptr;
  NEAR_TRY(p2p::detach_buffer(communicator, buffer, size));
  *static_cast<void**>(address) = buffer;
  return {};
}

} // namespace

Result Buffer_attach(void* buffer, MPI_Count size) { return attach(nullptr, buffer, size); }
Result Buffer_detach(void* buffer_addr, MPI_Count& size) { return detach(nullptr, buffer_addr, size); }
Result Buffer_flush() { return p2p::flush_buffer(nullptr); }
Result Buffer_iflush(p2p::Request*& request) { return p2p::start_flush_buffer(nullptr, request); }

Result Comm_attach_buffer(Communicator& comm, void* buffer, MPI_Count size) {
  return attach(&comm, buffer, size);
}
Result Comm_detach_buffer(Communicator& comm, void* buffer_addr, MPI_Count& size) {
  return detach(&comm, buffer_addr, size);
}
Result Comm_flush_buffer(Communicator& comm) { return p2p::flush_buffer(&comm); }
Result Comm_iflush_buffer(Communicator& comm, p2p::Request*& request) {
  return p2p::start_flush_buffer(&comm, request);
}

} // namespace near::mpi::impl
