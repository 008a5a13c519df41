// `near info --coll --machines`: the algorithms of collectives in a job on several machines, in which phases, and why.
#include "base/knob.h"
#include "base/text.h"
#include "model/job.h"
#include "os/affinity.h"
#include "pattern/levels.h"
#include "tools/choices.h"
#include "tools/commands.h"
#include "tools/leaders.h"
#include "topo/slots.h"

#include <algorithm>
#include <cstdio>
#include <map>

namespace near::tools {

namespace {

using model::Job;
using pattern::Here;
using pattern::Phase;

/// The different kinds of machines of a job, as far as the choices on them differ.
std::vector<Here> kinds_of(const Job& job) {
  std::vector<Here> kinds;
  for (std::size_t i = 0; i < job.kinds.size(); ++i) {
    const Here here{.ranks = job.kinds[i].ranks, .nodes = static_cast<int>(job.placements[i].node_count)};
    if (here.ranks > 1 && std::find(kinds.begin(), kinds.end(), here) == kinds.end()) kinds.push_back(here);
  }
  return kinds;
}

std::string here_text(const Here& here) {
  return base::counted(static_cast<unsigned>(here.ranks), "rank") +
         (here.nodes > 1 ? base::format(" on {} nodes", here.nodes) : "");
}

std::string across_text(const Phase& phase) {
  if (phase.chain) return "leaders pass chunks along a chain";
  return base::format("leaders {} {}", choice::name_of(phase.facts.collective), chosen_text(phase.facts));
}

/// The algorithm of a phase on each kind of machine: "broadcast shared",
/// or "broadcast shared (2 ranks), shared_by_node (8 ranks on 2 nodes)".
std::string here_texts(const Facts& call, const std::vector<Here>& kinds, std::size_t index) {
  std::vector<std::pair<std::string, std::string>> chosen; // the algorithm, and where it is used
  std::string collective;
  for (const Here& here : kinds) {
    const Facts facts = phases_of(call, here)[index].facts;
    collective = choice::name_of(facts.collective);
    const std::string name = chosen_text(facts);
    auto found =
        std::find_if(chosen.begin(), chosen.end(), [&](const auto& each) { return each.first == name; });
    if (found == chosen.end())
      chosen.emplace_back(name, here_text(here));
    else
      found->second += "; " + here_text(here);
  }
  std::string text;
  for (const auto& [name, where] : chosen) {
    text.append(text.empty() ? collective + " " : ", ").append(name);
    if (chosen.size() > 1) text.append(" (").append(where).append(")");
  }
  return text;
}

/// The algorithm of a call and, if it has levels, those of its phases.
std::string levels_text(const Facts& call, const std::vector<Here>& kinds) {
  std::string text = chosen_text(call);
  if (!choice::has_levels(choice::choose(call))) return text;
  const std::vector<Phase> phases = phases_of(call, kinds.front());
  for (std::size_t i = 0; i < phases.size(); ++i)
    text += (i == 0 ? ": " : ", ") +
            (phases[i].among_leaders ? across_text(phases[i]) : here_texts(call, kinds, i));
  return text;
}

std::vector<std::string> levels_and_reasons(const Facts& call, const std::vector<Here>& kinds) {
  std::vector<std::string> lines = chosen_and_reasons(call);
  lines.front() = levels_text(call, kinds);
  if (!choice::has_levels(choice::choose(call))) return lines;
  auto add = [&](const std::string& title, const Facts& facts) {
    std::vector<std::string> reasons = chosen_and_reasons(facts);
    lines.push_back(base::format("  {}, {}: {}", title, choice::name_of(facts.collective), reasons.front()));
    for (std::size_t i = 1; i < reasons.size(); ++i) lines.push_back("  " + reasons[i]);
  };
  const std::vector<Phase> first = phases_of(call, kinds.front());
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (first[i].chain)
      lines.emplace_back("  among the leaders: a chain, which is shorter than a tree for so many chunks");
    else if (first[i].among_leaders)
      add("among the leaders", first[i].facts);
    else
      for (const Here& here : kinds)
        add("among " + here_text(here) + " of a machine", phases_of(call, here)[i].facts);
  }
  return lines;
}

std::vector<Kind> other_kinds_between_machines(const Facts& blocking) {
  std::vector<Kind> kinds{{"nonblocking, persistent", nonblocking(blocking)},
                          {"MPI_IN_PLACE", blocking},
                          {"user-defined operation, commutative", blocking},
                          {"user-defined operation, not commutative", blocking}};
  kinds[1].facts.in_place = true;
  kinds[2].facts.elementwise = false;
  kinds[3].facts.elementwise = kinds[3].facts.commutative = false;
  return kinds;
}

void print_table(const std::vector<Facts>& calls, const std::vector<Here>& kinds) {
  std::printf("\n%-20s  %-10s  %-18s  %s\n", "collective", "bytes of", "size",
              "algorithm, and those of its phases");
  for (const Facts& call : calls) {
    std::string name(choice::name_of(call.collective)), measure(choice::measure_of(call.collective));
    auto both = [&](const Facts& facts) {
      return std::vector{levels_text(facts, kinds), levels_text(nonblocking(facts), kinds)};
    };
    for (const auto& range : ranges(call, both)) {
      print_line(base::format("{:20}  {:10}  {:18}  {}", name, measure, range_text(range, call.collective),
                              range.answer[0]));
      if (range.answer[0] != range.answer[1])
        print_line(base::format("{:54}nonblocking: {}", "", range.answer[1]));
      name.clear(), measure.clear();
    }
  }
  std::puts(
      "\nThis is for predefined operations and without MPI_IN_PLACE; --why shows other calls, and why the "
      "algorithms\nabove the chosen one are not taken. --leaders shows who sends to whom.");
}

unsigned processors_of(const CollectivesOptions& options) {
  os::CpuSet affinity;
  if (options.processors != 0 || !os::affinity_of(0, affinity).ok()) return std::max(options.processors, 1u);
  return topo::count_slots(affinity, os::read_limits()).count;
}

} // namespace

