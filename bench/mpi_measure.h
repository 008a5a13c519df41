// The part of measuring that needs MPI: starting, pinning by rank, agreeing on counts.
#pragma once

#include "measure.h"
#include <mpi.h>

static inline void agree_by_broadcast(long* numbers, int count) {
  MPI_Bcast(numbers, count, MPI_LONG, 0, MPI_COMM_WORLD);
}

struct world {
  int rank, size;
};

/// Pins this process and initializes MPI. It is pinned before MPI_Init, so that the library's own memory lies
/// where its rank runs; the launcher has told the rank.
static inline struct world init_mpi_for(int* argc, char*** argv, int threads) {
  const char* names[] = {"NEAR_BOOT_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK"};
  for (int i = 0; i < 3; ++i) {
    const char* text = getenv(names[i]);
    if (!text) continue;
    pin_to(core_of(atoi(text)));
    break;
  }
  int provided;
  struct world world;
  if (threads == MPI_THREAD_SINGLE)
    MPI_Init(argc, argv);
  else
    MPI_Init_thread(argc, argv, threads, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world.size);
  if (threads != MPI_THREAD_SINGLE && provided < threads) {
    if (world.rank == 0) fprintf(stderr, "bench: this library does not provide the threads\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  return world;
}

static inline struct world init_mpi(int* argc, char*** argv) {
  return init_mpi_for(argc, argv, MPI_THREAD_SINGLE);
}

static inline void print_library(struct world world) {
  if (world.rank != 0) return;
  char name[MPI_MAX_LIBRARY_VERSION_STRING];
  int length;
  MPI_Get_library_version(name, &length);
  name[strcspn(name, "\r\n")] = 0;
  printf("info library %s\n", name);
  fflush(stdout);
}

/// Prints the library's name and the cores that the ranks are bound to.
static inline void introduce(struct world world) {
  pin_to(core_of(world.rank)); // again, in case MPI_Init has bound the process elsewhere
  int mine = bound_core(), cores[1024];
  if (world.size > 1024) MPI_Abort(MPI_COMM_WORLD, 2);
  MPI_Gather(&mine, 1, MPI_INT, cores, 1, MPI_INT, 0, MPI_COMM_WORLD);
  print_library(world);
  if (world.rank != 0) return;
  printf("info cores");
  for (int rank = 0; rank < world.size; ++rank) printf(" %d", cores[rank]);
  printf("\n");
  fflush(stdout);
}

static inline struct world start_mpi(int* argc, char*** argv) {
  struct world world = init_mpi(argc, argv);
  introduce(world);
  return world;
}

/// Ends the job when it was started with other than `wanted` ranks (0: any even number).
static inline void require_ranks(struct world world, int wanted) {
  if (wanted ? world.size == wanted : world.size % 2 == 0) return;
  if (world.rank == 0) fprintf(stderr, "bench: this program cannot run on %d ranks\n", world.size);
  MPI_Abort(MPI_COMM_WORLD, 2);
}

/// `count` elements of `bytes` each, all zero; ends the job if there is no memory.
static inline void* allocate(size_t count, size_t bytes) {
  void* memory = calloc(count, bytes);
  if (!memory) {
    fprintf(stderr, "bench: no memory\n");
    MPI_Abort(MPI_COMM_WORLD, 3);
  }
  return memory;
}

static inline struct driver driver_of(struct world world, double budget) {
  return (struct driver){budget, agree_by_broadcast, world.rank == 0, more_than_cores(world.size)};
}
