// Words for people.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace near::base {

/// "1 rank", "2 ranks".
std::string counted(std::uint64_t number, std::string_view noun);

/// The value of a variable among NAME=VALUE rows that end with nullptr (`environment` may be it); nothing
/// when it is not there.
std::optional<std::string_view> find_variable(char** environment, std::string_view name);

} // namespace near::base
