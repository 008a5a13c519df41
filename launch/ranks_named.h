// Some of a job's ranks, as the user names them: "all", "0,2-3".
#pragma once

#include "base/result.h"

#include <string>
#include <utility>
#include <vector>

namespace near::launch {

/// A set of ranks, independent of how many the job has.
class NamedRanks {
public:
  static NamedRanks every();
  static NamedRanks only(unsigned rank);
  bool has(unsigned rank) const;
  bool empty() const { return !all_ && ranges_.empty(); }
  /// More than one rank may be meant.
  bool several() const;
  /// The greatest rank that is named; 0 for all.
  unsigned greatest() const;

  /// "all ranks", "rank 0", "ranks 0,2-3", "nobody"
  std::string text() const;

  /// Reads "all", "3" or "0,2-3,5". False for anything else.
  static bool parse(const std::string& text, NamedRanks& ranks);

private:
  bool all_ = false;
  std::vector<std::pair<unsigned, unsigned>> ranges_; ///< first and last
};

} // namespace near::launch
