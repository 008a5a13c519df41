// Requests: the state of nonblocking operations until they complete. Source: MPI 5.0, sections 3.7 to 3.9.
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

/// The channel of the program's own messages, as part of a context.
inline constexpr auto user_channel = static_cast<std::uint64_t>(Channel::user);

/// The outcome of an operation, before it is written into an MPI_Status.
struct Completion {
  int source = MPI_ANY_SOURCE;
  int tag = MPI_ANY_TAG;
  int error = MPI_SUCCESS; ///< error class of this operation alone; MPI_SUCCESS if it succeeded
  bool cancelled = false;
  MPI_Count bytes = 0; ///< packed bytes received
};

/// Base of every request. The state of transfers is in p2p's derived types (engine.h).
struct Request : object::Object {
  RequestKind what = RequestKind::send;
  bool persistent = false;
  bool active = false;                  ///< started, and not yet ended by a completion call
  bool complete = false;                ///< the operation is finished; `completion` is final
  bool freed = false;                   ///< MPI_Request_free was called: destroyed on completion
  Communicator* communicator = nullptr; ///< owned reference; nullptr for generalized requests
  Completion completion;
};

/// An operation that another layer drives through a request: a nonblocking collective, MPI_Isendrecv, or a
/// flush.
struct Schedule {
  virtual ~Schedule() = default;
  /// Starts the operation. Called at each start of a persistent request.
  virtual Result begin() { return {}; }
  /// Does what can be done without waiting. Returns true if the operation is finished and `completion` has
  /// been filled in. Called by the progress engine under the engine lock; may start requests but must not wait.
  virtual bool advance(Completion& completion) = 0;
  /// Whether the operation waits for something that other processes store in shared memory and announce by
  /// ringing this process's doorbell.
  virtual bool watches_memory() const { return false; }
  /// Whether advance() would find such a store now. Called before a sleep if watches_memory(). Changes nothing.
  virtual bool may_advance() const { return false; }
  /// Abandons the operation if that is still possible; advance() still reports when it is finished.
  virtual void cancel() {}
  /// Ends an operation that has begun but for which there is no memory: advance() is not called again before the
  /// next begin(). Must not throw.
  virtual void leave() {}
  /// The message of the failure in completion.error.
  virtual std::string_view sentence() const { return "the operation failed"; }
};
/// Makes a request for `schedule`, active unless `persistent`. Errors are raised on `communicator`, which may
/// be null.
Result make_scheduled(Communicator* communicator, std::unique_ptr<Schedule> schedule, bool persistent,
                      Request*& made);

/// Returns the live request of this handle; nullptr for MPI_REQUEST_NULL and for invalid handles.
Request* find_request(MPI_Request handle);

/// The request of every send that left at once, and of other operations that are finished as soon as they start. It is
/// complete, with the empty status, and has no owner. A completion call only sets the caller's handle to null, so any
/// number of operations may share it. Made by attach().
inline MPI_Request sent_request = MPI_REQUEST_NULL;
/// Returns the request of the handle sent_request; nullptr if there was no memory for it.
Request* finished_request();

/// The number of live requests, not counting sent_request, for MPI_Finalize's leak report.
std::size_t live_requests();

inline MPI_Request public_handle(const Request& request) {
  return reinterpret_cast<MPI_Request>(static_cast<std::uintptr_t>(request.handle));
}

/// Fills the caller's status (which may be MPI_STATUS_IGNORE). MPI_ERROR is written only if `with_error`.
void write_status(MPI_Status* status, const Completion& completion, bool with_error);
/// The empty status of MPI 5.0, 3.7.3: source MPI_ANY_SOURCE, tag MPI_ANY_TAG, error MPI_SUCCESS, count 0.
void write_empty_status(MPI_Status* status);
/// The number of bytes recorded in a status. (The layout of MPI_internal is NearMPI's own.)
MPI_Count status_bytes(const MPI_Status& status);
inline void set_status_bytes(MPI_Status& status, MPI_Count bytes) {
  std::int64_t wide = bytes;
  std::memcpy(&status.MPI_internal[0], &wide, sizeof wide);
}
bool status_cancelled(const MPI_Status& status);
inline void set_status_cancelled(MPI_Status& status, bool cancelled) {
  status.MPI_internal[2] = cancelled ? 1 : 0;
}

