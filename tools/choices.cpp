// See choices.h.
#include "tools/choices.h"

#include "base/text.h"

#include <algorithm>
#include <cstdio>

namespace near::tools {

using choice::Algorithm;

namespace {
constexpr MPI_Count largest = 16 << 20;
}

std::vector<MPI_Count> sizes_of(Collective collective) {
  std::vector<MPI_Count> sizes{0};
  if (!choice::measure_of(collective).empty())
    for (MPI_Count bytes = 1; bytes <= largest; bytes *= 2) sizes.push_back(bytes);
  return sizes;
}

Facts with_bytes(Facts facts, MPI_Count bytes) {
  facts.bytes = bytes;
  if (facts.collective == Collective::reduce_scatter) facts.longest = (bytes + facts.size - 1) / facts.size;
  return facts;
}

std::string size_text(MPI_Count bytes) {
  if (bytes >= 1 << 20) return base::format("{} MiB", bytes >> 20);
  if (bytes >= 1 << 10) return base::format("{} KiB", bytes >> 10);
  return base::format("{} B", bytes);
}

std::string range_text(const Range& range, Collective collective) {
  if (choice::measure_of(collective).empty()) return "any";
  if (range.from == range.to) return size_text(range.from);
  if (range.from == 0) return "up to " + size_text(range.to);
  return size_text(range.from) + " to " + size_text(range.to);
}

std::string chosen_text(const Facts& facts) {
  const Algorithm& row = choice::choose(facts);
  return base::format("{}{}", row.name,
                      choice::named_algorithm(facts.collective) == &row ? " (NEAR_COLL)" : "");
}

std::vector<std::string> chosen_and_reasons(const Facts& facts) {
  const Algorithm& chosen = choice::choose(facts);
  const Algorithm* named = choice::named_algorithm(facts.collective);
  std::vector<std::string> lines{chosen_text(facts)};
  if (named == &chosen) return lines;
  if (named != nullptr)
    lines.push_back(base::format("  not {}, which NEAR_COLL names: {}", named->name, named->lack(facts)));
  for (const Algorithm& row : choice::algorithms(facts.collective)) {
    if (&row == &chosen) break;
    if (&row == named) continue;
    const char* lack = row.lack(facts);
    lines.push_back(
        base::format("  not {}: {}", row.name, lack != nullptr ? lack : "not expected to be the fastest"));
  }
  return lines;
}

Facts nonblocking(Facts facts) {
  facts.recorded = true;
  return facts;
}

void print_reasons(const Facts& blocking, const std::vector<Kind>& others,
                   const std::function<std::vector<std::string>(const Facts&)>& answer) {
  auto print_kind = [&](const char* name, const Facts& facts) {
    std::printf("  %s\n", name);
    for (const auto& range : ranges(facts, answer)) {
      std::string left = range_text(range, facts.collective);
      for (const auto& line : range.answer) {
        std::printf("    %-18s  %s\n", left.c_str(), line.c_str());
        left.clear();
      }
    }
  };
  const std::string measure(choice::measure_of(blocking.collective));
  std::printf("\n%s%s%s\n", std::string(choice::name_of(blocking.collective)).c_str(),
              measure.empty() ? "" : ", by bytes of ", measure.c_str());
  print_kind("blocking", blocking);
  for (const auto& [name, facts] : others) {
    const auto sizes = sizes_of(facts.collective);
    const bool differs = std::any_of(sizes.begin(), sizes.end(), [&](MPI_Count bytes) {
      return answer(with_bytes(blocking, bytes)).front() != answer(with_bytes(facts, bytes)).front();
    });
    if (differs) print_kind(name, facts);
  }
}

void print_line(const std::string& line) {
  std::printf("%s\n", line.substr(0, line.find_last_not_of(' ') + 1).c_str());
}

bool read_collectives(std::string_view text, std::vector<Collective>& into) {
  const auto names = choice::collective_names();
  if (text.empty())
    for (int i = 0; i < choice::collective_count; ++i) into.push_back(static_cast<Collective>(i));
  while (!text.empty()) {
    const auto comma = std::min(text.find(','), text.size());
    const auto word = text.substr(0, comma);
    const auto collective = choice::collective_named(word);
    if (!collective) {
      auto hint = base::did_you_mean(word, names);
      if (hint.empty()) hint = "; `near info --coll` lists them";
      std::fprintf(stderr, "near: unknown collective '%s'%s\n", base::printable(word).c_str(), hint.c_str());
      return false;
    }
    into.push_back(*collective);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return true;
}

} // namespace near::tools
