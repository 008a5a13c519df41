// Requests: what a nonblocking operation is until it completes. Source: MPI 5.0, sections 3.7 to 3.9.
#pragma once

#include "datatype/datatype.h"
#include "object/communicator.h"

namespace near::p2p {

using datatype::View;
using object::Channel;
using object::Communicator;
using object::Result;

enum class RequestKind : std::uint8_t { send, receive, generalized, schedule };

/// What completed, before it is written into an MPI_Status.
struct Completion {
  int source = MPI_ANY_SOURCE;
  int tag = MPI_ANY_TAG;
  int error = MPI_SUCCESS; ///< error class of this operation alone
  bool cancelled = false;
  MPI_Count bytes = 0; ///< packed bytes received
};

/// Base of every request. `Engine` parts (transfer state) are in the derived types of p2p's own files.
struct Request : object::Object {
  RequestKind what = RequestKind::send;
  bool persistent = false;
  bool active = false;                  ///< started and not yet given back by a completion call
  bool complete = false;                ///< the operation is finished; `completion` is final
  bool freed = false;                   ///< MPI_Request_free was called: destroy on completion
  Communicator* communicator = nullptr; ///< owned reference; nullptr for generalized requests
  Completion completion;
};

/// The live request of this handle; nullptr for MPI_REQUEST_NULL and anything that is no request.
Request* find_request(MPI_Request handle);

inline MPI_Request public_handle(const Request& request) {
  return reinterpret_cast<MPI_Request>(static_cast<std::uintptr_t>(request.handle));
}

/// Fills the caller's status (which may be MPI_STATUS_IGNORE). MPI_ERROR is written only if `with_error`.
void write_status(MPI_Status* status, const Completion& completion, bool with_error);
/// The empty status of MPI 5.0, 3.7.3: source ANY_SOURCE, tag ANY_TAG, count 0.
void write_empty_status(MPI_Status* status, bool with_error);
/// Bytes and cancelled flag inside a status; the layout of MPI_internal is ours.
MPI_Count status_bytes(const MPI_Status& status);
void set_status_bytes(MPI_Status& status, MPI_Count bytes);
bool status_cancelled(const MPI_Status& status);
void set_status_cancelled(MPI_Status& status, bool cancelled);

// Completion. A request that completed and is not persistent is destroyed and `handle` becomes
// MPI_REQUEST_NULL; a persistent one becomes inactive. MPI_REQUEST_NULL and inactive requests give the empty
// status. The returned Result is the operation's own error (its class), raised by the glue on the right
// object.

/// Waits until the request is complete, without finishing it.
void wait_complete(Request& request);
/// Finishes a complete request: status, error, destruction or deactivation.
Result finish(MPI_Request& handle, Request& request, MPI_Status* status, bool with_error);
Result cancel(Request& request);
Result start(Request& request);
/// MPI_Request_free: destroys now, or when the operation completes.
void free_request(MPI_Request& handle, Request& request);

/// Runs the progress engine once; true when something happened.
bool progress();
/// Waits (spin, then sleep) until done() holds. Progress runs in between; done is called under the engine
/// lock.
void wait_until(bool (*done)(void*), void* argument);
template <class F>
void wait_until(F&& done) {
  wait_until([](void* at) -> bool { return (*static_cast<std::remove_reference_t<F>*>(at))(); }, &done);
}

} // namespace near::p2p
