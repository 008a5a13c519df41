#include "launch/ranks_named.h"

#include <algorithm>
#include <charconv>
#include <sstream>

namespace near::launch {
namespace {

bool parse_number(const std::string& text, unsigned& number) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() && number < 65536;
}

} // namespace

NamedRanks NamedRanks::every() {
  NamedRanks made;
  made.all_ = true;
  return made;
}

NamedRanks NamedRanks::only(unsigned rank) {
  NamedRanks made;
  made.ranges_.emplace_back(rank, rank);
  return made;
}

bool NamedRanks::has(unsigned rank) const {
  return all_ || std::any_of(ranges_.begin(), ranges_.end(),
                             [&](const auto& range) { return range.first <= rank && rank <= range.second; });
}

bool NamedRanks::several() const {
  return all_ || ranges_.size() > 1 || (ranges_.size() == 1 && ranges_[0].first != ranges_[0].second);
}

unsigned NamedRanks::greatest() const {
  unsigned greatest = 0;
  for (const auto& range : ranges_) greatest = std::max(greatest, range.second);
  return greatest;
}

std::string NamedRanks::text() const {
  if (all_) return "all ranks";
  if (empty()) return "nobody";
  std::string list;
  for (const auto& [first, last] : ranges_)
    list += base::format("{}{}", list.empty() ? "" : ",",
                         first == last ? std::to_string(first) : base::format("{}-{}", first, last));
  return (several() ? "ranks " : "rank ") + list;
}

bool NamedRanks::parse(const std::string& text, NamedRanks& ranks) {
  NamedRanks made;
  if (text == "all") {
    ranks = every();
    return true;
  }
  std::istringstream items(text);
  for (std::string item; std::getline(items, item, ',');) {
    auto dash = item.find('-');
    std::pair<unsigned, unsigned> range;
    if (!parse_number(item.substr(0, dash), range.first)) return false;
    range.second = range.first;
    if (dash != std::string::npos && !parse_number(item.substr(dash + 1), range.second)) return false;
    if (range.second < range.first) return false;
    made.ranges_.push_back(range);
  }
  if (made.ranges_.empty() || text.ends_with(',')) return false;
  ranks = std::move(made);
  return true;
}

} // namespace near::launch
