// Files that receive the output of ranks instead of the standard streams of mpiexec. A rank writes into its
// file itself, so nothing is delayed or copied, unless the output is wanted in both.
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
  /// Opens the file that `pattern` names for this rank; this object owns the descriptor. The first rank that
  /// uses a file creates it anew, including the folders of its path. Several ranks share a file if the
  /// pattern gives them the same name, or another name of the same file.
  base::Result open(const std::string& pattern, unsigned rank, int& descriptor);

private:
  std::map<std::string, int> names_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, int> files_; ///< by device and inode
};

} // namespace near::launch
