// On which machine each rank of a job runs, as mpiexec keeps it in its table (by_table.h): "0-3;4-7" are two machines with four
// ranks each, in the notation of rank_list.h. Long lists are cut into several rows.
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
/// Writes the rows; `ranks`: of each machine. Tests cut them earlier.
std::vector<std::string> machine_list_rows(const std::vector<std::vector<std::uint32_t>>& ranks,
                                           std::size_t longest = 32 << 10);

/// Reads the rows, one after the other.
class MachineListReader {
public:
  /// Adds the next row. Returns whether another one follows.
  bool add(std::string_view row);
  /// Gets the machine of each rank. Fails with Code::invalid if the text is something else, or says nothing of one of the
  /// `size` ranks.
  base::Result finish(std::uint32_t size, std::vector<std::uint32_t>& machine_of) const;

private:
  std::string text_;
};

} // namespace near::boot
