// Shared by the files of `near place`: place.cpp (one job or process), place_whole.cpp (jobs on several machines),
// place_program.cpp (a program that near starts).
#pragma once

#include "place/show.h"
#include "tools/commands.h"
#include "tools/output.h"
#include "tools/parts.h"

#include <vector>

namespace near::tools {

constexpr int assertion_status = 3;

/// Writes text or JSON, and the page if requested.
base::Result show(const PlaceOptions& options, const place::Snapshot& snapshot, Output& output);
/// Returns 0, or 3 after listing the offenders on standard error.
int check(const PlaceOptions& options, const place::Snapshot& snapshot);

/// The answers of a job's machines.
struct Whole {
  Combined all;
  place::Documents documents; ///< empty texts unless a page, JSON or their weight is requested
};
/// `weighed`: the documents are needed whatever is shown.
Whole ask_places(const PlaceOptions& options, const std::vector<segment::JobPart>& parts, bool weighed,
                 const Meanwhile& meanwhile = {});
base::Result show(const PlaceOptions& options, const Whole& whole, Output& output);
int sample_parts(const PlaceOptions& options, const std::vector<segment::JobPart>& parts, Output& output);

int sample_program(const PlaceOptions& options, Output& output);

} // namespace near::tools
