// A set of ranks, as the user names it: "all", "0,2-3".
#pragma once

#include "base/result.h"

#include <string>
#include <utility>
#include <vector>

namespace near::launch {

/// A set of ranks, independent of the size of the job.
class NamedRanks {
public:
  static NamedRanks every();
  static NamedRanks only(unsigned rank);
  bool has(unsigned rank) const;
  bool empty() const { return !all_ && ranges_.empty(); }
  /// Whether the set may contain more than one rank.
  bool several() const;
  /// The greatest rank in the set; 0 for all.
  unsigned greatest() const;

  /// Describes the set in messages: "all ranks", "rank 0", "ranks 0,2-3" or "nobody".
  std::string text() const;

  /// Reads "all", "3" or "0,2-3,5". Returns false for anything else.
  static bool parse(const std::string& text, NamedRanks& ranks);

private:
  bool all_ = false;
  std::vector<std::pair<unsigned, unsigned>> ranges_; ///< first and last
};

} // namespace near::launch
