// Error handlers: creation, and the handlers of communicators and of files that are not open. Source: MPI
// 5.0, sections 9.3 and 14.7.
#include "boot/watch.h"
#include "mpi/error.h"
#include "mpi/impl.h"

namespace near::mpi::impl {

using object::ErrorAction;
using object::Kind;

namespace {

Result create(Kind applies_to, void* function, ErrorHandler*& made) {
  made = object::make_error_handler(applies_to, function);
  return made != nullptr ? Result() : base::fail(MPI_ERR_NO_MEM, "no memory for an error handler");
}

/// Gives the program a handle to `handler`, to be freed by MPI_Errhandler_free.
ErrorHandler* hand_out(ErrorHandler& handler) {
  if (!handler.predefined) ++handler.user_handles;
  return object::keep(&handler);
}

Result check_fits(const ErrorHandler& handler, Kind kind, const char* what) {
  if (handler.action != ErrorAction::call || handler.applies_to == kind) return {};
  return base::fail(MPI_ERR_ARG, "errhandler {:#x} was not made for a {}", handler.handle, what);
}

Result check_no_file(MPI_File file) {
  if (file == MPI_FILE_NULL) return {};
  return base::fail(MPI_ERR_FILE, "file is {:#x}, which is not a valid file handle",
                    reinterpret_cast<std::uintptr_t>(file));
}

std::string called_by_program(const char* function, int errorcode) {
  return base::format("{}: the program reports {}", function, error_name(errorcode));
}

} // namespace

Result Comm_create_errhandler(MPI_Comm_errhandler_function* comm_errhandler_fn, ErrorHandler*& errhandler) {
  return create(Kind::communicator, reinterpret_cast<void*>(comm_errhandler_fn), errhandler);
}

Result Win_create_errhandler(MPI_Win_errhandler_function* win_errhandler_fn, ErrorHandler*& errhandler) {
  return create(Kind::window, reinterpret_cast<void*>(win_errhandler_fn), errhandler);
}

Result File_create_errhandler(MPI_File_errhandler_function* file_errhandler_fn, ErrorHandler*& errhandler) {
  return create(Kind::file, reinterpret_cast<void*>(file_errhandler_fn), errhandler);
}

Result Session_create_errhandler(MPI_Session_errhandler_function* session_errhandler_fn,
                                 ErrorHandler*& errhandler) {
  return create(Kind::session, reinterpret_cast<void*>(session_errhandler_fn), errhandler);
}

Result Errhandler_free(ErrorHandler& errhandler) {
  if (errhandler.user_handles == 0)
    return base::fail(MPI_ERR_ERRHANDLER, "errhandler is {:#x}, which is freed already", errhandler.handle);
  --errhandler.user_handles;
  object::release(&errhandler);
  return {};
}

Result Comm_set_errhandler(Communicator& comm, ErrorHandler& errhandler) {
  NEAR_TRY(check_fits(errhandler, Kind::communicator, "communicator"));
  if (errhandler.action == ErrorAction::give_back || errhandler.action == ErrorAction::call)
    boot::leave_losses_to_the_program();
  ErrorHandler* old = comm.error_handler;
  comm.error_handler = object::keep(&errhandler);
  object::release(old);
  return {};
}

Result Comm_get_errhandler(Communicator& comm, ErrorHandler*& errhandler) {
  errhandler = hand_out(*comm.error_handler);
  return {};
}

Result Comm_call_errhandler(Communicator& comm, int errorcode) {
  run_error_handler(*comm.error_handler, Kind::communicator, comm.handle, errorcode,
                    called_by_program("MPI_Comm_call_errhandler", errorcode));
  return {};
}

Result Win_set_errhandler(Window& win, ErrorHandler& errhandler) {
  NEAR_TRY(check_fits(errhandler, Kind::window, "window"));
  ErrorHandler* old = win.error_handler;
  win.error_handler = object::keep(&errhandler);
  object::release(old);
  return {};
}

Result Win_get_errhandler(Window& win, ErrorHandler*& errhandler) {
  errhandler = hand_out(*win.error_handler);
  return {};
}

Result Win_call_errhandler(Window& win, int errorcode) {
  run_error_handler(*win.error_handler, Kind::window, win.handle, errorcode,
                    called_by_program("MPI_Win_call_errhandler", errorcode));
  return {};
}

// Files cannot be opened yet, so MPI_FILE_NULL is the only file: it has the handler of files opened later.

Result File_set_errhandler(MPI_File file, ErrorHandler& errhandler) {
  NEAR_TRY(check_no_file(file));
  NEAR_TRY(check_fits(errhandler, Kind::file, "file"));
  ErrorHandler* old = process.file_errors;
  process.file_errors = object::keep(&errhandler);
  if (old != nullptr) object::release(old);
  return {};
}

Result File_get_errhandler(MPI_File file, ErrorHandler*& errhandler) {
  NEAR_TRY(check_no_file(file));
  errhandler = hand_out(process.file_errors != nullptr ? *process.file_errors : *object::errors_return());
  return {};
}

Result File_call_errhandler(MPI_File fh, int errorcode) {
  NEAR_TRY(check_no_file(fh));
  run_error_handler(process.file_errors != nullptr ? *process.file_errors : *object::errors_return(),
                    Kind::file, reinterpret_cast<std::uintptr_t>(fh), errorcode,
                    called_by_program("MPI_File_call_errhandler", errorcode));
  return {};
}

} // namespace near::mpi::impl
