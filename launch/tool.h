// Programs that ranks are started under: `-gtool "strace -c:0;valgrind -q:1-3"`, as Intel MPI writes it.
#pragma once

#include "launch/option_table.h"

#include <string>

namespace near::launch {

/// Reads "COMMAND:RANKS" entries with ';' or line ends between them into the command's tools.
Result read_tools(Parsing& at, const std::string& text);

/// Splits a line into words as a shell does, with quotes and backslashes, and nothing else of a shell. Fails
/// when a quote is not closed. A word that begins with `comment` outside of quotes ends the line; 0: none
/// does.
Result split_words(const std::string& line, std::vector<std::string>& words, char comment = 0);

} // namespace near::launch
