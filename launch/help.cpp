// The text of --help.
#include "launch/command.h"
#include "launch/option_table.h"

#include <cstring>

namespace near::launch {
namespace {

// "-n, -np, --nprocs N"
std::string spellings_text(const Option& option, std::string_view value, bool all) {
  constexpr std::size_t most = 2; // the others are names from other launchers
  std::string text;
  for (std::size_t i = 0; i < option.spellings.size() && (all || i < most); ++i) {
    const char* spelling = option.spellings[i];
    text += text.empty() ? "" : ", ";
    text += (std::strlen(spelling) <= 2 ? "-" : "--") + std::string(spelling);
  }
  return value.empty() ? text : base::format("{} {}", text, value);
}

std::string help_line(const Option& option, bool all) {
  constexpr std::size_t column = 34;
  std::string_view help = option.help != nullptr ? option.help : "|";
  auto bar = help.find('|');
  auto left = "  " + spellings_text(option, help.substr(0, bar), all);
  auto right = std::string(help.substr(bar + 1));
  if (right.empty()) return left + "\n";
  left += left.size() < column ? std::string(column - left.size(), ' ') : "\n" + std::string(column, ' ');
  return left + right + "\n";
}

std::string help_lines(const OptionGroup& group, bool all) {
  std::string text;
  for (const auto& option : group.options)
    if (all || option.help != nullptr) text += help_line(option, all);
  return text.empty() ? text : base::format("\n{}:\n{}", group.title, text);
}

} // namespace

std::string help_text(const std::string& about) {
  std::string word = about;
  while (word.starts_with('-')) word = word.substr(1);
  for (const auto& group : option_groups())
    if (word == group.name) return help_lines(group, true).substr(1);
  if (const Option* option = find_option(word)) return help_line(*option, true);
  if (const char* instead = instead_of(word)) return base::format("  {}: {}\n", about, instead);
  bool all = word == "all";
  std::string text = "usage: mpiexec [options] program [arguments] [: [options] program [arguments]]...\n"
                     "Starts the processes of an MPI program on this machine.\n",
              groups;
  for (const auto& group : option_groups()) {
    text += help_lines(group, all);
    groups += base::format("{}{}", groups.empty() ? "" : ", ", group.name);
  }
  if (all) {
    text += "\nOptions of other launchers that are refused with advice:\n ";
    for (const auto& refusal : refusals())
      for (const char* spelling : refusal.spellings)
        text += base::format(" {}{}", std::strlen(spelling) <= 2 ? "-" : "--", spelling);
    text += "\n";
  }
  return text +
         base::format("\nOne and two dashes are equivalent. `mpiexec --help WHAT` describes an option or a "
                      "group ({}), "
                      "`--help all` everything.\nKnobs are environment variables: `near info --knobs`. "
                      "The manual: man mpiexec.\n",
                      groups);
}

} // namespace near::launch
