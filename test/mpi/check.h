// For the programs of test/mpi: CHECK(condition) ends the whole job with one line that names the rank, the
// condition and its place. A program that returns 0 on every rank has passed.
#pragma once

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                                     \
  do {                                                                                                       \
    if (!(condition)) {                                                                                      \
      int check_rank_ = -1;                                                                                  \
      MPI_Comm_rank(MPI_COMM_WORLD, &check_rank_);                                                           \
      fprintf(stderr, "rank %d: %s:%d: not true: %s\n", check_rank_, __FILE__, __LINE__, #condition);        \
      MPI_Abort(MPI_COMM_WORLD, 1);                                                                          \
      abort();                                                                                               \
    }                                                                                                        \
  } while (0)

/// Requires that the call succeeds.
#define OK(call) CHECK((call) == MPI_SUCCESS)

/// Requires that the call fails with this error class. The object's error handler must be MPI_ERRORS_RETURN.
#define FAILS(error_class, call)                                                                             \
  do {                                                                                                       \
    int check_code_ = (call), check_class_ = MPI_SUCCESS;                                                    \
    MPI_Error_class(check_code_, &check_class_);                                                             \
    if (check_class_ != (error_class)) {                                                                     \
      fprintf(stderr, "%s:%d: %s gave class %d, expected %d\n", __FILE__, __LINE__, #call, check_class_,     \
              (int)(error_class));                                                                           \
      CHECK(check_class_ == (error_class));                                                                  \
    }                                                                                                        \
  } while (0)
