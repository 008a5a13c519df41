// Jobs on several machines: `near` runs itself on each of them, for the part of the job that runs there, by the way in which mpiexec has
// reached it.
#pragma once

#include "os/poller.h"
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

/// What they have printed, each after the name of its machine.
struct Combined {
  std::string text, complaints;
  int status = 0;   ///< the highest one
  bool any = false; ///< some part has answered without a complaint
};
Combined combine(const std::vector<segment::JobPart>& parts, const std::vector<Answer>& answers);

/// Whether the job has ended whose mpiexec `job` watches. Waits a moment for that if no part has answered.
bool has_ended(os::Poller& job, const Combined& answers);

/// Prints that once, or every `interval_s` seconds until mpiexec, the process `launcher`, ends.
int show_parts(std::int32_t launcher, const std::vector<segment::JobPart>& parts,
               const std::vector<std::string>& arguments, bool once, double interval_s);

} // namespace near::tools
