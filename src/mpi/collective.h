// Shared by the bindings of collectives. Each collective X has one function X_call, which makes the remaining
// checks and describes the call. From it the generator makes the entry points of the blocking, nonblocking
// and persistent forms; they differ in what they do with the description.
#pragma once

#include "coll/coll.h"
#include "mpi/buffer_argument.h"
#include "mpi/impl.h"

#include <new>
#include <type_traits>
#include <vector>

namespace near::mpi::impl {

using coll::Blocks;
using datatype::Buffer;

/// The description of a collective call, as made by X_call, with the arrays of datatypes to which the w forms
/// refer. It is large, so nothing writes it before X_call constructs it in place: clearing and copying it took as
/// long as a short collective's data needs to reach the other rank.
class CollectiveCall {
public:
  CollectiveCall() {}
  ~CollectiveCall() {}
  CollectiveCall(const CollectiveCall&) = delete;
  CollectiveCall& operator=(const CollectiveCall&) = delete;

  /// describe() returns the coll::Call.
  template <class Describe>
  void make(Describe&& describe) {
    static_assert(std::is_trivially_destructible_v<coll::Call>);
    ::new (static_cast<void*>(&call_)) coll::Call(describe());
  }
  /// Precondition: the description has been made.
  operator const coll::Call&() const { return call_; }

  std::vector<Datatype*> send_types, receive_types;

private:
  union {
    coll::Call call_;
  };
};

using mpi::buffer_of;
inline Buffer buffer_of(const void* address, MPI_Count count, Datatype* type) {
  return Buffer{const_cast<void*>(address), count, type};
}

/// Whether both buffers have data, which begin at the same byte.
inline bool begin_together(const Buffer& a, const Buffer& b) {
  return a.bytes() != 0 && b.bytes() != 0 && a.contiguous_start() == b.contiguous_start();
}

/// Fails with MPI_ERR_BUFFER if both buffers begin at the same byte: the program must pass MPI_IN_PLACE
/// instead (MPI 5.0, 6.2).
[[gnu::cold]] Result same_buffer(const char* send_name, const char* receive_name);
inline Result check_aliasing(const Buffer& send, const Buffer& receive, const char* send_name = "sendbuf",
                             const char* receive_name = "recvbuf") {
  if (send.address == MPI_IN_PLACE || receive.address == MPI_IN_PLACE) return {};
  if (!begin_together(send, receive)) [[likely]]
    return {};
  return same_buffer(send_name, receive_name);
}

/// Fails with MPI_ERR_BUFFER if, for any of the `peers` peers, both blocks begin at the same byte.
Result check_aliasing(const Blocks& send, const Blocks& receive, int peers);
/// Fails with MPI_ERR_BUFFER if the block of any of the `peers` peers begins at the same byte as the buffer.
Result check_aliasing(const Buffer& one, const Blocks& blocks, int peers);

/// Fails on intercommunicators, for collectives that are not defined on them.
Result check_intra(const Communicator& communicator);

/// Converts the datatype handles of the w forms. The result is valid during the call.
std::vector<Datatype*> resolve(const MPI_Datatype* handles, int count);

} // namespace near::mpi::impl
