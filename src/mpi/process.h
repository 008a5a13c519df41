// This process as an MPI process: where in its life it stands, and what it was told at its start.
// Source: MPI 5.0, section 11.2 (the world model).
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
  bool forked = false;         ///< made by fork() in a process that had called MPI_Init
  boot::Start start;
  /// Of errors that belong to no file: MPI_File_set_errhandler(MPI_FILE_NULL) changes it (MPI 5.0, 14.7).
  object::ErrorHandler* file_errors = nullptr;
};

inline Process process;

/// Ends the job: every process of it, with this code (MPI 5.0, MPI_Abort). Nothing is printed.
[[noreturn]] void abort_job(int code, segment::Abort how);

} // namespace near::mpi
