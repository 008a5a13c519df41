// Programs that wrap the program of some ranks: `-gtool "strace -c:0;valgrind -q:1-3"`, in Intel MPI's form.
#pragma once

#include "launch/option_table.h"

#include <string>

namespace near::launch {

/// Reads entries "COMMAND:RANKS", separated by ';' or line ends, into the tools of the command.
Result read_tools(Parsing& at, const std::string& text);

/// Splits a line into words as a shell does, with quotes and backslashes but without expansions. Fails if a
/// quote is not closed. A word that begins with `comment` outside quotes ends the line; 0: there are no
/// comments.
Result split_words(const std::string& line, std::vector<std::string>& words, char comment = 0);

} // namespace near::launch
