#include "base/knob.h"

#include "base/checked.h"
#include "base/log.h"
#include "base/text.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <iterator>
#include <vector>

namespace near::base {
namespace {

// Names that belong to the start-up contract (boot/) and not to users.
constexpr std::string_view private_prefix = "NEAR_BOOT_";

// Variables that mpiexec sets for scripts and libraries in each rank (boot/). They are not knobs, although
// some have similar names.
constexpr std::string_view told_to_ranks[] = {"NEAR_RANK", "NEAR_SIZE", "NEAR_LOCAL_RANK", "NEAR_LOCAL_SIZE"};

bool is_told_to_ranks(std::string_view name) {
  return std::find(std::begin(told_to_ranks), std::end(told_to_ranks), name) != std::end(told_to_ranks);
}

// The words by which a row of the table specifies its form.
namespace forms {
constexpr KnobForm Flag{KnobKind::Flag, 0, 1};
constexpr KnobForm Text{KnobKind::Text};
constexpr KnobForm Count(std::uint64_t least, std::uint64_t greatest) {
  return {KnobKind::Count, least, greatest};
}
constexpr KnobForm Bytes(std::uint64_t least, std::uint64_t greatest) {
  return {KnobKind::Bytes, least, greatest};
}
constexpr KnobForm Microseconds(std::uint64_t least, std::uint64_t greatest) {
  return {KnobKind::Microseconds, least, greatest};
}
constexpr KnobForm Choice(const char* choices) { return {KnobKind::Choice, 0, 0, choices}; }
} // namespace forms

Knob make_row(const char* member, const KnobForm& form, const char* fallback, const char* help) {
  std::string name = "NEAR_";
  for (const char* at = member; *at != 0; ++at)
    name.push_back(*at == '_' ? '_' : static_cast<char>(*at - 'a' + 'A'));
  return Knob{std::move(name), form, fallback, help, fallback, false, 0, false};
}

bool parse_number(std::string_view text, std::uint64_t& number) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

std::vector<std::string_view> choices_of(const KnobForm& form) {
  std::vector<std::string_view> choices;
  for (std::string_view rest(form.choices); !rest.empty();) {
    auto bar = std::min(rest.find('|'), rest.size());
    choices.push_back(rest.substr(0, bar));
    rest.remove_prefix(std::min(bar + 1, rest.size()));
  }
  return choices;
}

std::string bytes_text(std::uint64_t bytes) {
  for (auto [shift, unit] : {std::pair{30, "g"}, {20, "m"}, {10, "k"}})
    if (bytes != 0 && bytes % (std::uint64_t{1} << shift) == 0) return std::to_string(bytes >> shift) + unit;
  return std::to_string(bytes);
}

bool read_value(const KnobForm& form, std::string_view text, std::uint64_t& number) {
  switch (form.kind) {
  case KnobKind::Text: return true;
  case KnobKind::Choice: {
    auto choices = choices_of(form);
    auto found = std::find(choices.begin(), choices.end(), text);
    number = static_cast<std::uint64_t>(found - choices.begin());
    return found != choices.end();
  }
  case KnobKind::Flag:
  case KnobKind::Count:
  case KnobKind::Microseconds:
    return parse_number(text, number) && number >= form.least && number <= form.greatest;
  case KnobKind::Bytes:
    return parse_bytes(text, number).ok() && number >= form.least && number <= form.greatest;
  }
  return false;
}

Result parse(Knob& knob, std::string_view text) {
  knob.text = text;
  knob.automatic = text == "auto" && std::string_view(knob.default_text) == "auto";
  if (knob.automatic || read_value(knob.form, text, knob.number)) return {};
  return fail(Code::invalid, "{}={}: expected {}", knob.name, text, expected_of(knob));
}

Knobs& mutable_knobs() {
  static Knobs& all = *[] {
    auto* made = new Knobs{
#define NEAR_KNOB(member, form, fallback, help) make_row(#member, forms::form, fallback, help),
#include "base/knob_table.def"
#undef NEAR_KNOB
    };
#define NEAR_KNOB(member, form, fallback, help) (void)parse(made->member, fallback);
#include "base/knob_table.def"
#undef NEAR_KNOB
    return made;
  }();
  return all;
}

std::span<Knob* const> rows() {
  static std::vector<Knob*>& list = *new std::vector<Knob*>{
#define NEAR_KNOB(member, form, fallback, help) &mutable_knobs().member,
#include "base/knob_table.def"
#undef NEAR_KNOB
  };
  return list;
}

/// Finds the knob of this name. Otherwise returns nullptr, and `hint` completes a message about that.
Knob* find_knob(std::string_view name, std::string& hint) {
  // Compares without the common prefix, which would make all names alike.
  constexpr std::string_view prefix = "NEAR_";
  std::vector<std::string_view> words;
  for (Knob* knob : rows()) {
    if (knob->name == name) return knob;
    words.push_back(std::string_view(knob->name).substr(prefix.size()));
  }
  hint = did_you_mean(name.substr(std::min(prefix.size(), name.size())), words, prefix);
  if (hint.empty()) hint = "; `near info --knobs` lists the known ones";
  return nullptr;
}

} // namespace

const Knobs& knobs() { return mutable_knobs(); }

std::span<const Knob* const> all_knobs() {
  auto list = rows();
  return {const_cast<const Knob* const*>(list.data()), list.size()};
}

Result parse_bytes(std::string_view text, std::uint64_t& bytes) {
  std::uint64_t unit = 1;
  if (!text.empty()) {
    switch (text.back()) {
    case 'k':
    case 'K': unit = 1ull << 10; break;
    case 'm':
    case 'M': unit = 1ull << 20; break;
    case 'g':
    case 'G': unit = 1ull << 30; break;
    default: break;
    }
  }
  if (unit != 1) text.remove_suffix(1);
  if (!parse_number(text, bytes) || !checked_multiply(bytes, unit, bytes))
    return fail(Code::invalid, "'{}' is not a number of bytes", text);
  return {};
}

std::string expected_of(const Knob& knob) {
  std::string text;
  const auto& form = knob.form;
  switch (form.kind) {
  case KnobKind::Text: text = "a text"; break;
  case KnobKind::Flag: text = "0 or 1"; break;
  case KnobKind::Choice: {
    auto choices = choices_of(form);
    for (auto choice : choices)
      text += (text.empty() ? "" : choice == choices.back() ? " or " : ", ") + std::string(choice);
    break;
  }
  case KnobKind::Count: text = format("a number from {} to {}", form.least, form.greatest); break;
  case KnobKind::Microseconds:
    text = format("a number of microseconds from {} to {}", form.least, form.greatest);
    break;
  case KnobKind::Bytes:
    text = format("bytes from {} to {}, written such as 65536, 64k, 1m or 2g", bytes_text(form.least),
                  bytes_text(form.greatest));
    break;
  }
  if (std::string_view(knob.default_text) == "auto") text += ", or auto";
  return text;
}

Result check_knob(std::string_view name, std::string_view value) {
  if (is_told_to_ranks(name)) return {};
  std::string hint;
  if (const Knob* knob = find_knob(name, hint)) {
    Knob copy = *knob;
    return parse(copy, value);
  }
  return fail(Code::invalid, "unknown knob {}{}", name, hint);
}

Result read_knobs(char** environment) {
  for (auto* knob : rows()) {
    knob->set = false;
    NEAR_TRY(parse(*knob, knob->default_text)); // resets what an earlier call has set
  }
  for (char** entry = environment; entry != nullptr && *entry != nullptr; ++entry) {
    std::string_view text(*entry);
    if (!text.starts_with("NEAR_") || text.starts_with(private_prefix)) continue;
    auto equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    auto name = text.substr(0, equals);
    if (is_told_to_ranks(name)) continue;
    std::string hint;
    Knob* knob = find_knob(name, hint);
    if (knob == nullptr) {
      log(Level::warning, "unknown knob {} is ignored{}", name, hint);
      continue;
    }
    NEAR_TRY(parse(*knob, text.substr(equals + 1)));
    knob->set = true;
  }
  set_level(static_cast<Level>(knobs().log.number));
  return {};
}

} // namespace near::base
