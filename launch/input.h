// Standard input for several ranks: a thread reads mpiexec's own and writes it to a pipe of each.
//
// The slowest reader sets the pace, so memory stays bounded. A rank that ends, or closes its standard input,
// is left out from then on.
#pragma once

#include "base/result.h"

#include <vector>

namespace near::launch {

class Input {
public:
  /// A pipe for one more rank; `read_end` is for the rank, the caller closes it once the rank has it.
  base::Result add(int& read_end);
  /// Starts to read, once all ranks have been started.
  base::Result start();

private:
  std::vector<int> pipes_; ///< the thread's, once it has started
};

} // namespace near::launch
