// One row an option: its spellings, what follows it, what it does, and the line of --help.
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

struct Option {
  std::vector<const char*> spellings; ///< without dashes; one dash or two are the same
  int values;       ///< how many arguments follow; -1: NAME VALUE or NAME=VALUE; -2: none, or one after '='
  const char* help; ///< nullptr: accepted, but not shown
  Result (*act)(Parsing& parsing);
};

std::span<const Option> options();

} // namespace near::launch
