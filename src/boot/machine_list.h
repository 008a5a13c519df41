// The machine of each rank of a job, as mpiexec stores it in its table (by_table.h): "0-3;4-7" are two machines with four ranks
// each, in the notation of rank_list.h. Long lists are cut into several rows.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace near::boot {

/// The key of a row.
std::string machine_list_key(std::size_t row);
/// Writes the rows; `ranks` has the ranks of each machine. Tests cut the rows earlier.
std::vector<std::string> machine_list_rows(const std::vector<std::vector<std::uint32_t>>& ranks,
                                           std::size_t longest = 32 << 10);

/// Reads the rows, one after another.
class MachineListReader {
public:
  /// Adds the next row. Returns whether another one follows.
  bool add(std::string_view row);
  /// Gets the machine of each rank. Fails with Code::invalid if the text is malformed, or omits one of the `size` ranks.
  base::Result finish(std::uint32_t size, std::vector<std::uint32_t>& machine_of) const;

private:
  std::string text_;
};

} // namespace near::boot
