// Shared by the tables of `near info --coll`.
#pragma once

#include "choice/choice.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace near::tools {

using choice::Collective;
using choice::Facts;

/// 0 and the powers of two up to 16 MiB; only 0 for a collective whose choice does not depend on the size.
std::vector<MPI_Count> sizes_of(Collective collective);
Facts with_bytes(Facts facts, MPI_Count bytes);
Facts nonblocking(Facts facts);

/// Neighbouring sizes with the same answer.
struct Range {
  MPI_Count from = 0, to = 0;
  std::vector<std::string> answer;
};

/// `answer` is a function of Facts.
template <class Answer>
std::vector<Range> ranges(const Facts& facts, Answer&& answer) {
  std::vector<Range> found;
  for (MPI_Count bytes : sizes_of(facts.collective)) {
    auto present = answer(with_bytes(facts, bytes));
    if (found.empty() || found.back().answer != present) found.push_back({bytes, bytes, present});
    found.back().to = bytes;
  }
  return found;
}

/// "64 KiB".
std::string size_text(MPI_Count bytes);
/// "up to 64 KiB", "2 KiB to 64 KiB", "any".
std::string range_text(const Range& range, Collective collective);
/// The algorithm's name, and whether it was named by the user.
std::string chosen_text(const Facts& facts);
/// The chosen algorithm, and why others were not chosen: the one named by NEAR_COLL, and those above it.
std::vector<std::string> chosen_and_reasons(const Facts& facts);
/// A kind of call whose algorithm may differ from that of an ordinary blocking call.
struct Kind {
  const char* name;
  Facts facts;
};
/// Prints why calls of a collective use their algorithms; the first line of `answer` is the algorithm. Other kinds are shown if
/// they use a different one for some size.
void print_reasons(const Facts& blocking, const std::vector<Kind>& others,
                   const std::function<std::vector<std::string>(const Facts&)>& answer);
/// Prints a line without trailing blanks.
void print_line(const std::string& line);

/// Reads "allreduce,broadcast", or "" for all. Prints any unknown name and returns false.
bool read_collectives(std::string_view text, std::vector<Collective>& into);

} // namespace near::tools
