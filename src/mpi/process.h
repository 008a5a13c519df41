// This process as an MPI process: the stage of its life and its start-up data. Source: MPI 5.0, section 11.2
// (the world model).
#pragma once

#include "boot/boot.h"
#include "object/error_handler.h"

#include <thread>

namespace near::mpi {

enum class Life : unsigned char { before, running, after };

struct Process {
  Life life = Life::before;
  int thread_level = MPI_THREAD_SINGLE;
  std::thread::id main_thread; ///< the thread that called MPI_Init
  bool forked = false;         ///< a child of fork() in a process that had called MPI_Init
  boot::Start start;
  /// For errors that belong to no file; MPI_File_set_errhandler(MPI_FILE_NULL) changes it (MPI 5.0, 14.7).
  object::ErrorHandler* file_errors = nullptr;
};

inline Process process;

/// Ends all processes of the job with this exit code (MPI 5.0, MPI_Abort). Prints nothing.
[[noreturn]] void abort_job(int code, segment::Abort how);

} // namespace near::mpi
