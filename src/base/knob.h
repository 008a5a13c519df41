// Knobs: environment variables named NEAR_*, one row each in knob_table.def.
//
// A default that has to be tuned is a defect; knobs are for experiments, tests and unusual machines.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <span>
#include <string>

namespace near::base {

enum class KnobKind { Flag, Count, Bytes, Microseconds, Choice, Text };

/// What a knob's value looks like: the second column of the table.
struct KnobForm {
  KnobKind kind;
  std::uint64_t least = 0, greatest = 0; ///< of the kinds that are numbers
  const char* choices = "";              ///< of a Choice: words with "|" between them
};

/// A row of the table, with where its present value came from.
struct Knob {
  std::string name; ///< "NEAR_SPIN"
  KnobForm form;
  const char* default_text;
  const char* help;
  std::string text;         ///< the present value as written
  bool automatic = false;   ///< the text is "auto"
  std::uint64_t number = 0; ///< the present value; of a Choice its place among the choices, from 0
  bool set = false;         ///< the environment gave the value
};

/// Every knob, as members with the row's name: `knobs().spin.number`.
struct Knobs {
#define NEAR_KNOB(member, form, fallback, help) Knob member;
#include "base/knob_table.def"
#undef NEAR_KNOB
};

/// The present values. Defaults until read_knobs() has run.
const Knobs& knobs();

/// Reads the environment; knobs that it does not name have their defaults. A value that does not parse is an
/// error that names variable, value and expected form. An unknown NEAR_ name logs a warning with the nearest
/// known one.
Result read_knobs(char** environment);

/// Whether a variable NEAR_... is a knob that may have this value; changes nothing. The sentence of a failure
/// names the nearest knob or the values that are allowed. What a Text may say only its layer knows.
Result check_knob(std::string_view name, std::string_view value);

/// "a number from 4 to 1048576", "error, warning, note or debug": the values that a knob may have.
std::string expected_of(const Knob& knob);

/// All rows in table order.
std::span<const Knob* const> all_knobs();

/// Parses "4k", "1m", "2g" or a plain number of bytes.
Result parse_bytes(std::string_view text, std::uint64_t& bytes);

} // namespace near::base
