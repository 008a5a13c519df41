// A snapshot for people, for programs and for a browser.
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
/// One HTML page that needs nothing else: the document above, and a script that draws it.
std::string page_of(const Snapshot& snapshot);

} // namespace near::place
