// Whole files as text, mostly from /proc and /sys. Streams are avoided because they would construct the C++ library's
// locales in every process.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace near::os {

/// Reads a whole file, or its first `most` bytes. Returns errno, or 0. After an error `text` contains what was read
/// before it.
int read_file(const std::string& path, std::string& text, std::size_t most = SIZE_MAX);
/// The contents of a file, as far as they could be read; "" if nothing could.
std::string read_file(const std::string& path);
/// Whether a folder exists at `path` and is not empty.
bool has_entries(const std::string& path);

/// Splits `text` at each `separator`. If it ends with one, no empty part follows.
std::vector<std::string_view> split(std::string_view text, char separator);
/// Returns the words of `text`, separated by white space.
std::vector<std::string_view> words_of(std::string_view text);

/// Reads the number at the beginning of `text`, after white space. Returns false, and leaves `number` unchanged, if
/// there is none or if it is too large.
template <class Number>
bool read_number(std::string_view text, Number& number) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\n"), text.size()));
  return std::from_chars(text.data(), text.data() + text.size(), number).ec == std::errc{};
}

} // namespace near::os
