// Threads of mpiexec that read or write for the ranks.
#pragma once

#include "base/result.h"

#include <functional>

namespace near::launch {

/// Runs `work` in a thread that is never joined: when mpiexec has to end, a reader that does not read, or
/// an endless input, must not delay it. `purpose` is for the message: "the ranks' output".
base::Result start_thread(const char* purpose, std::function<void()> work);

} // namespace near::launch
