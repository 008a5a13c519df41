// Error handlers. Source: MPI 5.0, section 9.3.
#pragma once

#include "object/error.h"
#include "object/object.h"

namespace near::object {

enum class ErrorAction : std::uint8_t { fatal, abort, give_back, call };

struct ErrorHandler : Object {
  ErrorAction action = ErrorAction::give_back;
  Kind applies_to = Kind::none; ///< communicator, window, file or session, for user functions
  void* function = nullptr;     ///< MPI_Comm_errhandler_function*, or the type for `applies_to`
  void* extra_state = nullptr;  ///< for callers in other languages (Fortran)
  int user_handles =
      1; ///< how many of the references MPI_Errhandler_free may drop, so that a double free finds none
};

Pool<ErrorHandler, Kind::error_handler>& error_handlers();
/// Returns the live error handler with this handle, predefined or not; nullptr for MPI_ERRHANDLER_NULL and any other
/// value.
ErrorHandler* find_error_handler(MPI_Errhandler handle);
ErrorHandler* make_error_handler(Kind applies_to, void* function);
ErrorHandler* errors_are_fatal();
ErrorHandler* errors_abort();
ErrorHandler* errors_return();
/// Drops one reference; the last one destroys the error handler. Has no effect on predefined ones.
void release(ErrorHandler* handler);

inline MPI_Errhandler public_handle(const ErrorHandler& handler) {
  return reinterpret_cast<MPI_Errhandler>(static_cast<std::uintptr_t>(handler.handle));
}

} // namespace near::object
