// Jobs on several machines: `near` runs itself on each of them, for the part of the job that runs there, by the way in which mpiexec has
// reached it.
#pragma once

#include "base/result.h"
#include "segment/parts.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace near::tools {

/// What `near` has printed on one machine.
struct Answer {
  std::string output, errors;
  int status = 1;
};

/// Something to look after while machines are asked.
struct Meanwhile {
  int descriptor = -1; ///< `look` is called when this is readable
  std::function<bool()> look = [] {
    return true;
  }; ///< if it returns false, nobody waits for the answers that are missing
};
/// Runs `near` with these arguments, and the part's --job, on all machines at once. Waits until all have answered, or until one has been
/// silent for half a minute: then its answer is an error.
std::vector<Answer> ask(const std::vector<segment::JobPart>& parts, const std::vector<std::string>& arguments,
                        const Meanwhile& meanwhile = {});

/// What they have printed, each after the name of its machine.
struct Combined {
  std::string text, complaints;
  int status = 0;       ///< the highest one
  bool complete = true; ///< all parts have answered
};
Combined combine(const std::vector<segment::JobPart>& parts, const std::vector<Answer>& answers);

/// How long to wait for the end of mpiexec when a part does not answer any more: parts end before mpiexec, which writes the rest of their
/// output.
constexpr double grace_s = 1;

/// Questions to all parts until the job ends.
struct Repetition {
  std::int32_t launcher = 0; ///< the job's mpiexec
  bool once = false;
  double interval_s = 1;
  int last_status = -1; ///< if they answer with this status, it is the result
  std::function<Combined()> ask;
  std::function<base::Result(const Combined&)> show;
};
/// Asks, shows the answers and repeats that. Answers are not shown if the job has ended meanwhile: some may be missing. Returns the exit
/// status, or nothing when the job has ended.
std::optional<int> repeat(const Repetition& how);

/// Prints the answers once, or every `interval_s` seconds until mpiexec, the process `launcher`, ends.
int show_parts(std::int32_t launcher, const std::vector<segment::JobPart>& parts,
               const std::vector<std::string>& arguments, bool once, double interval_s);

} // namespace near::tools
