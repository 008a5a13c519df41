// Writes single lines to standard error, with the name of the speaker. An event is logged once, where it is
// decided.
#pragma once

#include "base/result.h"

namespace near::base {

enum class Level : int { error = 0, warning = 1, note = 2, debug = 3 };

/// Sets the name at the beginning of each line, such as "rank 3" or "mpiexec".
void set_speaker(std::string speaker);

/// Drops messages above this level from now on (knob NEAR_LOG).
void set_level(Level level);
Level level();

/// Writes the line "near: <speaker>: <text>" at once, with "warning: " or "error: " before the text at these
/// levels. Does not check whether the level is enabled.
void write_line(Level level, std::string_view text);

template <class... A>
[[gnu::cold]] void log(Level at, fmt::format_string<A...> form, A&&... arguments) {
  if (at <= level()) write_line(at, format_text(form, fmt::make_format_args(arguments...)));
}

} // namespace near::base
