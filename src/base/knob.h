// Knobs: environment variables named NEAR_*, one row each in knob_table.def.
//
// A default that has to be tuned is a defect. Knobs are for experiments, tests and unusual machines.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <span>
#include <string>

namespace near::base {

enum class KnobKind { Flag, Count, Bytes, Microseconds, Choice, Text };

/// The form of a knob's value: the second column of the table.
struct KnobForm {
  KnobKind kind;
  std::uint64_t least = 0, greatest = 0; ///< for kinds that are numbers
  const char* choices = "";              ///< for a Choice: words separated by "|"
};

/// A row of the table, with the present value and its source.
struct Knob {
  std::string name; ///< "NEAR_SPIN"
  KnobForm form;
  const char* default_text;
  const char* help;
  std::string text;         ///< the present value as written
  bool automatic = false;   ///< the text is "auto"
  std::uint64_t number = 0; ///< the present value; for a Choice, its index among the choices
  bool set = false;         ///< the value comes from the environment
};

/// All knobs, as members named like the rows: `knobs().spin.number`.
struct Knobs {
#define NEAR_KNOB(member, form, fallback, help) Knob member;
#include "base/knob_table.def"
#undef NEAR_KNOB
};

/// The present values; the defaults until read_knobs() has run.
const Knobs& knobs();

/// Reads the environment. Knobs that are not set there get their defaults. Fails if a value is invalid; the
/// message names variable, value and expected form. Logs a warning for an unknown NEAR_ name, with the
/// nearest known one.
Result read_knobs(char** environment);

/// Checks that the variable NEAR_... is a knob that may have this value; changes nothing. The message of a
/// failure names the nearest knob or the allowed values. The value of a Text is not checked; only the layer
/// that uses it can do so.
Result check_knob(std::string_view name, std::string_view value);

/// The values that a knob may have, such as "a number from 4 to 1048576" or "error, warning, note or debug".
std::string expected_of(const Knob& knob);

/// All rows, in the order of the table.
std::span<const Knob* const> all_knobs();

/// Parses "4k", "1m", "2g" or a plain number of bytes; fails with Code::invalid otherwise.
Result parse_bytes(std::string_view text, std::uint64_t& bytes);

} // namespace near::base
