// What the bindings of collectives share. Each collective X has one function X_call, which checks what is
// left to check and describes the call. From it the generator makes the entry points of the blocking, the
// nonblocking and the persistent form: they differ in what they do with the description.
#pragma once

#include "coll/coll.h"
#include "mpi/impl.h"

namespace near::mpi::impl {

using coll::Blocks;
using datatype::Buffer;

/// A collective call as its X_call describes it, with the datatypes that the w forms' description points to.
struct CollectiveCall : coll::Call {
  using coll::Call::operator=;
  std::vector<Datatype*> send_types, receive_types;
};

inline Buffer buffer_of(const void* address, MPI_Count count, Datatype* type) {
  return Buffer{const_cast<void*>(address), count, type};
}

/// MPI_ERR_BUFFER when the data of both begins at the same byte: what MPI_IN_PLACE is for (MPI 5.0, 6.2).
[[gnu::cold]] Result same_buffer(const char* send_name, const char* receive_name);
inline Result check_aliasing(const Buffer& send, const Buffer& receive, const char* send_name = "sendbuf",
                             const char* receive_name = "recvbuf") {
  if (send.address == MPI_IN_PLACE || receive.address == MPI_IN_PLACE) return {};
  if (send.bytes() == 0 || receive.bytes() == 0) return {};
  if (send.contiguous_start() != receive.contiguous_start()) [[likely]]
    return {};
  return same_buffer(send_name, receive_name);
}

/// The same for the block of each of `peers`: one begins where the other's does.
Result check_aliasing(const Blocks& send, const Blocks& receive, int peers);
/// The same for one buffer and a side of several blocks, of which none may begin where it does.
Result check_aliasing(const Buffer& one, const Blocks& blocks, int peers);

/// The collective has no meaning between two groups.
Result check_intra(const Communicator& communicator);

/// Datatype handles of the w forms, as objects. Valid for the length of the call.
std::vector<Datatype*> resolve(const MPI_Datatype* handles, int count);

} // namespace near::mpi::impl
