// Prints the memory of this process after MPI_Init, before it sends anything, in KiB as the kernel reports
// it: private memory, touched memory of the segment, and page tables.
#include "check.h"

#include <string.h>

static long kib_of(const char* name) {
  FILE* status = fopen("/proc/self/status", "r");
  CHECK(status != NULL);
  char line[256];
  long kib = -1;
  while (fgets(line, sizeof line, status) != NULL)
    if (strncmp(line, name, strlen(name)) == 0 && sscanf(line + strlen(name), ": %ld kB", &kib) == 1) break;
  fclose(status);
  CHECK(kib >= 0);
  return kib;
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  printf("%ld %ld %ld\n", kib_of("RssAnon"), kib_of("RssShmem"), kib_of("VmPTE"));
  OK(MPI_Finalize());
  return 0;
}
