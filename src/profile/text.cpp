// The format of the file; profile.h has an example.
#include "profile/profile.h"

#include <algorithm>
#include <bit>
#include <charconv>

namespace near::profile {

using base::Code;
using base::fail;

namespace {

constexpr std::string_view version = "3", older_versions[] = {"1", "2"};

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

template <class Names, class Name>
bool named(std::string_view text, std::size_t count, Name&& name, std::size_t& found) {
  for (found = 0; found < count; ++found)
    if (text == name(static_cast<Names>(found))) return true;
  return false;
}

bool distance(std::string_view name, std::size_t& found) {
  return named<Distance>(name, distances, segment::distance_name, found);
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

template <class Axis>
bool on_axis(const Axis& axis, std::string_view text, std::size_t& found) {
  std::uint32_t value = 0;
  if (!number(text, value)) return false;
  const auto at = std::find(axis.begin(), axis.end(), value);
  found = static_cast<std::size_t>(at - axis.begin());
  return at != axis.end();
}

bool blocks_line(std::string_view line, BlockCosts& made) {
  std::size_t direction = 0, spacing = 0, length = 0, step = 0;
  return named<Direction>(word(line), directions, direction_name, direction) &&
         named<Spacing>(word(line), spacings, spacing_name, spacing) &&
         on_axis(block_lengths, word(line), length) && on_axis(block_steps, word(line), step) &&
         numbers(line, made.block[direction][spacing][length][step]);
}

bool first_line(std::string_view line, BlockCosts& made) {
  std::size_t direction = 0;
  return named<Direction>(word(line), directions, direction_name, direction) &&
         number(line, made.first[direction]);
}

bool take_line(std::string_view line, Profile& made) {
  auto what = word(line);
  std::size_t where = 0;
  if (what == "cost") return cost_line(line, made);
  if (what == "short") return distance(word(line), where) && numbers(line, made.short_time[where]);
  if (what == "stores") return distance(word(line), where) && numbers(line, made.store_cost[where]);
  if (what == "blocks") return blocks_line(line, made.blocks);
  if (what == "first") return first_line(line, made.blocks);
  if (what == "caches") return numbers(line, made.blocks.caches);
  if (what == "call") return number(line, made.blocks.call);
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

namespace {

std::string text_of(const BlockCosts& blocks) {
  std::string text;
  if (blocks.caches != std::array<std::uint32_t, levels - 1>{}) {
    text += "caches";
    for (auto bytes : blocks.caches) text += " " + number_text(bytes);
    text += "\n";
  }
  if (blocks.call != 0) text += base::format("call {}\n", blocks.call);
  for (std::size_t direction = 0; direction < directions; ++direction)
    if (blocks.first[direction] != 0)
      text += base::format("first {} {}\n", direction_name(static_cast<Direction>(direction)),
                           blocks.first[direction]);
  for (std::size_t direction = 0; direction < directions; ++direction)
    for (std::size_t spacing = 0; spacing < spacings; ++spacing)
      for (std::size_t length = 0; length < block_lengths.size(); ++length)
        for (std::size_t step = 0; step < block_steps.size(); ++step) {
          const auto& row = blocks.block[direction][spacing][length][step];
          if (row == BlockCosts::Row{}) continue;
          text += base::format("blocks {} {} {} {}", direction_name(static_cast<Direction>(direction)),
                               spacing_name(static_cast<Spacing>(spacing)), block_lengths[length],
                               block_steps[step]);
          for (auto cost : row) text += " " + number_text(cost);
          text += "\n";
        }
  return text;
}

} // namespace

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
    if (const auto& row = profile.short_time[distance];
        row != std::array<std::uint32_t, short_sizes.size()>{}) {
      text += base::format("short {}", name);
      for (auto time : row) text += " " + number_text(time);
      text += "\n";
    }
    if (const auto& row = profile.store_cost[distance]; row != std::array<std::uint32_t, 2>{})
      text += base::format("stores {} {} {}\n", name, number_text(row[0]), number_text(row[1]));
  }
  return text + text_of(profile.blocks) + "end\n";
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
      if (rest != version &&
          std::find(std::begin(older_versions), std::end(older_versions), rest) == std::end(older_versions))
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
