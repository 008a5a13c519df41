// See leaders.h.
#include "tools/leaders.h"

#include "base/text.h"
#include "pattern/program.h"
#include "tools/choices.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

namespace near::tools {

namespace {

using model::Job;
using pattern::RankList;
using pattern::Step;
using pattern::Verb;

/// "ranks 0-3", or "ranks 0, 3, 6".
std::string ranks_text(RankList ranks) {
  os::CpuSet set;
  for (int i = 0; i < ranks.size(); ++i) set.add(static_cast<unsigned>(ranks[i]));
  return (ranks.size() == 1 ? "rank " : "ranks ") + set.text();
}

/// Why this rank leads its machine.
std::string reason_text(const Job& job, int machine, int leader) {
  const RankList ranks = job.machines.ranks_of(machine);
  const model::Placement& placement = job.placement(machine);
  const auto at = static_cast<std::size_t>(ranks.find(leader));
  if (ranks.size() == 1) return "alone on its machine";
  if (placement.distances[at] == 0) return "the lowest; no distance from a NIC is known";
  std::string text = base::format("{} from {}", placement.distances[at], placement.nics[at]);
  if (at == 0) return text + ", and no other rank is nearer";
  return text + base::format(", rank {} {}", ranks[0],
                             placement.distances[0] == 0
                                 ? std::string("unknown")
                                 : base::format("{} from {}", placement.distances[0], placement.nics[0]));
}

void print_elections(const Job& job) {
  std::printf("\n%-9s %-14s %-22s %-8s %s\n", "machine", "ranks", "description", "leader",
              "why: its distance");
  for (int machine = 0; machine < job.machines.count(); ++machine) {
    const int leader = job.machines.leaders()[machine];
    const std::string name = std::filesystem::path(job.kind(machine).file).stem().string();
    print_line(base::format("{:<9} {:14} {:22} {:8} {}", machine, ranks_text(job.machines.ranks_of(machine)),
                            name.empty() ? "-" : base::printable(name), base::format("rank {}", leader),
                            reason_text(job, machine, leader)));
  }
}

/// "4 KiB", or the exact number if it is not a multiple.
std::string bytes_text(MPI_Count bytes) {
  const bool even = bytes >= 1 << 20 ? bytes % (1 << 20) == 0 : bytes % (1 << 10) == 0;
  return even ? size_text(bytes) : base::format("{} B", bytes);
}

/// The steps of a rank in words: "receives from 0; sends to 6, 5". Transfers of the whole vector are shown without a length.
class Words {
public:
  explicit Words(MPI_Count whole) : whole_(whole) {}
  void add(const Step& step) {
    switch (step.verb) {
    case Verb::send: say("sends", "to", step.out, step.to); break;
    case Verb::receive: say("receives", "from", step.in, step.from); break;
    case Verb::exchange: say("exchanges", "with", step.out, step.to); break;
    case Verb::start_receive: ++received_, from_ = step.from; break;
    case Verb::start_send: ++sent_, to_ = step.to; break;
    case Verb::ring:
      append(base::format("{} rounds of a ring{}: sends {} to {}, receives as much from {}", step.count,
                          step.reduces ? ", adding" : "", bytes_text(step.out), step.to, step.from));
      break;
    case Verb::add:
    case Verb::finish:
    case Verb::on_machine: break;
    }
  }
  std::string text() {
    if (received_ > 0) append(base::format("receives {} from {}", base::counted(received_, "chunk"), from_));
    if (sent_ > 0) append(base::format("sends {} to {}", base::counted(sent_, "chunk"), to_));
    return text_.empty() ? "nothing" : text_;
  }

private:
  void append(const std::string& words) { text_ += (text_.empty() ? "" : "; ") + words; }
  /// Names only the rank if the words before it would be the same.
  void say(const char* verb, const char* preposition, MPI_Count bytes, int rank) {
    const std::string length = bytes == whole_ ? "" : " " + bytes_text(bytes);
    const std::string start = base::format("{}{} {} ", verb, length, preposition);
    if (start == last_) {
      text_ += base::format(", {}", rank);
      return;
    }
    append(start + std::to_string(rank));
    last_ = start;
  }

  MPI_Count whole_;
  std::string text_, last_;
  unsigned received_ = 0, sent_ = 0;
  int from_ = -1, to_ = -1;
};

/// What happens within each kind of machine.
void print_phases(const Job& job, const Facts& call) {
  std::vector<pattern::Here> shown;
  for (std::size_t i = 0; i < job.kinds.size(); ++i) {
    const pattern::Here here{.ranks = job.kinds[i].ranks,
                             .nodes = static_cast<int>(job.placements[i].node_count)};
    if (here.ranks == 1 || std::find(shown.begin(), shown.end(), here) != shown.end()) continue;
    shown.push_back(here);
    std::string text;
    for (const pattern::Phase& phase : phases_of(call, here)) {
      text += text.empty() ? "" : ", then ";
      if (phase.chain)
        text += "chunks along a chain of the leaders, while each passes to its ranks";
      else if (phase.among_leaders)
        text +=
            base::format("leaders {} {}", choice::name_of(phase.facts.collective), chosen_text(phase.facts));
      else
        text += base::format("{} {}{}", choice::name_of(phase.facts.collective), chosen_text(phase.facts),
                             phase.times > 1 ? base::format(" {} times", phase.times) : "");
    }
    std::printf("on a machine with %s on %s: %s\n",
                base::counted(static_cast<unsigned>(here.ranks), "rank").c_str(),
                base::counted(static_cast<unsigned>(here.nodes), "node").c_str(), text.c_str());
  }
}

void print_order(const Job& job, const Facts& call, int root) {
  const bool rooted = choice::has_root(call.collective);
  const std::vector<int> leading = job.machines.leaders_with(root);
  const RankList leaders = rooted ? RankList::of(leading) : job.machines.leaders();
  const bool levels = choice::has_levels(choice::choose(call));
  std::printf("\n%s of %s%s: %s\n", std::string(choice::name_of(call.collective)).c_str(),
              bytes_text(call.bytes).c_str(), rooted ? base::format(" from rank {}", root).c_str() : "",
              chosen_text(call).c_str());
  if (levels) print_phases(job, call);
  if (levels && rooted && job.machines.leaders().find(root) < 0)
    std::printf("rank %d leads its machine in this call, since it is the root\n", root);
  for (int i = 0; i < (levels ? leaders.size() : call.size); ++i) {
    const int rank = levels ? leaders[i] : i;
    Words words(call.bytes);
    for (const Step& step : program_of(call, job.machines, leaders, rank, root)) words.add(step);
    std::printf("  %s: %s\n", base::format("rank {}", rank).c_str(), words.text().c_str());
  }
}

} // namespace

void print_leaders(const CollectivesOptions& options, const Job& job,
                   const std::vector<choice::Collective>& wanted) {
  print_elections(job);
  for (const Collective collective : wanted) {
    if (!pattern::has_program(collective)) continue;
    Facts call{.collective = collective,
               .bytes = static_cast<MPI_Count>(options.bytes),
               .size = job.machines.size()};
    pattern::add_machines(call, job.machines);
    print_order(job, call, static_cast<int>(options.root));
  }
}

} // namespace near::tools
