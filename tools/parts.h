// Jobs on several machines: `near` runs itself on each of them, for the part of the job that runs there, by the way in which mpiexec has
// reached it.
#pragma once

#include "segment/parts.h"

#include <cstdint>
#include <string>
#include <vector>

namespace near::tools {

/// What `near` has printed on one machine.
struct Answer {
  std::string output, errors;
  int status = 1;
};

/// Runs `near` with these arguments, and the part's --job, on all machines at once. Waits until all have answered, or until one has been
/// silent for half a minute: then its answer is an error.
std::vector<Answer> ask(const std::vector<segment::JobPart>& parts,
                        const std::vector<std::string>& arguments);

/// What they have printed, each after the name of its machine; complaints go to standard error. Returns the highest status.
int combine(const std::vector<segment::JobPart>& parts, const std::vector<Answer>& answers,
            std::string& text);

/// Prints that once, or every `interval_s` seconds until mpiexec, the process `launcher`, ends.
int show_parts(std::int32_t launcher, const std::vector<segment::JobPart>& parts,
               const std::vector<std::string>& arguments, bool once, double interval_s);

} // namespace near::tools
