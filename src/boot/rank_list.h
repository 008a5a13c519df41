// The ranks of one machine, as text: "0-3,8-20:4" is 0, 1, 2, 3, 8, 12, 16 and 20.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace near::boot {

/// Writes ranks in ascending order.
std::string rank_list_text(const std::vector<std::uint32_t>& ranks);
/// Reads ranks. Fails with Code::invalid if the text is malformed, if the ranks do not ascend, or if one is not below `size`.
base::Result read_rank_list(std::string_view text, std::uint32_t size, std::vector<std::uint32_t>& ranks);

} // namespace near::boot
