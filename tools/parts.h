// Jobs on several machines: `near` runs itself on each machine, for the part of the job there, by the route that mpiexec used to
// reach it.
#pragma once

#include "base/result.h"
#include "segment/parts.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace near::tools {

/// The output of `near` on one machine.
struct Answer {
  std::string output, errors;
  int status = 1;
};

/// An event to handle while machines are queried.
struct Meanwhile {
  int descriptor = -1; ///< `look` is called when this is readable
  std::function<bool()> look = [] {
    return true;
  }; ///< if it returns false, missing answers are no longer awaited
};
/// Runs `near` with these arguments and the part's --job on all machines at once. Waits until all have answered. A machine that is
/// silent for half a minute counts as having answered with an error.
std::vector<Answer> ask(const std::vector<segment::JobPart>& parts, const std::vector<std::string>& arguments,
                        const Meanwhile& meanwhile = {});

/// The output of all, each after the name of its machine.
struct Combined {
  std::string text, complaints;
  int status = 0;       ///< the highest one
  bool complete = true; ///< all parts have answered
};
Combined combine(const std::vector<segment::JobPart>& parts, const std::vector<Answer>& answers);

/// How long to wait for the end of mpiexec when a part no longer answers: parts end before mpiexec, which still writes the rest of
/// their output.
constexpr double grace_s = 1;

/// Repeated queries to all parts until the job ends.
struct Repetition {
  std::int32_t launcher = 0; ///< the job's mpiexec
  bool once = false;
  double interval_s = 1;
  int last_status = -1; ///< if they answer with this status, it is the result
  std::function<Combined()> ask;
  std::function<base::Result(const Combined&)> show;
};
/// Queries, shows the answers, and repeats. Answers are not shown if the job has ended meanwhile, since some may be missing.
/// Returns the exit status, or nothing if the job has ended.
std::optional<int> repeat(const Repetition& how);

/// Prints the answers once, or every `interval_s` seconds until mpiexec, the process `launcher`, ends.
int show_parts(std::int32_t launcher, const std::vector<segment::JobPart>& parts,
               const std::vector<std::string>& arguments, bool once, double interval_s);

} // namespace near::tools
