// One MPI call, from entry to return: takes the engine lock, writes the state line, and turns a failure into
// a call of the right error handler. The generated entry points make one of these first.
#pragma once

#include "mpi/process.h"
#include "object/window.h"
#include "transport/transport.h"

#include <exception>
#include <tuple>

namespace near::mpi {

using object::Result;

class Call {
public:
  /// `function`: row of surface::functions.
  [[gnu::always_inline]] explicit Call(unsigned function)
      : line_(several_ ? transport::own_state_line() : *the_line_), function_(function),
        outer_(line_.function.load_relaxed()) {
    line_.function.store_relaxed(function);
    line_.calls.bump_relaxed(1);
  }
  [[gnu::always_inline]] ~Call() {
    // A branch, not a copy: the next call's load need not wait for this call's.
    if (outer_ != 0) [[unlikely]]
      back_to(line_, outer_);
    else
      line_.function.store_relaxed(0);
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  /// Fails before initialization and after finalization.
  Result enter() const {
    if (process.life == Life::running) [[likely]]
      return {};
    return refuse();
  }

  /// Names the communicator whose error handler a failure of this call runs. Remembered by handle, so a
  /// communicator that goes away during the call does no harm.
  void on(const object::Communicator& communicator) { object_ = communicator.handle; }
  /// The same for a window.
  void on(const object::Window& window) { object_ = window.handle; }
  /// The same, if the handle is good.
  void on_valid(MPI_Comm handle) {
    if (auto* found = object::find_communicator(handle)) on(*found);
  }
  /// A failure runs the error handler for files that are not open.
  void on_files() { files_ = true; }

  /// Writes what the call is about into the state line.
  void about(const object::Communicator& communicator, int peer = MPI_UNDEFINED, int tag = MPI_UNDEFINED,
             MPI_Count bytes = 0) const {
    write_about(line_, communicator.context, peer, tag, bytes);
  }
  [[gnu::always_inline]] static void write_about(segment::StateLine& line, std::uint64_t context, int peer,
                                                 int tag, MPI_Count bytes) {
    line.sequence.bump_relaxed(1);
    // SYNC: state-line — a reader that sees a new field must see the odd number before it, and one that sees
    // the even number after it must see every field.
    line.context.store_release(context);
    line.peer.store_release(peer);
    line.tag.store_release(tag);
    line.bytes.store_release(static_cast<std::uint64_t>(bytes));
    line.sequence.bump_release(1);
  }

  /// What the entry point returns for this outcome.
  int finish(Result result) const {
    if (result.ok()) [[likely]]
      return MPI_SUCCESS;
    return raise(result);
  }
  /// Runs the error handler; returns the error code if that lets the call return.
  int raise(Result failure) const { return raise(failure, function_, object_, files_); }
  /// What a function that does not exist yet does: names itself and raises MPI_ERR_UNSUPPORTED_OPERATION.
  int unsupported() const { return raise(not_here(function_), function_, object_, files_); }
  /// The same for one that makes a session, whose error handler is an argument.
  [[gnu::cold]] [[gnu::noinline]] int unsupported_session(MPI_Errhandler handler) const;

  /// Where state is written from now on: this line, or each thread's own. nullptr: nowhere.
  static void write_state_to(segment::StateLine* line, bool several_threads) {
    the_line_ = line != nullptr ? line : &nowhere_;
    several_ = several_threads;
    fast_line_ = several_threads || line == nullptr ? &closed_ : line;
  }

  /// The state line for a call that takes a fast path (fast.h). It may only if the line has no function:
  /// else it is inside another call (a callback of the program's), and the line would have to be put back; or
  /// this is a line that always has one, since MPI does not run, or several threads may call it.
  static segment::StateLine& fast_line() { return *fast_line_; }
  static void end_fast_calls() { fast_line_ = &closed_; }

private:
  // The cold half; static, so that a Call can live in registers.
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

  transport::EngineLock lock_; // first in, last out
  segment::StateLine& line_;
  unsigned function_, outer_;
  object::HandleBits object_ = 0; ///< a communicator or a window
  bool files_ = false;
};

/// A handle that a call makes, and what it is if the call fails.
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

/// A call that makes objects. Their handles are null after a failure, and already when its error handler
/// runs.
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

/// The same for MPI_T functions, which never run an error handler.
[[gnu::cold]] int unsupported_tool(unsigned function);
/// And for functions that return a value: a note, and the value that means nothing.
[[gnu::cold]] void note_unsupported(unsigned function);
template <class T>
T unsupported_value(unsigned function) {
  note_unsupported(function);
  return T{};
}

/// What an entry point does when the implementation threw: memory is used up, or a defect of ours.
[[gnu::cold]] int caught(unsigned function, const std::exception& thrown);

} // namespace near::mpi

/// In an entry point: returns through the error handler when the expression failed.
#define NEAR_CHECK(expression)                                                                               \
  if (::near::object::Result near_bad = (expression); !near_bad.ok()) [[unlikely]]                           \
  return call.raise(near_bad)

/// The name of a function that a profiling library may replace, beside the PMPI_ name that it then calls.
/// Weak, in the same unit as its strong twin, so link-time optimisation keeps both.
#define NEAR_PROFILED(name, type, parameters)                                                                \
  __attribute__((weak, alias("P" #name), visibility("default"))) type name parameters;
