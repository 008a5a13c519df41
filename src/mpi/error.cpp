// How a failed Result reaches the program: the message, the error handler, the end of the job. Source: MPI
// 5.0, section 9.3.
#include "mpi/error.h"

#include "base/log.h"
#include "boot/watch.h"
#include "mpi/call.h"
#include "surface/functions.h"
#include "transport/peer.h"

#include <functional>
#include <new>
#include <typeinfo>

namespace near::mpi {

using object::ErrorAction;
using object::ErrorHandler;

namespace {

/// This thread's latest failure, which MPI_Error_string adds to the text of its code.
struct LastFailure {
  int code = MPI_SUCCESS;
  std::string text;
};
thread_local LastFailure last;

template <class Function, class Handle>
int call_user(const ErrorHandler& handler, Handle handle, int code) {
  reinterpret_cast<Function*>(handler.function)(&handle, &code);
  return code;
}

} // namespace

void abort_job(int code, segment::Abort how) {
  // A child made by fork() has no segment, and must not end the job.
  transport::abort_job(process.forked ? boot::Start() : process.start, code, how);
}

std::string_view last_failure(int code) { return code == last.code ? std::string_view(last.text) : ""; }

namespace {
thread_local int first_in_statuses = MPI_SUCCESS;
} // namespace

void note_first_in_statuses(int error_class) { first_in_statuses = error_class; }

void end_with_message(int code, const std::string& text) {
  // If several ranks meet the same error, only the first one prints it. The watch says more about a death.
  const int kind = class_of(code) == MPI_ERR_IN_STATUS ? first_in_statuses : class_of(code);
  const bool is_told = kind == MPI_ERR_PROC_ABORTED && !process.forked && boot::death_was_told(process.start);
  if (process.forked || (!is_told && transport::is_first_with_fatal_error()))
    base::write_line(base::Level::error, base::format("{} ({})", text, error_name(class_of(code))));
  abort_job(code, segment::Abort::failed);
}

int run_error_handler(const ErrorHandler& handler, object::Kind kind, std::uintptr_t handle, int code,
                      const std::string& text) {
  switch (handler.action) {
  case ErrorAction::give_back: return code;
  case ErrorAction::call:
    switch (kind) {
    case object::Kind::file:
      return call_user<MPI_File_errhandler_function>(handler, reinterpret_cast<MPI_File>(handle), code);
    case object::Kind::window:
      return call_user<MPI_Win_errhandler_function>(handler, reinterpret_cast<MPI_Win>(handle), code);
    case object::Kind::session:
      return call_user<MPI_Session_errhandler_function>(handler, reinterpret_cast<MPI_Session>(handle), code);
    default:
      return call_user<MPI_Comm_errhandler_function>(handler, reinterpret_cast<MPI_Comm>(handle), code);
    }
  case ErrorAction::fatal:
  case ErrorAction::abort: break;
  }
  end_with_message(code, text);
}

Result Call::refuse() {
  if (process.forked)
    return base::fail(
        MPI_ERR_OTHER,
        "called in a child that was made by fork(): only the process that called MPI_Init may do this");
  return base::fail(MPI_ERR_OTHER, "called {}",
                    process.life == Life::before ? "before MPI_Init" : "after MPI_Finalize");
}

void Call::back_to(segment::StateLine& line, unsigned function) { line.function.store_relaxed(function); }

int Call::raise(Result failure, unsigned function, object::HandleBits on, bool files) {
  int code = object::error_class(failure);
  std::string text = base::format("{}: {}", surface::function_name(function), base::failure_text());
  last = {code, text};
  if (process.life != Life::running) end_with_message(code, text);
  if (files)
    return run_error_handler(
        *(process.file_errors != nullptr ? process.file_errors : object::errors_return()), object::Kind::file,
        reinterpret_cast<std::uintptr_t>(MPI_FILE_NULL), code, text);
  object::Window* window = object::find_window(reinterpret_cast<MPI_Win>(static_cast<std::uintptr_t>(on)));
  if (window != nullptr)
    return run_error_handler(*window->error_handler, object::Kind::window, window->handle, code, text);
  object::Communicator* communicator =
      object::find_communicator(reinterpret_cast<MPI_Comm>(static_cast<std::uintptr_t>(on)));
  if (communicator == nullptr) communicator = object::self();
  return run_error_handler(*communicator->error_handler, object::Kind::communicator, communicator->handle,
                           code, text);
}

Result Call::not_here(unsigned function) {
  if (std::string_view(surface::function_name(function)).find("ession") != std::string_view::npos)
    return base::fail(MPI_ERR_UNSUPPORTED_OPERATION,
                      "sessions are not part of NearMPI " NEAR_VERSION ": call MPI_Init instead");
  return base::fail(MPI_ERR_UNSUPPORTED_OPERATION,
                    "not part of NearMPI " NEAR_VERSION " (`near coverage` lists what is)");
}

int Call::unsupported_session(MPI_Errhandler given) const {
  const ErrorHandler* handler = object::find_error_handler(given);
  if (handler == nullptr)
    return raise(base::fail(MPI_ERR_ERRHANDLER, "errhandler is {:#x}, which is not a valid error handler",
                            reinterpret_cast<std::uintptr_t>(given)));
  int code = object::error_class(not_here(function_));
  last = {code, base::format("{}: {}", surface::function_name(function_), base::failure_text())};
  return run_error_handler(*handler, object::Kind::session,
                           reinterpret_cast<std::uintptr_t>(MPI_SESSION_NULL), code, last.text);
}

namespace {

// Where this library lies in memory. Both are defined by the linker.
extern "C" [[gnu::visibility("hidden")]] const char __ehdr_start, _end;

/// Whether the type of an exception belongs to this library, which has its own C++ library.
bool is_ours(const std::exception& thrown) {
  const auto* const type = reinterpret_cast<const char*>(&typeid(thrown));
  return std::less_equal<>{}(&__ehdr_start, type) && std::less<>{}(type, &_end);
}

} // namespace

int caught(unsigned function, const std::exception& thrown) {
  if (!is_ours(thrown)) throw;
  Call call(function);
  if (dynamic_cast<const std::bad_alloc*>(&thrown) != nullptr)
    return call.raise(base::fail(MPI_ERR_NO_MEM, "memory is used up"));
  if (dynamic_cast<const transport::Unreachable*>(&thrown) != nullptr)
    return call.raise(base::fail(MPI_ERR_OTHER, "{}", thrown.what()));
  return call.raise(base::fail(MPI_ERR_INTERN, "a defect of NearMPI: {}", thrown.what()));
}

void note_unsupported(unsigned function) {
  base::log(base::Level::warning, "{}: not part of NearMPI " NEAR_VERSION, surface::function_name(function));
}

int unsupported_tool(unsigned function) {
  last = {MPI_ERR_UNSUPPORTED_OPERATION,
          base::format("{}: not part of NearMPI " NEAR_VERSION, surface::function_name(function))};
  return MPI_ERR_UNSUPPORTED_OPERATION;
}

} // namespace near::mpi
