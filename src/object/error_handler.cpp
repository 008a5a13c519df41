// The predefined error handlers, and the pool of the others. mpi/ decides which of them is called when.
#include "object/error_handler.h"

namespace near::object {

namespace {

constinit Immortal<Pool<ErrorHandler, Kind::error_handler>> error_handler_pool;

HandleBits bits_of(MPI_Errhandler handle) {
  return static_cast<HandleBits>(reinterpret_cast<std::uintptr_t>(handle));
}

ErrorHandler* make_predefined(MPI_Errhandler handle, ErrorAction action) {
  auto* made = new ErrorHandler;
  made->kind = Kind::error_handler;
  made->predefined = true;
  made->handle = bits_of(handle);
  made->action = action;
  return made;
}

} // namespace

Pool<ErrorHandler, Kind::error_handler>& error_handlers() { return error_handler_pool.value; }

ErrorHandler* errors_are_fatal() {
  static ErrorHandler* const handler = make_predefined(MPI_ERRORS_ARE_FATAL, ErrorAction::fatal);
  return handler;
}

ErrorHandler* errors_abort() {
  static ErrorHandler* const handler = make_predefined(MPI_ERRORS_ABORT, ErrorAction::abort);
  return handler;
}

ErrorHandler* errors_return() {
  static ErrorHandler* const handler = make_predefined(MPI_ERRORS_RETURN, ErrorAction::give_back);
  return handler;
}

ErrorHandler* find_error_handler(MPI_Errhandler handle) {
  if (handle == MPI_ERRORS_ARE_FATAL) return errors_are_fatal();
  if (handle == MPI_ERRORS_ABORT) return errors_abort();
  if (handle == MPI_ERRORS_RETURN) return errors_return();
  return error_handler_pool.value.find(reinterpret_cast<std::uintptr_t>(handle));
}

ErrorHandler* make_error_handler(Kind applies_to, void* function) {
  ErrorHandler* made = error_handler_pool.value.make();
  if (made == nullptr) return nullptr;
  made->action = ErrorAction::call;
  made->applies_to = applies_to;
  made->function = function;
  return made;
}

void release(ErrorHandler* handler) {
  if (handler->predefined) return;
  if (handler->references.add_relaxed(-1) == 1) error_handler_pool.value.destroy(handler);
}

} // namespace near::object
