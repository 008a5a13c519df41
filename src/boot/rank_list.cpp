#include "boot/rank_list.h"

#include "base/text.h"

#include <charconv>

namespace near::boot {
namespace {

bool take_number(std::string_view& text, std::uint32_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

bool skip(std::string_view& text, char expected) {
  if (!text.starts_with(expected)) return false;
  text.remove_prefix(1);
  return true;
}

/// Reads the first range of the text, and appends its ranks.
bool take_range(std::string_view& text, std::uint32_t size, std::vector<std::uint32_t>& ranks) {
  std::uint32_t first = 0, step = 1;
  if (!take_number(text, first)) return false;
  std::uint32_t last = first;
  if (skip(text, '-') && !take_number(text, last)) return false;
  if (skip(text, ':') && !take_number(text, step)) return false;
  if (step == 0 || last < first || last >= size) return false;
  if (!ranks.empty() && ranks.back() >= first) return false;
  for (std::uint64_t rank = first; rank <= last; rank += step)
    ranks.push_back(static_cast<std::uint32_t>(rank));
  return true;
}

} // namespace

std::string rank_list_text(const std::vector<std::uint32_t>& ranks) {
  std::string text;
  for (std::size_t at = 0; at < ranks.size();) {
    // A range of two is as long as two numbers, unless they are consecutive.
    const std::uint32_t step = at + 1 < ranks.size() ? ranks[at + 1] - ranks[at] : 1;
    std::size_t end = at + 1;
    while (end < ranks.size() && ranks[end] - ranks[end - 1] == step) ++end;
    if (end - at == 2 && step != 1) end = at + 1;
    if (!text.empty()) text += ',';
    text += std::to_string(ranks[at]);
    if (end - at > 1) text += base::format("-{}", ranks[end - 1]);
    if (end - at > 1 && step != 1) text += base::format(":{}", step);
    at = end;
  }
  return text;
}

base::Result read_rank_list(std::string_view text, std::uint32_t size, std::vector<std::uint32_t>& ranks) {
  std::string_view rest = text;
  ranks.clear();
  bool good = take_range(rest, size, ranks);
  while (good && skip(rest, ',')) good = take_range(rest, size, ranks);
  if (good && rest.empty()) return {};
  return base::fail(base::Code::invalid,
                    "\"{}\": expected ranks below {} in rising order, such as 0-3,8-20:4",
                    base::printable(text), size);
}

} // namespace near::boot
