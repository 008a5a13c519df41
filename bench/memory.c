// Memory of a rank right after MPI_Init, in KiB, the mean of all ranks:
//
//   pss       its proportional share of everything: what is shared with n processes counts 1/n (smaps_rollup)
//   reserved  what stands behind it for good, without files: private memory, its share of shared memory, page
//   tables
//
// The kernel says it, so it means the same for every library. A page counts from when it is touched. All
// ranks read in the same pause, in which none of them does anything else: a share of a page depends on how
// many have touched it by then.
#include "mpi_measure.h"

#include <time.h>

/// Waits, without MPI, for the next moment that is a whole number of `seconds` on everybody's clock, at least
/// half of that away: all ranks that call this within half of it meet.
static void meet(int seconds) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  double at = (double)now.tv_sec + (double)now.tv_nsec / 1e9, half = seconds / 2.0;
  double next = ((long)((at + half) / seconds) + 1) * (double)seconds;
  double left = next - at;
  struct timespec pause = {(time_t)left, (long)((left - (double)(time_t)left) * 1e9)};
  nanosleep(&pause, NULL);
}

/// Adds the KiB of every line of /proc/self/<file> that begins with one of `names` (ended by NULL).
static double kibibytes(const char* file, const char* const* names) {
  char line[256];
  double sum = 0;
  bool found = false;
  FILE* text = fopen(file, "r");
  while (text && fgets(line, sizeof line, text))
    for (const char* const* name = names; *name; ++name)
      if (strncmp(line, *name, strlen(*name)) == 0) sum += strtod(line + strlen(*name), NULL), found = true;
  if (text) fclose(text);
  if (found) return sum;
  fprintf(stderr, "bench: %s does not say %s\n", file, names[0]);
  exit(3);
}

int main(int argc, char** argv) {
  struct world world = init_mpi(&argc, &argv); // and nothing else yet: no message
  double mine[2], sums[2];
  meet(2); // all have left MPI_Init
  mine[0] = kibibytes("/proc/self/smaps_rollup", (const char* const[]){"Pss:", NULL});
  mine[1] = kibibytes("/proc/self/smaps_rollup", (const char* const[]){"Pss_Anon:", "Pss_Shmem:", NULL}) +
            kibibytes("/proc/self/status", (const char* const[]){"VmPTE:", NULL});
  meet(2); // all have read
  introduce(world);
  MPI_Reduce(mine, sums, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (world.rank == 0) {
    print_value("pss", "-", 0, sums[0] / world.size);
    print_value("reserved", "-", 0, sums[1] / world.size);
  }
  MPI_Finalize();
  return 0;
}
