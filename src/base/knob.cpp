#include "base/knob.h"

#include "base/checked.h"
#include "base/log.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <vector>

namespace near::base {
namespace {

// Names that belong to the start-up contract (boot/), not to users.
constexpr std::string_view private_prefix = "NEAR_BOOT_";

Knob make_row(const char* member, KnobKind kind, const char* fallback, const char* help) {
  std::string name = "NEAR_";
  for (const char* at = member; *at != 0; ++at)
    name.push_back(*at == '_' ? '_' : static_cast<char>(*at - 'a' + 'A'));
  return Knob{std::move(name), kind, fallback, help, fallback, false, 0, false};
}

bool parse_number(std::string_view text, std::uint64_t& number) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

Result parse(Knob& knob, std::string_view text) {
  knob.text = text;
  knob.automatic = text == "auto" && std::string_view(knob.default_text) == "auto";
  if (knob.automatic) return {};
  switch (knob.kind) {
  case KnobKind::Text: return {};
  case KnobKind::Flag:
    if (text != "0" && text != "1") return fail(Code::invalid, "{}={}: a flag is 0 or 1", knob.name, text);
    knob.number = text == "1";
    return {};
  case KnobKind::Count:
    if (!parse_number(text, knob.number))
      return fail(Code::invalid, "{}={}: expected a number", knob.name, text);
    return {};
  case KnobKind::Microseconds:
    if (!parse_number(text, knob.number))
      return fail(Code::invalid, "{}={}: expected a number of microseconds", knob.name, text);
    return {};
  case KnobKind::Bytes:
    if (!parse_bytes(text, knob.number).ok())
      return fail(Code::invalid, "{}={}: expected bytes, such as 65536, 64k, 1m or 2g", knob.name, text);
    return {};
  }
  return {};
}

Knobs& mutable_knobs() {
  static Knobs& all = *[] {
    auto* made = new Knobs{
#define NEAR_KNOB(member, kind, fallback, help) make_row(#member, KnobKind::kind, fallback, help),
#include "base/knob_table.def"
#undef NEAR_KNOB
    };
#define NEAR_KNOB(member, kind, fallback, help) (void)parse(made->member, fallback);
#include "base/knob_table.def"
#undef NEAR_KNOB
    return made;
  }();
  return all;
}

std::span<Knob* const> rows() {
  static std::vector<Knob*>& list = *new std::vector<Knob*>{
#define NEAR_KNOB(member, kind, fallback, help) &mutable_knobs().member,
#include "base/knob_table.def"
#undef NEAR_KNOB
  };
  return list;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = above;
    }
  }
  return row[b.size()];
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

std::string_view nearest_word(std::string_view word, std::span<const std::string_view> candidates) {
  std::string_view best;
  std::size_t least = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (auto candidate : candidates) {
    std::size_t distance = edit_distance(word, candidate);
    if (distance < least) {
      least = distance;
      best = candidate;
    }
  }
  return best;
}

Result read_knobs(char** environment) {
  std::vector<std::string_view> names;
  for (auto* knob : rows()) {
    names.push_back(knob->name);
    knob->set = false;
    NEAR_TRY(parse(*knob, knob->default_text)); // what an earlier reading set does not stay
  }
  for (char** entry = environment; entry != nullptr && *entry != nullptr; ++entry) {
    std::string_view text(*entry);
    if (!text.starts_with("NEAR_") || text.starts_with(private_prefix)) continue;
    auto equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    auto name = text.substr(0, equals);
    auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      auto near = nearest_word(name, names);
      if (near.empty())
        log(Level::warning, "unknown knob {} is ignored; `near info --knobs` lists the known ones", name);
      else
        log(Level::warning, "unknown knob {} is ignored; did you mean {}?", name, near);
      continue;
    }
    Knob& knob = *rows()[static_cast<std::size_t>(found - names.begin())];
    NEAR_TRY(parse(knob, text.substr(equals + 1)));
    knob.set = true;
  }
  static constexpr const char* levels[] = {"error", "warning", "note", "debug"};
  const auto& wanted = knobs().log.text;
  auto at = std::find(std::begin(levels), std::end(levels), wanted);
  if (at == std::end(levels))
    return fail(Code::invalid, "NEAR_LOG={}: expected error, warning, note or debug", wanted);
  set_level(static_cast<Level>(at - std::begin(levels)));
  return {};
}

} // namespace near::base
