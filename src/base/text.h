// Words for people.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace near::base {

/// "1 rank", "2 ranks".
std::string counted(std::uint64_t number, std::string_view noun);

} // namespace near::base
