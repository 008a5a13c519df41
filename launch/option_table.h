// One row an option: its spellings, what follows it, what it does, and the line of --help. Each file
// options_*.cpp has the rows of one subject.
#pragma once

#include "launch/command.h"

#include <span>
#include <string>
#include <vector>

namespace near::launch {

/// What a row's action works on.
struct Parsing {
  Command& command;
  Application& application;        ///< the one that the options before a program belong to
  std::vector<std::string> values; ///< what followed the option
  std::string option;              ///< as written, for messages
};

/// What follows an option.
enum Values : int {
  none = 0,
  one = 1,
  two = 2,
  setting = -1,        ///< NAME VALUE or NAME=VALUE
  attached = -2,       ///< nothing, or a value after '='
  file_or_nothing = -3 ///< a file; with one dash nothing, or a file that is no program
};

struct Option {
  std::vector<const char*> spellings; ///< without dashes; one dash or two are the same
  int values;                         ///< how many arguments follow, or one of Values
  const char* help;                   ///< "VALUE|text"; nullptr: accepted, and shown only by --help all
  Result (*act)(Parsing& parsing);
};

/// Options about one subject.
struct OptionGroup {
  const char* name; ///< a word for --help
  const char* title;
  std::span<const Option> options;
};
std::span<const OptionGroup> option_groups();

/// The option of that spelling, nullptr when there is none.
const Option* find_option(std::string_view spelling);

/// A word of another launcher that is not accepted here, and what to do instead.
struct Refusal {
  std::vector<const char*> spellings;
  const char* instead; ///< completes "-gdb: "
};
std::span<const Refusal> refusals();

/// What to do instead of an option that is refused; nullptr when it is unknown.
const char* instead_of(std::string_view spelling);

OptionGroup start_options();
OptionGroup environment_options();
OptionGroup mapping_options();
OptionGroup output_options();
OptionGroup other_options();
OptionGroup foreign_options();

/// "-n zero: expected a number"
Result wrong(const Parsing& at, const char* expected);
/// The first value as a number from 1 to 65536.
Result read_count(const Parsing& at, unsigned& count);
/// The parts of `text` between `separator`s, as getline gives them.
std::vector<std::string> split(const std::string& text, char separator);
/// The whole of the file that the first value names.
Result read_named_file(const Parsing& at, const std::string& name, std::string& text);

/// A parameter of Open MPI's (`--mca name value`): those with a meaning here take effect, those that choose
/// how Open MPI works inside are ignored, others are remarked.
Result use_mca_parameter(Parsing& at, const std::string& name, const std::string& value);
/// A variable of Intel MPI's that says where ranks run, as the options that it stands for.
Result use_intel_variable(Parsing& at, const std::string& name, const std::string& value);
/// Reads the programs of a file: -configfile.
Result parse_command_file(Parsing& at);
/// A decimal number of seconds, which may be below 0; false for anything else.
bool parse_seconds(const std::string& text, double& seconds);
/// Reads "-x" words: NAME, NAME=VALUE, NAME,NAME, PREFIX*.
Result export_variables(Parsing& at, const std::string& text);

// An action that cannot fail.
#define NEAR_ACT(...)                                                                                        \
  [](Parsing& at) -> Result {                                                                                \
    (void)at;                                                                                                \
    __VA_ARGS__;                                                                                             \
    return {};                                                                                               \
  }

} // namespace near::launch