int collectives_between_machines(const CollectivesOptions& options) {
  std::vector<Collective> wanted;
  if (!read_collectives(options.names, wanted)) return 2;
  const model::MachinesRequest request{
      .text = options.machines, .ranks = options.ranks, .ranks_each = processors_of(options)};
  std::vector<model::MachineKind> given;
  if (!parse_machines(request, given).ok()) {
    complain();
    return 2;
  }
  std::optional<Job> job;
  if (!imagine(std::move(given), options.turns, std::max(options.nodes, 1u), job).ok() || !job.has_value())
    return complain();
  if (options.root >= static_cast<std::uint32_t>(job->machines.size())) {
    std::fprintf(stderr, "near: --root: there is no rank %u among %d ranks\n", options.root,
                 job->machines.size());
    return 2;
  }
  const auto& knob = base::knobs().coll;
  // Between machines the choice does not depend on whether ranks share processors (src/mpi/life.cpp).
  if (!choice::configure(knob.text, 0).ok()) return complain();

  std::printf("%s, numbered %s\nNEAR_COLL: %s\n", machines_text(job->kinds).c_str(),
              options.turns ? "one machine after the other, in turns" : "machine by machine",
              base::printable(knob.text).c_str());
  if (options.leaders) {
    print_leaders(options, *job, wanted);
    return 0;
  }
  std::vector<Facts> calls;
  for (Collective collective : wanted) {
    Facts& facts = calls.emplace_back(Facts{.collective = collective, .size = job->machines.size()});
    pattern::add_machines(facts, job->machines);
  }
  const std::vector<Here> kinds = kinds_of(*job);
  if (!options.why) {
    print_table(calls, kinds);
    return 0;
  }
  std::puts(
      "\nThe first algorithm that gives the right result for the call and is expected to be the fastest is "
      "taken,\nin each phase anew. Kinds of calls that are not listed take what blocking ones take.");
  for (const Facts& call : calls)
    print_reasons(call, other_kinds_between_machines(call),
                  [&](const Facts& facts) { return levels_and_reasons(facts, kinds); });
  return 0;
}

} // namespace near::tools
