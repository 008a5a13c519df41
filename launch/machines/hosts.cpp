#include "machines/hosts.h"

#include "base/text.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <unordered_map>

namespace near::machines {
namespace {

using base::Code;
using base::fail;

constexpr unsigned most_ranks_there = 65536;
constexpr std::size_t most_hosts = 65536;

bool to_number(std::string_view text, unsigned& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

/// Whether ssh and srun accept the text as the name of a machine, and no shell takes it for anything else.
bool is_name(std::string_view text) {
  constexpr std::string_view others = "-._@[]%:";
  auto fits = [&](char one) {
    return (one >= '0' && one <= '9') || (one >= 'a' && one <= 'z') || (one >= 'A' && one <= 'Z') ||
           others.find(one) != std::string_view::npos;
  };
  return !text.empty() && text.front() != '-' && std::all_of(text.begin(), text.end(), fits);
}

/// Splits at each of `separators`, and omits empty parts.
std::vector<std::string_view> words_of(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(separators), text.size());
    if (end > 0) words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

/// Adds to a list of machines; a Slurm job may have tens of thousands.
class Adder {
public:
  explicit Adder(std::vector<Host>& hosts) : hosts_(hosts) {
    for (std::size_t i = 0; i < hosts.size(); ++i) at_.emplace(hosts[i].name, i);
  }
  /// Adds a machine, or adds slots to one already in the list.
  Result add(std::string_view name, unsigned slots, const std::string& source) {
    if (!is_name(name))
      return fail(Code::invalid, "{}: \"{}\" is not the name of a machine", source, base::printable(name));
    const auto [found, is_new] = at_.try_emplace(std::string(name), hosts_.size());
    if (is_new) {
      if (hosts_.size() == most_hosts)
        return fail(Code::limit, "{}: more than {} machines", source, most_hosts);
      hosts_.push_back({std::string(name), slots});
      return {};
    }
    Host& host = hosts_[found->second];
    host.slots = std::max(host.slots, 1u) + std::max(slots, 1u);
    if (host.slots > most_ranks_there)
      return fail(Code::limit, "{}: {} has more than {} slots", source, name, most_ranks_there);
    return {};
  }

private:
  std::vector<Host>& hosts_;
  std::unordered_map<std::string, std::size_t> at_;
};

/// Adds a machine written as "a", "a:4" or "[fe80::1]:4".
Result add_written(std::string_view text, const std::string& source, Adder& hosts) {
  const std::size_t colon = text.rfind(':');
  const std::size_t bracket = text.rfind(']');
  const bool is_address = std::count(text.begin(), text.end(), ':') > 1 && bracket == std::string_view::npos;
  if (colon == std::string_view::npos || is_address ||
      (bracket != std::string_view::npos && colon < bracket)) // the colons belong to an IPv6 address
    return hosts.add(text, 0, source);
  unsigned slots = 0;
  if (!to_number(text.substr(colon + 1), slots) || slots == 0 || slots > most_ranks_there)
    return fail(Code::invalid, "{}: {}: expected the number of slots after ':'", source,
                base::printable(text));
  return hosts.add(text.substr(0, colon), slots, source);
}

/// Adds the numbers "01-03,7" from a Slurm list, with their leading zeros.
Result add_numbered(std::string_view before, std::string_view numbers, std::string_view after,
                    const std::string& source, Adder& hosts) {
  for (std::string_view part : words_of(numbers, ",")) {
    const std::size_t dash = std::min(part.find('-'), part.size());
    const std::string_view first_text = part.substr(0, dash);
    const std::string_view last_text = dash < part.size() ? part.substr(dash + 1) : first_text;
    unsigned first = 0, last = 0;
    if (!to_number(first_text, first) || !to_number(last_text, last) || last < first ||
        last - first >= most_hosts)
      return fail(Code::invalid, "{}: [{}]: expected numbers such as 1-3,7", source,
                  base::printable(numbers));
    for (unsigned number = first; number <= last; ++number) {
      std::string digits = std::to_string(number);
      if (digits.size() < first_text.size()) digits.insert(0, first_text.size() - digits.size(), '0');
      NEAR_TRY(hosts.add(base::format("{}{}{}", before, digits, after), 0, source));
    }
  }
  return {};
}

/// Splits at commas outside brackets.
std::vector<std::string_view> groups_of(std::string_view text) {
  std::vector<std::string_view> groups;
  std::size_t begin = 0;
  bool inside = false;
  for (std::size_t at = 0; at <= text.size(); ++at) {
    if (at == text.size() || (text[at] == ',' && !inside)) {
      if (at > begin) groups.push_back(text.substr(begin, at - begin));
      begin = at + 1;
    } else if (text[at] == '[' || text[at] == ']') {
      inside = text[at] == '[';
    }
  }
  return groups;
}

} // namespace

Result parse_hosts(std::string_view text, const std::string& option, std::vector<Host>& hosts) {
  const auto words = words_of(text, ",");
  if (words.empty())
    return fail(Code::invalid, "{}: expected the names of machines, such as a:4,b:4", option);
  Adder adder(hosts);
  for (std::string_view word : words) NEAR_TRY(add_written(word, option, adder));
  return {};
}

Result parse_host_file(std::string_view text, const std::string& file, std::vector<Host>& hosts) {
  unsigned number = 0;
  Adder adder(hosts);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line = line.substr(0, line.find('#'));
    const auto words = words_of(line, " \t\r");
    const std::string source = base::format("{}:{}", file, ++number);
    if (words.empty()) continue;
    unsigned slots = 0;
    for (std::string_view word : std::vector(words.begin() + 1, words.end())) {
      constexpr std::string_view known = "slots=";
      if (!word.starts_with(known)) continue; // other launchers' words, such as max_slots=, binding=, user=
      if (!to_number(word.substr(known.size()), slots) || slots == 0 || slots > most_ranks_there)
        return fail(Code::invalid, "{}: {}: expected the number of slots after '='", source,
                    base::printable(word));
    }
    NEAR_TRY(slots == 0 ? add_written(words[0], source, adder) : adder.add(words[0], slots, source));
  }
  return hosts.empty() ? fail(Code::invalid, "{}: no line names a machine", file) : Result();
}

Result parse_slurm_nodes(std::string_view nodes, std::string_view tasks, std::vector<Host>& hosts) {
  const std::string source = base::format("SLURM_JOB_NODELIST={}", base::printable(nodes));
  Adder adder(hosts);
  for (std::string_view group : groups_of(nodes)) {
    const std::size_t open = group.find('['), close = group.find(']');
    if (open == std::string_view::npos) {
      NEAR_TRY(adder.add(group, 0, source));
      continue;
    }
    if (close == std::string_view::npos || close < open || group.find('[', close) != std::string_view::npos)
      return fail(Code::unsupported, "{}: this form of a list of machines is not known", source);
    NEAR_TRY(add_numbered(group.substr(0, open), group.substr(open + 1, close - open - 1),
                          group.substr(close + 1), source, adder));
  }
  std::size_t next = 0;
  for (std::string_view part : words_of(tasks, ",")) {
    const std::size_t times_at = std::min(part.find("(x"), part.size());
    unsigned count = 0, times = 1;
    bool read = to_number(part.substr(0, times_at), count) && count > 0 && count <= most_ranks_there;
    if (times_at < part.size())
      read = read && part.ends_with(')') &&
             to_number(part.substr(times_at + 2, part.size() - times_at - 3), times);
    if (!read)
      return fail(Code::invalid, "SLURM_TASKS_PER_NODE={}: expected numbers such as 4(x2),2",
                  base::printable(tasks));
    for (; times > 0 && next < hosts.size(); --times) hosts[next++].slots = count;
  }
  return {};
}

} // namespace near::machines