// Completion. When a request completes, it is destroyed and its handle set to MPI_REQUEST_NULL, unless it is
// persistent: then it becomes inactive. MPI_REQUEST_NULL and inactive requests give the empty status. The
// returned Result is the error of the operation itself; the bindings raise it on the right object.

/// Waits until the request is complete, without finishing it.
void wait_complete(Request& request);
/// Finishes a complete request: writes the status, then destroys or deactivates the request. Returns the
/// operation's error.
Result finish(MPI_Request& handle, Request& request, MPI_Status* status, bool with_error);
/// Writes the status that finish() would give, without finishing the request (MPI_Request_get_status).
Result peek(Request& request, MPI_Status* status);
/// Cancels a send or receive that has not been matched; a matched one completes as usual (MPI 5.0, 3.8.4).
Result cancel(Request& request);
/// Starts an inactive persistent request; fails with MPI_ERR_REQUEST for any other.
Result start(Request& request);
/// Frees a request (MPI_Request_free): destroys it now, or when its operation completes.
void free_request(MPI_Request& handle, Request& request);

/// Generalized requests (MPI 5.0, 13.2).
Result make_generalized(MPI_Grequest_query_function* query, MPI_Grequest_free_function* free_function,
                        MPI_Grequest_cancel_function* cancel_function, void* extra_state, Request*& made);
/// Completes a generalized request (MPI_Grequest_complete). Fails with MPI_ERR_REQUEST if the request is of another
/// kind or already complete.
Result complete_generalized(Request& request);

/// Runs the progress engine once. Returns true if anything happened.
bool progress();
/// Makes progress in a call such as MPI_Test that has found nothing and will probably be repeated. Where ranks
/// share processors, repeated polls yield the processor (patience.h) and then run the engine once more.
/// `what` identifies the thing that was checked, so that its next poll is recognised; `checks` is the number
/// of things that were checked.
void poll(std::uintptr_t what, std::uint64_t checks);
void poll(std::uintptr_t what);
inline void poll(const void* what) { poll(reinterpret_cast<std::uintptr_t>(what)); }
inline void poll(const void* what, int checks) {
  poll(reinterpret_cast<std::uintptr_t>(what), static_cast<std::uint64_t>(checks));
}
/// Sets whether polls yield; by default they do not. With `always` they yield even in a program that computes
/// between its polls.
void let_polls_yield(bool yields, bool always = false);
/// Waits (spins, then sleeps) until done() returns true, and makes progress meanwhile. done() is called under
/// the engine lock, by this thread only. `check` may be called by another waiting thread: it returns
/// whether done() is worth calling, must not change anything and cannot fail.
void wait_until(bool (*done)(void*), void* argument, bool (*check)(void*));
/// Waits until attempt(argument) has taken a lock that processes share; `waiters` belongs to that lock
/// (queue/shared_lock.h). A failed attempt must leave nothing behind but its announcement. Callers try once themselves first.
void wait_for_lock(base::Atomic<std::uint64_t>& waiters, bool (*attempt)(void*), void* argument);
template <class F>
bool call_at(void* at) {
  return (*static_cast<F*>(at))();
}
/// Like wait_until() above, for a condition that has no side effects and cannot fail, so that any thread may test it.
template <class F>
void wait_until(F&& done) {
  using Done = std::remove_reference_t<F>;
  wait_until(call_at<Done>, &done, call_at<Done>);
}
/// Like wait_until(), for words in shared memory that other processes store before they ring this one's doorbell. `done`
/// must not change anything and cannot fail.
void wait_until_stored(bool (*done)(void*), void* argument);
template <class F>
void wait_until_stored(F&& done) {
  wait_until_stored(call_at<std::remove_reference_t<F>>, &done);
}
/// Like wait_until() above, for a condition that has side effects or may fail, with a separate `check` for other threads.
template <class F, class G>
void wait_until(F&& done, G&& check) {
  struct Both {
    F& done;
    G& check;
  } both{done, check};
  wait_until([](void* at) -> bool { return static_cast<Both*>(at)->done(); }, &both,
             [](void* at) -> bool { return static_cast<Both*>(at)->check(); });
}

} // namespace near::p2p
