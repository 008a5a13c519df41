// Words for people.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace near::base {

/// "1 rank", "2 ranks".
std::string counted(std::uint64_t number, std::string_view noun);

/// The value of a variable among NAME=VALUE rows that end with nullptr (`environment` may be it); nothing
/// when it is not there.
std::optional<std::string_view> find_variable(char** environment, std::string_view name);

/// Text that others have chosen (a file's name, what stands in a job's segment) as a terminal may show it:
/// control characters, and bytes that are no UTF-8, become \\ooo. With `lines` a line end stays one.
std::string printable(std::string_view text, bool lines = false);

/// The candidate with the least edit distance to `word` (insert, delete, replace, exchange two neighbours),
/// or "" when none is within a third of the word's length (at least 1).
std::string_view nearest_word(std::string_view word, std::span<const std::string_view> candidates);

/// "; did you mean core?" with the candidate that is nearest to `word`, and `before` it; "" when none is
/// near.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates,
                         std::string_view before = "");

} // namespace near::base
