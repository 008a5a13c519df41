// A snapshot as text for people, as JSON for programs, and as a page for a browser.
#pragma once

#include "place/snapshot.h"

#include <utility>

namespace near::place {

/// Tables: the ranks with their bindings and bytes by node, the segment by role, the warnings; with `all`,
/// also each part and each mapping with its ranges.
std::string text_of(const Snapshot& snapshot, bool all);
/// The result of --assert-local: one line for each row below the percentage; "" if there is none.
std::string assertion_text(const Snapshot& snapshot, double percent);

/// One JSON document (doc/place.md describes its fields); without line breaks unless `indented`.
std::string json_of(const Snapshot& snapshot, bool indented);
/// The names of machines, and the document for each.
using Documents = std::vector<std::pair<std::string, std::string>>;
/// One document for several machines: {"machines": [{"machine": NAME,
/// "snapshot": DOCUMENT}, ...]}. Anything that is not a document becomes null.
std::string json_of(const Documents& machines, bool indented);
/// Their combined weight; nothing if no machine has answered.
Weight weight_of(const Documents& machines);
/// One self-contained HTML page: the document, and a script that draws it.
std::string page_of(const Snapshot& snapshot);
std::string page_of(const Documents& machines);

} // namespace near::place
