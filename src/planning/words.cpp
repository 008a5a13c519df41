// The words of --map-by and --bind-to, in MPICH's and Open MPI's spellings.
#include "base/text.h"
#include "planning/plan.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace near::planning {
namespace {

struct Word {
  std::string_view word;
  Level level;
  bool shown = true; ///< in messages; otherwise it is another launcher's name for a word that is shown
};
constexpr Word domains[] = {
    {"hwthread", Level::hwthread},      {"core", Level::core},
    {"l1cache", Level::core, false},    {"l2", Level::l2},
    {"l2cache", Level::l2, false},      {"l3", Level::l3},
    {"l3cache", Level::l3, false},      {"numa", Level::numa},
    {"numanode", Level::numa, false},   {"package", Level::package},
    {"socket", Level::package},         {"node", Level::machine},
    {"machine", Level::machine, false},
};

std::string lowered(std::string_view text) {
  std::string small(text);
  std::transform(small.begin(), small.end(), small.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return small;
}

bool find_domain(std::string_view text, Level& level) {
  for (const auto& row : domains)
    if (row.word == text) {
      level = row.level;
      return true;
    }
  return false;
}

bool parse_count(std::string_view text, unsigned& count) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  return error == std::errc{} && end == text.data() + text.size() && count > 0;
}

Result unknown(const char* option, std::string_view text, std::string_view word,
               std::initializer_list<std::string_view> more) {
  std::vector<std::string_view> known(more);
  std::string list;
  for (auto each : more) list.append(list.empty() ? "" : ", ").append(each);
  for (const auto& row : domains) {
    known.push_back(row.word);
    if (row.shown) list.append(list.empty() ? "" : ", ").append(row.word);
  }
  return base::fail(base::Code::invalid, "{} {}: expected one of {}{}", option, text, list,
                    base::did_you_mean(word, known));
}

// Splits `text` at each `separator`.
std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    auto end = std::min(text.find(separator, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

// Cores listed on the command line are treated like a rankfile.
Result set_rankfile(std::vector<RankfileEntry> entries, bool repeats, const std::string& option,
                    Request& request) {
  if (request.order != Order::automatic)
    return base::fail(base::Code::invalid, "{}: {} says already where ranks run", option,
                      request.order == Order::rankfile ? request.rankfile_name : "--map-by");
  request.order = Order::rankfile;
  request.rankfile = std::move(entries);
  request.rankfile_repeats = repeats;
  request.rankfile_name = option;
  return {};
}

// What to write instead of another launcher's words that are not supported or have another name here:
// "dist:mlx5_0", "seq".
const char* instead_of(std::string_view word) {
  if (word == "dist") return "the cores nearest to a NIC are --map-by nic=NAME";
  if (word == "seq")
    return "it takes the machines of a host file in turn, but there is only one machine; omit it";
  return nullptr;
}

Result read_modifier(std::string_view text, std::string_view modifier, Request& made) {
  if (modifier.starts_with("pe=")) {
    if (!parse_count(modifier.substr(3), made.threads))
      return base::fail(base::Code::invalid, "--map-by {}: PE= takes a number of cores", text);
    made.threads_chosen = true;
  } else if (modifier == "hwtcpus") {
    made.by_hwthread = true;
  } else if (modifier == "oversubscribe") {
    made.may_share = true;
  } else if (modifier == "nooversubscribe") {
    made.must_not_share = true;
  } else if (modifier == "span") {
    made.ranking = Ranking::span;
  } else if (modifier == "nolocal") {
    return base::fail(base::Code::unsupported, "--map-by {}: NOLOCAL excludes the only machine; omit it",
                      text);
  } else if (unsigned count = 0; parse_count(modifier, count)) {
    return base::fail(base::Code::unsupported,
                      "--map-by {}: ranks cannot skip domains; for {} cores a rank write :PE={}", text, count,
                      count);
  } else {
    return base::fail(base::Code::invalid,
                      "--map-by {}: unknown modifier '{}'; known: PE=n, HWTCPUS, OVERSUBSCRIBE, "
                      "NOOVERSUBSCRIBE",
                      text, modifier);
  }
  return {};
}

} // namespace

Result use_cores(std::string_view list, bool one_each, const std::string& option, Request& request) {
  std::vector<RankfileEntry> entries;
  CpuSet all;
  for (const auto& item : split(std::string(list), ',')) {
    CpuSet cores;
    if (!os::parse_cpus(item, cores).ok() || cores.empty())
      return base::fail(base::Code::invalid, "{}: expected a list of cores such as 0-3,8", option);
    all = all | cores;
    for (unsigned core : cores.members()) {
      RankfileEntry entry;
      entry.given = true;
      entry.numbers.add(core);
      entries.push_back(entry);
    }
  }
  if (!one_each) {
    entries.resize(1);
    entries[0].numbers = all;
  }
  return set_rankfile(std::move(entries), !one_each, option, request);
}

Result use_processors(std::string_view list, const std::string& option, Request& request) {
  std::vector<RankfileEntry> entries;
  for (const auto& item : split(std::string(list), ',')) {
    RankfileEntry entry;
    entry.given = entry.by_cpu = true;
    for (const auto& part : split(item, '+')) {
      CpuSet processors;
      if (!os::parse_cpus(part, processors).ok() || processors.empty())
        return base::fail(base::Code::invalid,
                          "{}: expected processors for each rank, such as 0,1 or 0+4,1+5", option);
      entry.numbers = entry.numbers | processors;
    }
    entries.push_back(entry);
  }
  return set_rankfile(std::move(entries), true, option, request);
}

Result parse_rank_by(std::string_view text, Request& request) {
  std::string small = lowered(text);
  if (small == "fill")
    request.ranking = Ranking::fill;
  else if (small == "span")
    request.ranking = Ranking::span;
  else if (small != "slot" && small != "node") // one machine: they number as --map-by does
    return base::fail(base::Code::invalid,
                      "--rank-by {}: expected slot, node, fill or span; --map-by says where ranks run", text);
  return {};
}

Result parse_map_by(std::string_view text, Request& request) {
  std::string small = lowered(text);
  std::vector<std::string> parts = split(small, ':');
  std::size_t next = 1;
  Request made = request;
  if (made.order == Order::rankfile && !parts[0].empty() && parts[0] != "node")
    return base::fail(base::Code::invalid, "--map-by {}: {} says already where ranks run", text,
                      made.rankfile_name);
  if (parts[0] == "ppr") {
    if (parts.size() < 3 || !parse_count(parts[1], made.per_domain) || !find_domain(parts[2], made.domain))
      return base::fail(base::Code::invalid, "--map-by {}: expected ppr:<ranks>:<domain>, such as ppr:4:numa",
                        text);
    made.order = Order::ppr;
    next = 3;
  } else if (parts[0] == "core" || parts[0] == "slot") {
    made.order = Order::packed;
  } else if (parts[0] == "hwthread") {
    made.order = Order::packed;
    made.by_hwthread = true;
    if (!made.bind_chosen) made.bind_to = Level::hwthread;
  } else if (parts[0] == "spread") {
    made.order = Order::spread;
  } else if (parts[0] == "node" || parts[0].empty()) {
    // One machine: "by node" says nothing about the cores on it.
  } else if (parts[0] == "nic" || parts[0].starts_with("nic=")) {
    made.order = Order::by_nic;
    // Not in lower case: the names of NICs may contain capital letters (enP2p1s0).
    made.nic = parts[0] == "nic" ? "" : text.substr(4, parts[0].size() - 4);
  } else if (parts[0].starts_with("pe-list=")) {
    auto ordered = std::find(parts.begin(), parts.end(), "ordered");
    NEAR_TRY(use_cores(parts[0].substr(8), ordered != parts.end(), base::format("--map-by {}", text), made));
    if (ordered != parts.end()) parts.erase(ordered);
  } else if (find_domain(parts[0], made.domain)) {
    made.order = Order::round_robin;
  } else if (const char* instead = instead_of(parts[0])) {
    return base::fail(base::Code::unsupported, "--map-by {}: {}", text, instead);
  } else {
    return unknown("--map-by", text, parts[0],
                   {"slot", "spread", "nic", "nic=<name>", "ppr:N:<domain>", "pe-list=<cores>"});
  }
  for (; next < parts.size(); ++next)
    for (const auto& modifier : split(parts[next], ',')) NEAR_TRY(read_modifier(text, modifier, made));
  request = made;
  return {};
}

Result parse_bind_to(std::string_view text, Request& request) {
  std::string small = lowered(text.substr(0, text.find(':')));
  if (small == "none") {
    request.bind_chosen = true;
    request.bind = false;
    return {};
  }
  if (small == "user" && text.size() > 5) {
    request.bind_chosen = true;
    return use_processors(text.substr(5), base::format("--bind-to {}", text), request);
  }
  Level level{};
  if (small == "rr")
    level = Level::hwthread; // MPICH: processors in order
  else if (!find_domain(small, level))
    return unknown("--bind-to", text, small, {"none", "user:<processors>"});
  // "core:4" is MPICH's notation for four cores for each rank; words are Open MPI's.
  if (auto colon = text.find(':'); colon != std::string_view::npos) {
    std::string more = lowered(text.substr(colon + 1));
    unsigned threads = 0;
    if (level <= Level::core && parse_count(more, threads)) {
      request.threads = threads;
      request.threads_chosen = true;
    } else if (more == "overload-allowed") {
      request.may_share = true;
    } else if (more != "no-overload" && more != "if-supported") {
      return base::fail(base::Code::invalid,
                        "--bind-to {}: '{}' is neither a number of cores (after core or hwthread) nor one of "
                        "overload-allowed, no-overload, if-supported",
                        text, more);
    }
  }
  request.bind_chosen = true;
  request.bind = true;
  request.bind_to = level;
  if (level == Level::hwthread) request.by_hwthread = true;
  return {};
}

} // namespace near::planning
