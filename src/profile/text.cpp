// The format of the file; profile.h has an example.
#include "profile/profile.h"

#include <algorithm>
#include <bit>
#include <charconv>

namespace near::profile {

using base::Code;
using base::fail;

namespace {

constexpr std::string_view version = "1";

std::string number_text(std::uint32_t number) { return number == 0 ? "-" : std::to_string(number); }

/// Removes the next word from the line and returns it; "" at the end of the line.
std::string_view word(std::string_view& line) {
  auto end = std::min(line.find(' '), line.size());
  auto found = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return found;
}

template <class T>
bool number(std::string_view text, T& value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() && value != 0;
}

template <std::size_t count>
bool numbers(std::string_view& line, std::array<std::uint32_t, count>& into) {
  for (auto& value : into)
    if (auto text = word(line); text != "-" && !number(text, value)) return false;
  return line.empty();
}

bool distance(std::string_view name, std::size_t& found) {
  for (found = 0; found < distances; ++found)
    if (name == segment::distance_name(static_cast<Distance>(found))) return true;
  return false;
}

bool cost_line(std::string_view line, Profile& made) {
  std::size_t where = 0;
  std::uint64_t bytes = 0;
  if (!distance(word(line), where) || !number(word(line), bytes) || !std::has_single_bit(bytes)) return false;
  int size_class = std::bit_width(bytes) - 13; // 4 KiB is class 0
  if (size_class < 0 || size_class >= segment::size_classes) return false;
  auto name = word(line);
  for (Source source : {Source::reused, Source::rewritten})
    if (name == source_name(source))
      return numbers(
          line, made.cost[where][static_cast<std::size_t>(size_class)][static_cast<std::size_t>(source)]);
  return false;
}

bool take_line(std::string_view line, Profile& made) {
  auto what = word(line);
  std::size_t where = 0;
  if (what == "cost") return cost_line(line, made);
  if (what == "stores") return distance(word(line), where) && numbers(line, made.store_cost[where]);
  if (what == "machine")
    made.machine = line;
  else if (what == "measured")
    made.measured = line;
  else if (what == "no-cma")
    made.no_cma = line;
  else
    return false;
  return !line.empty();
}

} // namespace

const char* source_name(Source source) { return source == Source::reused ? "reused" : "rewritten"; }

std::string text_of(const Profile& profile) {
  std::string text =
      base::format("near-profile {}\nmachine {}\nmeasured {}\n", version, profile.machine, profile.measured);
  if (!profile.no_cma.empty()) text += "no-cma " + profile.no_cma + "\n";
  for (std::size_t distance = 0; distance < distances; ++distance) {
    const char* name = segment::distance_name(static_cast<Distance>(distance));
    for (std::size_t size = 0; size < size_classes; ++size)
      for (Source source : {Source::reused, Source::rewritten}) {
        const auto& row = profile.cost[distance][size][static_cast<std::size_t>(source)];
        if (row == std::array<std::uint32_t, kinds>{}) continue;
        text += base::format("cost {} {} {}", name, std::uint64_t{4096} << size, source_name(source));
        for (auto cost : row) text += " " + number_text(cost);
        text += "\n";
      }
    if (const auto& row = profile.store_cost[distance]; row != std::array<std::uint32_t, 2>{})
      text += base::format("stores {} {} {}\n", name, number_text(row[0]), number_text(row[1]));
  }
  return text + "end\n";
}

Result parse(std::string_view text, Profile& profile) {
  Profile made;
  bool ended = false;
  for (unsigned number = 1; !text.empty(); ++number) {
    auto end = std::min(text.find('\n'), text.size());
    auto line = text.substr(0, end), rest = line;
    text.remove_prefix(std::min(end + 1, text.size()));
    if (number == 1) {
      if (word(rest) != "near-profile") return fail(Code::invalid, "it is not a profile");
      if (rest != version)
        return fail(Code::unsupported, "its format is version {}, this NearMPI reads version {}",
                    rest.substr(0, 20), version);
    } else if (ended || (line != "end" && !take_line(line, made))) {
      return fail(Code::invalid, "line {} is damaged", number);
    }
    ended = line == "end";
  }
  if (!ended) return fail(Code::invalid, "its end is missing");
  if (made.machine.empty() || made.measured.empty())
    return fail(Code::invalid, "it does not say which machine it belongs to, or when it was measured");
  profile = std::move(made);
  return {};
}

} // namespace near::profile
