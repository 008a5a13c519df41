// Rankfiles in the form of Open MPI's launcher, with one extension: "cpu:" before the kernel's processor
// numbers.
#include "planning/plan.h"

#include <charconv>
#include <sstream>

namespace near::planning {
namespace {

// "0-3,8", "1:0-3", "cpu:0-3,16".
bool parse_slot(std::string spec, RankfileEntry& entry) {
  if (spec.starts_with("cpu:")) {
    entry.by_cpu = true;
    spec = spec.substr(4);
  } else if (auto colon = spec.find(':'); colon != std::string::npos) {
    auto [end, error] = std::from_chars(spec.data(), spec.data() + colon, entry.package);
    if (error != std::errc{} || end != spec.data() + colon || entry.package < 0) return false;
    spec = spec.substr(colon + 1);
  }
  return os::parse_cpus(spec, entry.numbers).ok() && !entry.numbers.empty();
}

} // namespace

Result parse_rankfile(const std::string& text, const std::string& name, Request& request) {
  constexpr unsigned most_ranks = 65536;
  if (request.order != Order::automatic)
    return base::fail(base::Code::invalid, "--rankfile {}: {} says already where ranks run", name,
                      request.order == Order::rankfile ? request.rankfile_name : "--map-by");
  std::vector<RankfileEntry> entries;
  std::istringstream lines(text);
  unsigned number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::istringstream words(line.substr(0, line.find('#')));
    std::string keyword, where, slot, more;
    if (!(words >> keyword)) continue;
    auto wrong = [&](const char* what) {
      return base::fail(
          base::Code::invalid,
          "{}:{}: {}; a line is: rank N=HOST slot=SPEC, where SPEC is cores such as 0-3, cores of a "
          "package such as 1:0-3, or processors such as cpu:0-3,16",
          name, number, what);
    };
    if (keyword != "rank" || !(words >> where >> slot) || words >> more) return wrong("not understood");
    unsigned rank = 0;
    auto equals = where.find('=');
    auto [end, error] = std::from_chars(where.data(), where.data() + std::min(equals, where.size()), rank);
    if (equals == std::string::npos || error != std::errc{} || end != where.data() + equals ||
        rank >= most_ranks)
      return wrong("no rank's number");
    RankfileEntry made;
    made.given = true;
    made.line = number;
    made.host = where.substr(equals + 1);
    if (!slot.starts_with("slot=") || !parse_slot(slot.substr(5), made)) return wrong("no list of cores");
    if (rank >= entries.size()) entries.resize(rank + 1);
    if (entries[rank].given)
      return base::fail(base::Code::invalid, "{}:{}: rank {} has been given already, in line {}", name,
                        number, rank, entries[rank].line);
    entries[rank] = made;
  }
  request.order = Order::rankfile;
  request.rankfile = std::move(entries);
  request.rankfile_name = name;
  return {};
}

} // namespace near::planning
