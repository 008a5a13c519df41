// Error codes, classes and texts, and how an error handler is run. Source: MPI 5.0, sections 9.3 to 9.5.
#pragma once

#include "mpi/process.h"

#include <string>
#include <string_view>

namespace near::mpi {

/// "MPI_ERR_RANK", or "error code 16385" for one that the program made.
std::string error_name(int code);
/// The class of a code; MPI_ERR_UNKNOWN when there is no such code.
int class_of(int code);
/// The largest code in use: the attribute MPI_LASTUSEDCODE.
int last_used_code();
/// The same as the attribute wants it: an address that stays valid.
int* last_used_code_address();

/// The sentence of this thread's newest failure if it had this code; else "".
std::string_view last_failure(int code);

/// Prints one line and ends the job.
[[noreturn]] void end_with_message(int code, const std::string& text);
/// Does what the error handler says; `handle` is the public handle it is told. Returns the code to return.
int run_error_handler(const object::ErrorHandler& handler, object::Kind kind, std::uintptr_t handle, int code,
                      const std::string& text);

} // namespace near::mpi
