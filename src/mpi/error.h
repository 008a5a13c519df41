// Error codes, classes and texts, and how error handlers run. Source: MPI 5.0, sections 9.3 to 9.5.
#pragma once

#include "mpi/process.h"

#include <string>
#include <string_view>

namespace near::mpi {

/// The name of an error code, such as "MPI_ERR_RANK"; "error code 16385" for a code that the program made.
std::string error_name(int code);
/// The class of a code; MPI_ERR_UNKNOWN if the code does not exist.
int class_of(int code);
/// The address of the largest code in use, the attribute MPI_LASTUSEDCODE; it stays valid.
int* last_used_code_address();

/// The message of this thread's latest failure if it had this code; otherwise "".
std::string_view last_failure(int code);
/// Records the class of the first failure that is reported as MPI_ERR_IN_STATUS.
void note_first_in_statuses(int error_class);

/// Prints one line and ends the job.
[[noreturn]] void end_with_message(int code, const std::string& text);
/// Runs the error handler; `handle` is the public handle to pass to it. Returns the code that the call
/// returns.
int run_error_handler(const object::ErrorHandler& handler, object::Kind kind, std::uintptr_t handle, int code,
                      const std::string& text);

} // namespace near::mpi
