// Requests: what a nonblocking operation is until it completes. Source: MPI 5.0, sections 3.7 to 3.9.
#pragma once

#include "datatype/datatype.h"
#include "object/communicator.h"

#include <cstring>
#include <memory>
#include <string_view>
#include <type_traits>

namespace near::p2p {

using datatype::Buffer;
using object::Channel;
using object::Communicator;
using object::Result;

enum class RequestKind : std::uint8_t { send, receive, generalized, schedule };

/// In a communicator's context: the program's own messages.
inline constexpr auto user_channel = static_cast<std::uint64_t>(Channel::user);

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

/// An operation that another layer drives through a request: a nonblocking collective, MPI_Isendrecv, a
/// flush.
struct Schedule {
  virtual ~Schedule() = default;
  /// Begins, or begins again when the request is persistent.
  virtual Result begin() { return {}; }
  /// Does what can be done now without waiting; true when the operation is finished and `completion` filled.
  /// Called by the progress engine under the engine lock; it may start requests but must not wait.
  virtual bool advance(Completion& completion) = 0;
  /// Gives the operation up if that is possible now; advance() tells when it is finished.
  virtual void cancel() {}
  /// Why it failed, when completion.error says that it did.
  virtual std::string_view sentence() const { return "the operation failed"; }
};
/// A request for `schedule`, active unless `persistent`. `communicator` (may be null) is where errors go.
Result make_scheduled(Communicator* communicator, std::unique_ptr<Schedule> schedule, bool persistent,
                      Request*& made);

/// The live request of this handle; nullptr for MPI_REQUEST_NULL and anything that is no request.
Request* find_request(MPI_Request handle);

/// The request of every send that left at once: complete, with the empty status. It belongs to nobody, so a
/// completion call only takes the handle away, and any number of sends may have it at a time. Made by
/// attach().
inline MPI_Request sent_request = MPI_REQUEST_NULL;

/// How many requests live, sent_request aside: what a leak report at finalize counts.
std::size_t live_requests();

inline MPI_Request public_handle(const Request& request) {
  return reinterpret_cast<MPI_Request>(static_cast<std::uintptr_t>(request.handle));
}

/// Fills the caller's status (which may be MPI_STATUS_IGNORE). MPI_ERROR is written only if `with_error`.
void write_status(MPI_Status* status, const Completion& completion, bool with_error);
/// The empty status of MPI 5.0, 3.7.3: source ANY_SOURCE, tag ANY_TAG, error SUCCESS, count 0.
void write_empty_status(MPI_Status* status);
/// Bytes and cancelled flag inside a status; the layout of MPI_internal is ours.
MPI_Count status_bytes(const MPI_Status& status);
inline void set_status_bytes(MPI_Status& status, MPI_Count bytes) {
  std::int64_t wide = bytes;
  std::memcpy(&status.MPI_internal[0], &wide, sizeof wide);
}
bool status_cancelled(const MPI_Status& status);
inline void set_status_cancelled(MPI_Status& status, bool cancelled) {
  status.MPI_internal[2] = cancelled ? 1 : 0;
}

// Completion. A request that completed and is not persistent is destroyed and `handle` becomes
// MPI_REQUEST_NULL; a persistent one becomes inactive. MPI_REQUEST_NULL and inactive requests give the empty
// status. The returned Result is the operation's own error (its class), raised by the bindings on the right
// object.

/// Waits until the request is complete, without finishing it.
void wait_complete(Request& request);
/// Finishes a complete request: status, error, destruction or deactivation.
Result finish(MPI_Request& handle, Request& request, MPI_Status* status, bool with_error);
/// The status that finish() would give, without finishing (MPI_Request_get_status).
Result peek(Request& request, MPI_Status* status);
/// Cancels a receive or send that is not matched; otherwise it completes as usual (MPI 5.0, 3.8.4).
Result cancel(Request& request);
/// Starts an inactive persistent request; any other is MPI_ERR_REQUEST.
Result start(Request& request);
/// MPI_Request_free: destroys now, or when the operation completes.
void free_request(MPI_Request& handle, Request& request);

/// Generalized requests (MPI 5.0, 13.2).
Result make_generalized(MPI_Grequest_query_function* query, MPI_Grequest_free_function* free_function,
                        MPI_Grequest_cancel_function* cancel_function, void* extra_state, Request*& made);
/// MPI_Grequest_complete; MPI_ERR_REQUEST when the request is of another kind or complete already.
Result complete_generalized(Request& request);

/// Runs the progress engine once; true when something happened.
bool progress();
/// progress() for a call such as MPI_Test that has found nothing, and will probably be made again. Where
/// ranks share processors, repeated polls yield the processor (patience.h) and then run the engine once more.
/// `what` identifies the thing that was looked at, so that its next poll is recognised; `looks` is the number
/// of things that were looked at.
void poll(std::uintptr_t what, std::uint64_t looks);
void poll(std::uintptr_t what);
inline void poll(const void* what) { poll(reinterpret_cast<std::uintptr_t>(what)); }
inline void poll(const void* what, int looks) {
  poll(reinterpret_cast<std::uintptr_t>(what), static_cast<std::uint64_t>(looks));
}
/// Sets whether polls yield; by default they do not. With `always` they also do in a program that computes
/// between its polls.
void let_polls_yield(bool yields, bool always = false);
/// Waits (spin, then sleep) until done() is true, and makes progress meanwhile. done() is called under the
/// engine lock, by this thread only. `look` may be called by another waiting thread: it says whether done()
/// is worth calling, takes nothing and cannot fail.
void wait_until(bool (*done)(void*), void* argument, bool (*look)(void*));
template <class F>
bool call_at(void* at) {
  return (*static_cast<F*>(at))();
}
/// wait_until() for a condition that takes nothing and cannot fail, so that any thread may test it.
template <class F>
void wait_until(F&& done) {
  using Done = std::remove_reference_t<F>;
  wait_until(call_at<Done>, &done, call_at<Done>);
}
/// wait_until() for a condition that takes something or may fail, with a look at what it depends on.
template <class F, class G>
void wait_until(F&& done, G&& look) {
  struct Both {
    F& done;
    G& look;
  } both{done, look};
  wait_until([](void* at) -> bool { return static_cast<Both*>(at)->done(); }, &both,
             [](void* at) -> bool { return static_cast<Both*>(at)->look(); });
}

} // namespace near::p2p
