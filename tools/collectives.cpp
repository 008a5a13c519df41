// `near info --coll`: the algorithm that each collective would use, by size, and why.
#include "base/knob.h"
#include "base/text.h"
#include "segment/reserve.h"
#include "tools/choices.h"
#include "tools/commands.h"
#include "topo/slots.h"

#include <algorithm>
#include <cstdio>
#include <string>

namespace near::tools {

namespace {

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
      print_line(line);
      name.clear(), measure.clear();
    }
  }
  std::puts(
      "\nThis is for predefined operations and without MPI_IN_PLACE; --why shows other calls, and why the "
      "algorithms\nabove the chosen one are not taken.");
}

} // namespace

int collectives(const CollectivesOptions& options) {
  if (!options.machines.empty()) return collectives_between_machines(options);
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
  for (const auto& call : calls) print_reasons(call, other_kinds(call), chosen_and_reasons);
  return 0;
}

} // namespace near::tools
