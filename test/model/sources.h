// Reads the orderings, and their labels, from the sources of the structures under test.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace near::model {

/// An operation of a header whose order can be weakened.
struct Ordering {
  std::string name; ///< header, operation, and number among its like: "slot_queue.store_release.2"
  std::string file; ///< "queue/slot_queue.h"
  unsigned line = 0;
  std::string operation; ///< "store_release", "fence_store_load", "barrier_all", ...
};

/// Every ordering in the headers of src/queue and in src/base/seqlock.h, found in their text.
const std::vector<Ordering>& orderings();

/// The name of the SYNC label of the operation at this line; empty if it has none.
std::string label_at(std::string_view file, unsigned line);

/// The repository's root.
std::string source_root();

} // namespace near::model
