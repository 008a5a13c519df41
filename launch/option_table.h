// One row for each option: its spellings, its values, its action, and its line in --help. Each file
// options_*.cpp has the rows of one subject.
#pragma once

#include "launch/command.h"

#include <span>
#include <string>
#include <vector>

namespace near::launch {

/// The state that a row's action works on.
struct Parsing {
  Command& command;
  Application& application;        ///< the program to which the present options belong
  std::vector<std::string> values; ///< the values of the option
  std::string option;              ///< as written, for messages
};

/// The values that follow an option.
enum Values : int {
  none = 0,
  one = 1,
  two = 2,
  setting = -1,        ///< NAME VALUE or NAME=VALUE
  attached = -2,       ///< nothing, or a value after '='
  file_or_nothing = -3 ///< a file; with one dash optional, and not a program
};

struct Option {
  std::vector<const char*> spellings; ///< without dashes; one and two dashes are equivalent
  int values;                         ///< number of arguments that follow, or one of Values
  const char* help;                   ///< "VALUE|text"; nullptr: shown only by --help all
  Result (*act)(Parsing& parsing);
};

/// Options about one subject.
struct OptionGroup {
  const char* name; ///< a word for --help
  const char* title;
  std::span<const Option> options;
};
std::span<const OptionGroup> option_groups();

/// The option with this spelling; nullptr if there is none.
const Option* find_option(std::string_view spelling);

/// Another launcher's option that is rejected, and what to do instead.
struct Refusal {
  std::vector<const char*> spellings;
  const char* instead; ///< completes "-gdb: "
};
std::span<const Refusal> refusals();

/// What to do instead of a rejected option; nullptr if the option is not one of them.
const char* instead_of(std::string_view spelling);

OptionGroup start_options();
OptionGroup environment_options();
OptionGroup mapping_options();
OptionGroup output_options();
OptionGroup other_options();
OptionGroup foreign_options();

/// Fails with a message such as "-n zero: expected a number".
Result wrong(const Parsing& at, const char* expected);
/// Reads the first value as a number from 1 to 65536.
Result read_count(const Parsing& at, unsigned& count);
/// Splits `text` at each `separator`, as getline does.
std::vector<std::string> split(const std::string& text, char separator);
/// Reads the whole file `name`. `at` names the option in messages.
Result read_named_file(const Parsing& at, const std::string& name, std::string& text);

/// Applies a parameter of Open MPI (`--mca name value`). Parameters with a meaning here take effect, those
/// that select internals of Open MPI are ignored, and others produce a remark.
Result use_mca_parameter(Parsing& at, const std::string& name, const std::string& value);
/// Applies a variable of Intel MPI that says where ranks run, as if the equivalent option had been given.
Result use_intel_variable(Parsing& at, const std::string& name, const std::string& value);
/// Reads the programs of a file: -configfile.
Result parse_command_file(Parsing& at);
/// Reads a decimal number of seconds, which may be negative. Returns false for anything else.
bool parse_seconds(const std::string& text, double& seconds);
/// Reads "-x" words: NAME, NAME=VALUE, NAME,NAME, PREFIX*.
Result export_variables(Parsing& at, const std::string& text);

// Defines an action that cannot fail.
#define NEAR_ACT(...)                                                                                        \
  [](Parsing& at) -> Result {                                                                                \
    (void)at;                                                                                                \
    __VA_ARGS__;                                                                                             \
    return {};                                                                                               \
  }

} // namespace near::launch
