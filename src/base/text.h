// Text for people.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace near::base {

/// A number with its noun: "1 rank", "2 ranks".
std::string counted(std::uint64_t number, std::string_view noun);

/// The value of a variable among NAME=VALUE entries that end with nullptr; nullopt if it is not set.
/// `environment` may be nullptr.
std::optional<std::string_view> find_variable(char** environment, std::string_view name);

/// Makes text from elsewhere (a file's name, the contents of a job's segment) safe for a terminal: control
/// characters, and bytes that are not UTF-8, become \\ooo. With `lines`, line ends are kept.
std::string printable(std::string_view text, bool lines = false);

/// The candidate with the smallest edit distance to `word` (insert, delete, replace, swap neighbours).
/// Returns "" if none is within a third of the word's length (at least 1).
std::string_view nearest_word(std::string_view word, std::span<const std::string_view> candidates);

/// "; did you mean core?" with the candidate nearest to `word`, after `before`; "" if none is near.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates,
                         std::string_view before = "");

} // namespace near::base
