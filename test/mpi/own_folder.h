// A folder of this job's own. Process IDs would not do for its name: machines that share /tmp number their processes alike.
#pragma once

#include "check.h"

#include <limits.h>
#include <unistd.h>

/// Makes the folder. `folder` receives its path and has PATH_MAX bytes.
static inline void make_own_folder(char* folder) {
  const char* parent = getenv("TMPDIR");
  CHECK(snprintf(folder, PATH_MAX, "%s/near-test.XXXXXX", parent != NULL ? parent : "/tmp") < PATH_MAX);
  CHECK(mkdtemp(folder) != NULL);
}

/// `path`, which has PATH_MAX bytes, receives that of a file in the folder.
static inline void path_in(const char* folder, const char* name, char* path) {
  CHECK(snprintf(path, PATH_MAX, "%s/%s", folder, name) < PATH_MAX);
}
