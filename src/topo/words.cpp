// The words of --map-by and --bind-to, MPICH's and Open MPI's spellings alike.
#include "base/knob.h"
#include "topo/plan.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace near::topo {
namespace {

struct Word {
  std::string_view word;
  Level level;
};
constexpr Word domains[] = {
    {"hwthread", Level::hwthread}, {"core", Level::core},       {"l2", Level::l2},
    {"l2cache", Level::l2},        {"l3", Level::l3},           {"l3cache", Level::l3},
    {"numa", Level::numa},         {"package", Level::package}, {"socket", Level::package},
    {"node", Level::machine},
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
  for (const auto& row : domains) known.push_back(row.word);
  auto nearest = base::nearest_word(word, known);
  std::string list;
  for (auto each : known) list.append(list.empty() ? "" : ", ").append(each);
  if (nearest.empty())
    return base::fail(base::Code::invalid, "{} {}: expected one of {}", option, text, list);
  return base::fail(base::Code::invalid, "{} {}: did you mean {}? Known: {}", option, text, nearest, list);
}

} // namespace

Result parse_map_by(std::string_view text, Request& request) {
  std::string small = lowered(text);
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= small.size();) {
    auto colon = std::min(small.find(':', at), small.size());
    parts.push_back(small.substr(at, colon - at));
    at = colon + 1;
  }
  std::size_t next = 1;
  Request made = request;
  if (made.order == Order::listed && !parts[0].empty() && parts[0] != "node")
    return base::fail(base::Code::invalid, "--map-by {}: the rank file {} says already where ranks run", text,
                      made.rank_file);
  if (parts[0] == "ppr") {
    if (parts.size() < 3 || !parse_count(parts[1], made.per_domain) || !find_domain(parts[2], made.domain))
      return base::fail(base::Code::invalid, "--map-by {}: expected ppr:<ranks>:<domain>, such as ppr:4:numa",
                        text);
    made.order = Order::filled;
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
    // One machine: "by node" says nothing about the places on it.
  } else if (parts[0] == "nic" || parts[0].starts_with("nic=")) {
    made.order = Order::by_card;
    // As written: names of cards have capital letters too (enP2p1s0).
    made.card = parts[0] == "nic" ? "" : text.substr(4, parts[0].size() - 4);
  } else if (find_domain(parts[0], made.domain)) {
    made.order = Order::dealt;
  } else {
    return unknown("--map-by", text, parts[0], {"slot", "spread", "nic", "nic=<card>", "ppr:N:<domain>"});
  }
  for (; next < parts.size(); ++next) {
    for (std::size_t at = 0; at <= parts[next].size();) {
      auto comma = std::min(parts[next].find(',', at), parts[next].size());
      std::string_view modifier = std::string_view(parts[next]).substr(at, comma - at);
      at = comma + 1;
      if (modifier.starts_with("pe=")) {
        if (!parse_count(modifier.substr(3), made.threads))
          return base::fail(base::Code::invalid, "--map-by {}: PE= takes a number of cores", text);
        made.threads_chosen = true;
      } else if (modifier == "hwtcpus") {
        made.by_hwthread = true;
      } else if (modifier != "oversubscribe" && modifier != "nooversubscribe" && modifier != "span") {
        return base::fail(base::Code::invalid,
                          "--map-by {}: unknown modifier '{}'; known: PE=n, HWTCPUS, OVERSUBSCRIBE", text,
                          modifier);
      }
    }
  }
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
  Level level{};
  if (!find_domain(small, level)) return unknown("--bind-to", text, small, {"none"});
  // "core:4" is MPICH's way to say that each rank gets four; words are Open MPI's.
  if (auto colon = text.find(':'); colon != std::string_view::npos) {
    std::string more = lowered(text.substr(colon + 1));
    unsigned threads = 0;
    if (level <= Level::core && parse_count(more, threads)) {
      request.threads = threads;
      request.threads_chosen = true;
    } else if (more != "overload-allowed" && more != "no-overload" && more != "if-supported") {
      return base::fail(base::Code::invalid,
                        "--bind-to {}: '{}' is no number of cores behind core or hwthread, and none of "
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

} // namespace near::topo
