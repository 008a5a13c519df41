#include "boot/machine_list.h"

#include "base/text.h"
#include "boot/rank_list.h"

#include <algorithm>

namespace near::boot {
namespace {

/// Ends a row that others follow.
constexpr char more = '+';

} // namespace

std::string machine_list_key(std::size_t row) { return base::format("near-machines-{}", row); }

std::vector<std::string> machine_list_rows(const std::vector<std::vector<std::uint32_t>>& ranks,
                                           std::size_t longest) {
  std::string text;
  for (const auto& each : ranks) text += (text.empty() ? "" : ";") + rank_list_text(each);
  std::vector<std::string> rows;
  for (std::size_t at = 0; at < text.size(); at += longest) {
    rows.push_back(text.substr(at, longest));
    if (at + longest < text.size()) rows.back() += more;
  }
  return rows;
}

bool MachineListReader::add(std::string_view row) {
  const bool follows = row.ends_with(more);
  text_ += row.substr(0, row.size() - (follows ? 1 : 0));
  return follows;
}

base::Result MachineListReader::finish(std::uint32_t size, std::vector<std::uint32_t>& machine_of) const {
  constexpr std::uint32_t none = UINT32_MAX;
  machine_of.assign(size, none);
  std::uint32_t machine = 0;
  for (std::string_view rest = text_; !rest.empty(); ++machine) {
    const std::string_view list = rest.substr(0, rest.find(';'));
    rest.remove_prefix(std::min(list.size() + 1, rest.size()));
    std::vector<std::uint32_t> ranks;
    NEAR_TRY(read_rank_list(list, size, ranks));
    for (const std::uint32_t rank : ranks) machine_of[rank] = machine;
  }
  if (std::find(machine_of.begin(), machine_of.end(), none) == machine_of.end()) return {};
  return base::fail(base::Code::invalid, "\"{}\" does not name the machines of {} ranks",
                    base::printable(text_), size);
}

} // namespace near::boot
