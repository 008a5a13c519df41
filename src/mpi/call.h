// One MPI call, from entry to return: takes the engine lock, writes the state line, and calls the right error
// handler after a failure. Each generated entry point makes one of these first.
#pragma once

#include "base/seqlock.h"
#include "mpi/process.h"
#include "object/window.h"
#include "transport/transport.h"

#include <exception>
#include <tuple>

namespace near::mpi {

using object::Result;

class Call {
public:
  /// `function` is a row of surface::functions.
  [[gnu::always_inline]] explicit Call(unsigned function)
      : line_(several_ ? transport::own_state_line() : *the_line_), function_(function),
        outer_(line_.function.load_relaxed()) {
    line_.function.store_relaxed(function);
    line_.calls.bump_relaxed(1);
  }
  [[gnu::always_inline]] ~Call() {
    // A branch instead of a copy, so that the load of the next call need not wait for this store.
    if (outer_ != 0) [[unlikely]]
      back_to(line_, outer_);
    else
      line_.function.store_relaxed(0);
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  /// Fails before initialisation and after finalisation.
  Result enter() const {
    if (process.life == Life::running) [[likely]]
      return {};
    return refuse();
  }

  /// Like enter(), for a call that is also allowed in a child of fork().
  Result enter_in_child() const {
    if (process.life == Life::running || process.forked) [[likely]]
      return {};
    return refuse();
  }

  /// Sets the communicator whose error handler runs if this call fails. Kept as a handle, because the
  /// communicator may be freed during the call.
  void on(const object::Communicator& communicator) { object_ = communicator.handle; }
  /// Sets the window whose error handler runs if this call fails.
  void on(const object::Window& window) { object_ = window.handle; }
  /// Like on(), if the handle is valid; otherwise does nothing.
  void on_valid(MPI_Comm handle) {
    if (auto* found = object::find_communicator(handle)) on(*found);
  }
  /// Makes a failure of this call run the error handler for files that are not open.
  void on_files() { files_ = true; }

  /// Writes communicator, peer, tag and bytes of the call into the state line.
  void about(const object::Communicator& communicator, int peer = MPI_UNDEFINED, int tag = MPI_UNDEFINED,
             MPI_Count bytes = 0) const {
    write_about(line_, communicator.context, peer, tag, bytes);
  }
  [[gnu::always_inline]] static void write_about(segment::StateLine& line, std::uint64_t context, int peer,
                                                 int tag, MPI_Count bytes) {
    using Lock = base::Seqlock<>;
    Lock::begin_change(line.sequence);
    Lock::put(line.context, context);
    Lock::put(line.peer, peer);
    Lock::put(line.tag, tag);
    Lock::put(line.bytes, static_cast<std::uint64_t>(bytes));
    Lock::end_change(line.sequence);
  }

  /// Returns what the entry point returns for this result; runs the error handler after a failure.
  int finish(Result result) const {
    if (result.ok()) [[likely]]
      return MPI_SUCCESS;
    return raise(result);
  }
  /// Runs the error handler. Returns the error code if the handler returns.
  int raise(Result failure) const { return raise(failure, function_, object_, files_); }
  /// For functions that are not implemented: raises MPI_ERR_UNSUPPORTED_OPERATION, with the function's name.
  int unsupported() const { return raise(not_here(function_), function_, object_, files_); }
  /// Like unsupported(), for functions that make a session: their error handler is an argument.
  [[gnu::cold]] [[gnu::noinline]] int unsupported_session(MPI_Errhandler handler) const;

  /// Sets the state line of later calls: `line`, or each thread's own line. nullptr if there is none.
  static void write_state_to(segment::StateLine* line, bool several_threads) {
    the_line_ = line != nullptr ? line : &nowhere_;
    several_ = several_threads;
    fast_line_ = several_threads || line == nullptr ? &closed_ : line;
  }

  /// The state line for a call on a fast path (fast.h). The fast path must decline if the line's function is
  /// not 0. Then either the call is inside another one (a callback of the program), whose state would have to
  /// be restored; or this line always has a function, because MPI is not running or several threads may call
  /// it.
  static segment::StateLine& fast_line() { return *fast_line_; }
  static void end_fast_calls() { fast_line_ = &closed_; }

private:
  // The cold part. It is static, so that a Call can stay in registers.
  [[gnu::cold]] [[gnu::noinline]] static int raise(Result failure, unsigned function, object::HandleBits on,
                                                   bool files);
  [[gnu::cold]] [[gnu::noinline]] static Result refuse();
  [[gnu::cold]] [[gnu::noinline]] static Result not_here(unsigned function);
  [[gnu::cold]] [[gnu::noinline]] static void back_to(segment::StateLine& line, unsigned function);

  static inline segment::StateLine nowhere_{};
  static inline segment::StateLine* the_line_ = &nowhere_;
  static inline bool several_ = false;
  static inline segment::StateLine closed_{{}, base::Atomic<std::uint32_t>(1), {}, {}, {}, {}, {}, {}};
  static inline segment::StateLine* fast_line_ = &closed_;

  transport::EngineLock lock_; // taken first, released last
  segment::StateLine& line_;
  unsigned function_, outer_;
  object::HandleBits object_ = 0; ///< a communicator or a window
  bool files_ = false;
};

/// A handle that a call makes, and the value that it gets if the call fails.
template <class H>
struct Made {
  H* handle;
  H null;
  void fail() const {
    if (handle != nullptr) *handle = null;
  }
};
template <class H>
Made(H*, H) -> Made<H>;

/// A call that makes objects. After a failure their handles are null, and they are already when the error
/// handler runs.
template <class... H>
class MakingCall : public Call {
public:
  [[gnu::always_inline]] explicit MakingCall(unsigned function, Made<H>... made)
      : Call(function), made_(made...) {}
  int finish(Result result) const {
    if (result.ok()) [[likely]]
      return MPI_SUCCESS;
    return raise(result);
  }
  int raise(Result failure) const {
    fail();
    return Call::raise(failure);
  }
  int unsupported() const {
    fail();
    return Call::unsupported();
  }
  int unsupported_session(MPI_Errhandler handler) const {
    fail();
    return Call::unsupported_session(handler);
  }

private:
  void fail() const {
    std::apply([](const auto&... each) { (each.fail(), ...); }, made_);
  }
  std::tuple<Made<H>...> made_;
};

/// Like Call::unsupported(), for MPI_T functions, which never run an error handler.
[[gnu::cold]] int unsupported_tool(unsigned function);
/// Like Call::unsupported(), for functions that return a value: logs a warning; the value returned means
/// nothing.
[[gnu::cold]] void note_unsupported(unsigned function);
template <class T>
T unsupported_value(unsigned function) {
  note_unsupported(function);
  return T{};
}

/// For entry points whose implementation threw an exception; called within its handler: out of memory, a process that cannot be
/// reached, or a defect of NearMPI. Rethrows the program's own exceptions, from a callback or an error handler.
[[gnu::cold]] int caught(unsigned function, const std::exception& thrown);

} // namespace near::mpi

/// For entry points: if the expression failed, returns through the error handler.
#define NEAR_CHECK(expression)                                                                               \
  if (::near::object::Result near_bad = (expression); !near_bad.ok()) [[unlikely]]                           \
  return call.raise(near_bad)

/// Defines the name that a profiling library may replace, as an alias of the PMPI_ function. It is weak, and
/// in the same unit as the PMPI_ function, so that link-time optimisation keeps both.
#define NEAR_PROFILED(name, type, parameters)                                                                \
  __attribute__((weak, alias("P" #name), visibility("default"))) type name parameters;
