#include "launch/option_table.h"

#include <charconv>
#include <fstream>
#include <sstream>

namespace near::launch {

using base::Code;
using base::fail;

Result wrong(const Parsing& at, const char* expected) {
  return fail(Code::invalid, "{} {}: expected {}", at.option, at.values[0], expected);
}

Result read_count(const Parsing& at, unsigned& count) {
  const auto& text = at.values[0];
  unsigned number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number == 0 || number > 65536)
    return wrong(at, "a number from 1 to 65536");
  count = number;
  return {};
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream rest(text);
  for (std::string part; std::getline(rest, part, separator);) parts.push_back(part);
  return parts;
}

Result read_named_file(const Parsing& at, const std::string& name, std::string& text) {
  std::ifstream file(name);
  std::getline(file, text, '\0'); // all of it; bad() for a folder
  if (!file.is_open() || file.bad())
    return fail(Code::invalid, "{}: cannot read the file '{}'", at.option, name);
  return {};
}

std::span<const OptionGroup> option_groups() {
  static const OptionGroup groups[] = {start_options(),  environment_options(), mapping_options(),
                                       output_options(), other_options(),       foreign_options()};
  return groups;
}

const Option* find_option(std::string_view spelling) {
  for (const auto& group : option_groups())
    for (const auto& option : group.options)
      for (const char* each : option.spellings)
        if (spelling == each) return &option;
  return nullptr;
}

const char* instead_of(std::string_view spelling) {
  for (const auto& refusal : refusals())
    for (const char* each : refusal.spellings)
      if (spelling == each) return refusal.instead;
  return nullptr;
}

} // namespace near::launch
