// Files that take the output of ranks in place of mpiexec's own standard streams. A rank writes into its file
// itself, so nothing is held up and nothing is copied, unless the output is wanted in both places.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace near::launch {

class OutputFiles {
public:
  OutputFiles() = default;
  OutputFiles(const OutputFiles&) = delete;
  OutputFiles& operator=(const OutputFiles&) = delete;
  ~OutputFiles();
  /// The descriptor of the file that `pattern` names for this rank; it stays this object's. A file is made
  /// anew by the first rank that is given it, with the folders on its way; several ranks share one if the
  /// pattern gives them the same name, or another name of the same file.
  base::Result open(const std::string& pattern, unsigned rank, int& descriptor);

private:
  std::map<std::string, int> names_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, int> files_; ///< by device and inode
};

} // namespace near::launch
