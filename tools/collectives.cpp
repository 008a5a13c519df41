// `near info --coll`: which algorithm each collective would take, by size, and why.
#include "base/knob.h"
#include "base/text.h"
#include "choice/choice.h"
#include "segment/reserve.h"
#include "tools/commands.h"
#include "topo/slots.h"

#include <algorithm>
#include <cstdio>
#include <string>

namespace near::tools {

namespace {

using choice::Algorithm;
using choice::Collective;
using choice::Facts;

constexpr MPI_Count largest = 16 << 20;

/// 0 and the powers of two; 0 alone for a collective of whose sizes the choice knows nothing.
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

/// Neighbouring sizes with the same answer.
struct Range {
  MPI_Count from = 0, to = 0;
  std::vector<std::string> answer;
};

/// `answer` is a function of Facts.
template <class Answer>
std::vector<Range> ranges(const Facts& facts, Answer&& answer) {
  std::vector<Range> found;
  for (MPI_Count bytes : sizes_of(facts.collective)) {
    auto present = answer(with_bytes(facts, bytes));
    if (found.empty() || found.back().answer != present) found.push_back({bytes, bytes, present});
    found.back().to = bytes;
  }
  return found;
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

/// The algorithm's name, and whether it was named by the user.
std::string chosen_text(const Facts& facts) {
  const Algorithm& row = choice::choose(facts);
  return base::format("{}{}", row.name,
                      choice::named_algorithm(facts.collective) == &row ? " (NEAR_COLL)" : "");
}

/// The chosen algorithm, and why others were not taken: the one that NEAR_COLL names, and those above it.
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

/// A kind of call whose algorithm may differ from that of an ordinary blocking one.
struct Kind {
  const char* name;
  Facts facts;
};

std::vector<Kind> other_kinds(const Facts& blocking) {
  std::vector<Kind> kinds{{"nonblocking, persistent", nonblocking(blocking)},
                          {"MPI_IN_PLACE", blocking},
                          {"user-defined operation, commutative", blocking},
                          {"user-defined operation, not commutative", blocking},
                          {"communicator without an area", blocking},
                          {"kernel that lets no rank read another's memory", blocking}};
  kinds[1].facts.in_place = true;
  kinds[2].facts.elementwise = false;
  kinds[3].facts.elementwise = kinds[3].facts.commutative = false;
  kinds[4].facts.area = kinds[4].facts.reads_memory = false;
  kinds[5].facts.reads_memory = false;
  return kinds;
}

bool has_same_choice(const Facts& one, const Facts& other) {
  for (MPI_Count bytes : sizes_of(one.collective))
    if (&choice::choose(with_bytes(one, bytes)) != &choice::choose(with_bytes(other, bytes))) return false;
  return true;
}

void print_reasons(const Facts& blocking) {
  auto print_kind = [](const char* name, const Facts& facts) {
    std::printf("  %s\n", name);
    for (const auto& range : ranges(facts, chosen_and_reasons)) {
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
  for (const auto& kind : other_kinds(blocking))
    if (!has_same_choice(blocking, kind.facts)) print_kind(kind.name, kind.facts);
}

void print_table(const std::vector<Facts>& calls) {
  std::printf("\n%-20s  %-10s  %-18s  %-18s  %s\n", "collective", "bytes of", "size", "blocking",
              "nonblocking, persistent: if different");
  for (const auto& blocking : calls) {
    std::string name(choice::name_of(blocking.collective)), measure(choice::measure_of(blocking.collective));
    auto both = [](const Facts& facts) {
      return std::vector{chosen_text(facts), chosen_text(nonblocking(facts))};
    };
    for (const auto& range : ranges(blocking, both)) {
      std::string line = base::format("{:20}  {:10}  {:18}  {:18}  {}", name, measure,
                                      range_text(range, blocking.collective), range.answer[0],
                                      range.answer[0] == range.answer[1] ? "" : range.answer[1]);
      std::printf("%s\n", line.substr(0, line.find_last_not_of(' ') + 1).c_str());
      name.clear(), measure.clear();
    }
  }
  std::puts(
      "\nThis is for predefined operations and without MPI_IN_PLACE; --why shows other calls, and why the "
      "algorithms\nabove the chosen one are not taken.");
}

/// Reads "allreduce,broadcast", or "" for all. Prints what it does not know, and returns false.
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

} // namespace

int collectives(const CollectivesOptions& options) {
  std::vector<Collective> wanted;
  if (!read_collectives(options.names, wanted)) return 2;
  os::CpuSet affinity;
  if (!os::affinity_of(0, affinity).ok()) return complain();
  const unsigned processors =
      options.processors != 0 ? options.processors : topo::count_slots(affinity, os::read_limits()).count;
  const unsigned ranks = options.ranks != 0 ? options.ranks : processors;
  unsigned nodes = options.nodes;
  if (topo::Machine machine; nodes == 0) {
    if (!topo::read_machine(machine).ok()) return complain();
    nodes = machine.numas;
  }
  nodes = std::clamp(nodes, 1u, ranks);
  const int shared = ranks > processors ? static_cast<int>(processors) : 0;
  const bool area = ranks > 1 && ranks <= segment::most_area_ranks;
  const auto& knob = base::knobs().coll;
  if (!choice::configure(knob.text, shared).ok()) return complain();

  std::printf("%s on %s%s%s\narea in shared memory: %s (2 to %u ranks of one machine have one)\n"
              "%sNEAR_COLL: %s\n",
              base::counted(ranks, "rank").c_str(), base::counted(processors, "processor").c_str(),
              nodes > 1 ? base::format(" of {} NUMA nodes", nodes).c_str() : "",
              shared != 0 ? ", which they share" : "", area ? "yes" : "no", segment::most_area_ranks,
              area ? "ranks read each other's memory: yes (unless the kernel forbids it)\n" : "",
              base::printable(knob.text).c_str());
  std::vector<Facts> calls;
  for (auto collective : wanted)
    calls.push_back({.collective = collective,
                     .size = static_cast<int>(ranks),
                     .nodes = static_cast<int>(nodes),
                     .shared_processors = shared,
                     .area = area,
                     .reads_memory = area});
  if (!options.why) {
    print_table(calls);
    return 0;
  }
  std::puts("\nThe first algorithm that gives the right result for the call and is expected to be the "
            "fastest is taken.\n"
            "Kinds of calls that are not listed take what blocking ones take.");
  for (const auto& call : calls) print_reasons(call);
  return 0;
}

} // namespace near::tools
