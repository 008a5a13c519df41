// One line at a time to standard error, with the speaker's name. An event is logged once, where it is
// decided.
#pragma once

#include "base/result.h"

namespace near::base {

enum class Level : int { error = 0, warning = 1, note = 2, debug = 3 };

/// Who speaks, e.g. "rank 3" or "mpiexec"; stands in each line.
void set_speaker(std::string speaker);

/// Messages above this level are dropped (knob NEAR_LOG).
void set_level(Level level);
Level level();

/// Writes "near: <speaker>: <text>\n" in one write(2).
void write_line(Level level, std::string_view text);

template <class... A>
[[gnu::cold]] void log(Level at, fmt::format_string<A...> form, A&&... arguments) {
  if (at <= level()) write_line(at, format_text(form, fmt::make_format_args(arguments...)));
}

} // namespace near::base
