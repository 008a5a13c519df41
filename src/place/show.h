// A snapshot for people and for programs.
#pragma once

#include "place/snapshot.h"

namespace near::place {

/// Tables: the ranks with their bindings and bytes by node, the segment by role, the warnings; with `all`,
/// each part and each mapping with its ranges.
std::string text_of(const Snapshot& snapshot, bool all);
/// What --assert-local found, one line; and a line for each offender.
std::string assertion_text(const Snapshot& snapshot, double percent);

/// One JSON document (doc/place.md has its fields); without line breaks unless `indented`.
std::string json_of(const Snapshot& snapshot, bool indented);

} // namespace near::place
