// The supervisor's dealings with single ranks: start, watch, mark dead, judge.
#include "launch/supervisor.h"

#include "base/log.h"
#include "boot/boot.h"
#include "launch/advice.h"
#include "launch/keys.h"
#include "launch/pattern.h"
#include "os/clock.h"
#include "os/futex.h"
#include "os/memory.h"
#include "profile/profile.h"
#include "queue/doorbell.h"
#include "segment/machine.h"

#include <algorithm>
#include <unistd.h>

namespace near::launch {
namespace {

// What a process that called MPI_Abort has for flushing its output before SIGTERM.
constexpr std::uint64_t abort_grace_ns = 200'000'000;
// What a program left behind has this long to call MPI_Init, if no other rank has: then the job is an MPI
// program. If it is none, what is left is a background process, with which nobody waits.
constexpr std::uint64_t left_grace_ns = 2'000'000'000;
// No process is left, and what the ranks wrote says that some go on: they are given so long all the same.
constexpr std::uint64_t lost_grace_ns = 500'000'000;
// A job that lasts so long has time for a look at the machine's cards.
constexpr std::uint64_t until_cards_ns = 300'000'000;
// A rank is looked at for another MPI's library so long after the start, then at twice the time, and so on.
constexpr std::uint64_t until_foreign_ns = 30'000'000;
// How many ends of children that were no rank's are remembered: a wrapper's MPI process for each rank, and
// some background processes that end between it and the wrapper.
constexpr std::size_t strangers_of_one_rank = 2;
constexpr std::size_t most_strangers_of_others = 64;

// SYNC: rank-phase. Release: whoever sees `dead` may read how.
void store_phase(const segment::Segment& segment, unsigned rank, segment::Phase phase) {
  segment.entry(rank).phase.store_release(static_cast<std::uint32_t>(phase));
}

/// How the process ends its job, if it does; what is neither is damage, and no reason to end it.
segment::Abort abort_of(const segment::RankEntry& entry) {
  // SYNC: abort — the code was written before.
  auto how = static_cast<segment::Abort>(entry.aborting.load_acquire());
  bool known = how == segment::Abort::called || how == segment::Abort::failed;
  return known ? how : segment::Abort::none;
}

struct Waker {
  static void wake(std::uint32_t* word) { os::futex_wake_all(word); }
};
using Doorbell = queue::DoorbellProtocol<base::Hardware, Waker>;

segment::NearestNodes nearest_nodes(const topo::Machine& machine, const os::CpuSet& cpus) {
  static constexpr std::pair<segment::Tier, topo::Tier> kinds[] = {{segment::Tier::dram, topo::Tier::dram},
                                                                   {segment::Tier::hbm, topo::Tier::hbm},
                                                                   {segment::Tier::slow, topo::Tier::slow}};
  segment::NearestNodes nearest;
  for (auto [kind, its] : kinds)
    nearest.of[static_cast<std::size_t>(kind)] =
        static_cast<std::int16_t>(topo::nearest_node(machine, cpus, its));
  return nearest;
}

std::uint32_t kind_of(topo::Tier tier) {
  switch (tier) {
  case topo::Tier::dram: return static_cast<std::uint32_t>(segment::Tier::dram);
  case topo::Tier::hbm: return static_cast<std::uint32_t>(segment::Tier::hbm);
  case topo::Tier::slow: return static_cast<std::uint32_t>(segment::Tier::slow);
  case topo::Tier::device: break;
  }
  return static_cast<std::uint32_t>(segment::Tier::count);
}

/// Tells ranks and tools of the machine. They do without where there is no room for it: false.
bool publish(const topo::Machine& machine, segment::Segment& segment) {
  segment::Machine tables;
  auto nodes = static_cast<std::uint32_t>(machine.nodes.size());
  if (!segment::make_machine(segment, machine.cpus().count(), nodes, tables).ok()) {
    base::log(base::Level::debug, "{}", base::failure_text());
    return false;
  }
  auto processor = tables.processors.begin();
  for (const auto& core : machine.cores)
    for (unsigned number : core.cpus.members()) {
      auto narrow = [](unsigned value) { return static_cast<std::uint16_t>(value); };
      *processor++ = {narrow(number),  narrow(core.index), narrow(core.l2),
                      narrow(core.l3), narrow(core.numa),  narrow(core.package)};
    }
  for (std::size_t i = 0; i < machine.nodes.size(); ++i) {
    const auto& node = machine.nodes[i];
    tables.nodes[i] = {node.bytes, static_cast<std::int32_t>(node.number), kind_of(node.tier)};
    for (std::size_t other = 0; other < machine.nodes.size(); ++other)
      tables.distances[i * machine.nodes.size() + other] = static_cast<std::uint16_t>(
          machine.distance(static_cast<unsigned>(i), static_cast<unsigned>(other)));
  }
  return true;
}

/// `published` is what publish() was given.
void publish_cards(const topo::Machine& machine, const topo::Machine& published,
                   const segment::Segment& segment) {
  std::vector<segment::MachineCard> cards;
  for (const auto& card : machine.cards) {
    segment::MachineCard told{};
    card.name.copy(told.name, sizeof told.name - 1);
    told.near = profile::place_of(machine, card.near);
    told.network = card.kind == topo::Card::Kind::network ? 1 : 0;
    told.fast = card.fast ? 1 : 0;
    cards.push_back(told);
  }
  segment::add_cards(segment, published.cpus().count(), static_cast<std::uint32_t>(published.nodes.size()),
                     cards);
}

std::string short_name(const std::string& program) {
  auto slash = program.rfind('/');
  return slash == std::string::npos ? program : program.substr(slash + 1);
}

} // namespace

base::Result Supervisor::start_ranks() {
  const auto& application_of = mission_.job.application_of;
  ranks_.resize(application_of.size());
  if (publish(mission_.job.machine, segment_)) cards_ns_ = os::monotonic_ns() + until_cards_ns;
  for (unsigned rank = 0; rank < ranks_.size(); ++rank) {
    const auto& place = mission_.job.plan.places[rank];
    auto& entry = segment_.entry(rank);
    entry.application = application_of[rank];
    entry.first_cpu = place.cpus.first();
    entry.place =
        profile::place_of(mission_.job.machine, place.cpus.empty() ? mission_.job.slots.allowed : place.cpus);
    entry.nearest = nearest_nodes(mission_.job.machine, place.cpus);
    // Before any rank runs: one that is early must not overtake what is written here.
    store_phase(segment_, rank, segment::Phase::launched);
  }
  for (unsigned rank = 0; rank < ranks_.size(); ++rank) NEAR_TRY(start_rank(rank));
  started_ns_ = os::monotonic_ns();
  foreign_ns_ = started_ns_ + until_foreign_ns;
  tell_front();
  return input_.start();
}

/// The table that debuggers read is in the process that the user sees.
void Supervisor::tell_front() {
  std::vector<os::Pid> pids;
  for (const auto& rank : ranks_) pids.push_back(rank.pid);
  (void)os::write_all(mission_.pids_to, reinterpret_cast<const char*>(pids.data()),
                      pids.size() * sizeof(os::Pid));
  os::close_descriptor(mission_.pids_to);
}

// To find them takes milliseconds, which a short job should not pay.
void Supervisor::tell_cards() {
  topo::Machine machine;
  if (topo::read_machine(machine, true).ok()) publish_cards(machine, mission_.job.machine, segment_);
}

/// Gives the rank its standard streams. `piped` says which of them it got an end of a pipe for, to be closed
/// once it has been started.
base::Result Supervisor::connect(unsigned rank, os::Launch& launch, Piped& piped) {
  const auto& command = mission_.job.command;
  launch.input = null_input_;
  if (command.input.has(rank)) {
    launch.input = 0;
    piped.input = command.input.several();
    if (piped.input) NEAR_TRY(input_.add(rank, launch.input));
  }
  // Only the terminal's foreground group may read from it.
  launch.own_group = !(launch.input == 0 && mission_.terminal_input);
  launch.join_group = launch.own_group ? 0 : mission_.front_group;

  auto prefix = expand_pattern(command.prefix, rank);
  // A single rank has nobody to mix with: it gets the real descriptors, terminal and all.
  bool direct = ranks_.size() == 1 && prefix.empty() && !command.timestamps && !command.merge_output;
  auto give = [&](Output::Which which, const std::string& pattern, int& descriptor,
                  bool& is_pipe) -> base::Result {
    int file = -1;
    if (!pattern.empty()) NEAR_TRY(files_.open(pattern, rank, file));
    is_pipe = file >= 0 ? command.copy_output : !direct;
    if (is_pipe)
      return output_.add(which, prefix, {file, file < 0 ? std::string() : expand_pattern(pattern, rank)},
                         descriptor);
    if (file >= 0) descriptor = file;
    return {};
  };
  NEAR_TRY(give(Output::standard_output, command.output_file, launch.output, piped.output));
  if (!command.output_file.empty() && command.merge_output) {
    launch.error = launch.output;
    return {};
  }
  return give(Output::standard_error, command.error_file, launch.error, piped.error);
}

base::Result Supervisor::start_rank(unsigned rank) {
  const auto& job = mission_.job;
  const auto& application = job.command.applications[job.application_of[rank]];
  const auto& place = job.plan.places[rank];

  boot::Start start;
  start.singleton = false;
  start.segment_descriptor = mission_.segment_descriptor;
  NEAR_TRY(os::identify(mission_.segment_descriptor, start.segment));
  start.launcher = mission_.front;
  start.slot = rank;
  start.size = static_cast<std::uint32_t>(ranks_.size());
  start.application = job.application_of[rank];
  start.binding = place.text;

  os::Launch launch;
  launch.arguments = arguments_for(job.command, application, rank);
  launch.program = launch.arguments[0];
  launch.environment = environment_for(job.command, application, mission_.environment);
  if (!place.cpus.empty()) {
    auto places = planning::openmp_places(job.machine, place);
    // One place says nothing that the binding does not.
    if (places.find("},{") != std::string::npos) give_openmp_places(places, launch.environment);
  }
  for (auto& row : boot::write_environment(start)) launch.environment.push_back(std::move(row));
  boot::tell_place_in_job(start, launch.environment);
  launch.directory = application.directory;
  launch.keep = {mission_.segment_descriptor, segment_.huge_descriptor()};
  launch.cpus = place.cpus;
  launch.local_memory = !os::has_memory_policy(); // `numactl mpiexec ...` means the ranks
  Piped piped;
  NEAR_TRY(connect(rank, launch, piped));
  if (job.command.report_bindings) output_.say(base::format("mpiexec: rank {}: {}\n", rank, place.text));
  base::Result started = os::start_process(launch, ranks_[rank].pid);
  if (piped.input) os::close_descriptor(launch.input);
  if (piped.output) os::close_descriptor(launch.output);
  if (piped.error) os::close_descriptor(launch.error);
  if (!started.ok())
    base::set_failure_text(std::string(base::failure_text()) + advice_on(launch.program, launch.directory));
  NEAR_TRY(started);
  segment_.entry(rank).pid.store_relaxed(static_cast<std::uint32_t>(ranks_[rank].pid));
  ++living_;
  if (job.command.verbose)
    output_.say(base::format("mpiexec: rank {}: pid {}: {}\n", rank, ranks_[rank].pid, launch.program));
  return {};
}

/// Where the rank stands. Its word in the rank table is believed only where it comes after what stood there
/// before.
segment::Phase Supervisor::phase_of(unsigned rank) {
  using segment::Phase;
  auto& at = ranks_[rank];
  // SYNC: rank-phase. Acquire: what the process wrote before its phase (its region, its last messages) is
  // seen.
  auto told = static_cast<Phase>(segment_.entry(rank).phase.load_acquire());
  bool ready = told == Phase::ready && at.phase == Phase::launched;
  bool finalized = told == Phase::finalized && (at.phase == Phase::launched || at.phase == Phase::ready);
  if (!ready && !finalized) return at.phase;
  if (at.phase == Phase::launched) {
    auto number = static_cast<os::Pid>(base::load_once(segment_.control(rank).pid));
    at.number = number > 0 ? number : at.pid;
  }
  return at.phase = told;
}

/// Whether the rank has a region that may be read.
bool Supervisor::has_region(unsigned rank) {
  auto phase = phase_of(rank);
  return (phase == segment::Phase::dead ? ranks_[rank].died_in : phase) != segment::Phase::launched;
}

void Supervisor::collect_endings() {
  os::Ending ending;
  while (os::reap(ending, no_children_)) endings_.push_back(ending);
}

void Supervisor::reap() {
  collect_endings();
  while (!endings_.empty()) {
    os::Ending ending = endings_.front();
    endings_.pop_front();
    bool of_rank = false;
    for (unsigned rank = 0; rank < ranks_.size(); ++rank) {
      if (!is_end_of(rank, ending.pid)) continue;
      of_rank = true;
      rank_ended(rank, ending);
    }
    if (of_rank) continue;
    strangers_.push_back(ending);
    if (strangers_.size() > strangers_of_one_rank * ranks_.size() + most_strangers_of_others)
      strangers_.pop_front();
  }
  look_for_left_processes();
  no_children_ = no_children_ || (out_of_reach_ && living_ == 0);
  if (living_ > 0 && living_ < ranks_.size()) look_for_missing_init();
  if (living_ == 0 && stage_ == Stage::running) {
    // All is well; what the ranks left running is not part of the job any more.
    stage_ = Stage::ending;
    if (!no_children_) ask_ns_ = os::monotonic_ns();
  }
  if (no_children_ && stage_ == Stage::ending) {
    stage_ = Stage::draining;
    ask_ns_ = kill_ns_ = timeout_ns_ = cards_ns_ = foreign_ns_ = 0; // what is due stays so: no sleep any more
  }
}

/// The process whose end is the rank's: the one that was started, or the MPI process once that has ended
/// well.
bool Supervisor::is_end_of(unsigned rank, os::Pid pid) {
  const auto& at = ranks_[rank];
  if (at.ended) return false;
  if (!at.wrapper_ended && at.left_ns == 0) return at.pid == pid;
  if (at.inner != 0) return at.inner == pid;
  // It may have come and gone between two looks.
  return has_region(rank) && at.number == pid;
}

void Supervisor::rank_ended(unsigned rank, os::Ending ending) {
  auto& at = ranks_[rank];
  look_at(rank);
  bool may_have_left = ending.raw == 0 && ending.pid == at.pid && at.left_ns == 0;
  if (may_have_left && phase_of(rank) == segment::Phase::launched && has_left_processes(rank)) {
    at.left_ns = os::monotonic_ns();
    return;
  }
  if (may_have_left && has_region(rank)) {
    // Did it leave its MPI process behind? Then the end of that counts, whether it is still to come or was
    // the first of the two. What ended before its wrapper is our child since the wrapper's end: there to be
    // collected now, unless the wrapper had waited for it.
    collect_endings();
    if (const auto* seen = seen_ending_of_inner(rank)) {
      ending = *seen;
    } else if (at.inner_watch >= 0 || watch_inner(rank)) {
      at.wrapper_ended = true;
      return;
    }
  }
  auto phase = phase_of(rank);
  at.ended = true;
  at.status = ending.status();
  if (living_-- == ranks_.size() && foreign_ns_ != 0)
    foreign_ns_ = os::monotonic_ns(); // before more are gone
  Verdict verdict = verdict_on(rank, ending);
  if (phase == segment::Phase::ready || verdict.reason != Reason::none) mark_dead(rank, ending.raw);
  if (verdict.reason != Reason::none) decide(std::move(verdict));
  // The rank that called MPI_Abort has flushed its output: no reason to wait longer.
  if (at.aborting && ask_ns_ != 0) ask_ns_ = os::monotonic_ns();
}

/// How the MPI process of a wrapper ended, if that is known by now.
const os::Ending* Supervisor::seen_ending_of_inner(unsigned rank) {
  const auto& at = ranks_[rank];
  if (!has_region(rank)) return nullptr;
  auto pid = at.inner != 0 ? at.inner : at.number;
  if (std::any_of(ranks_.begin(), ranks_.end(), [pid](const Rank& other) { return other.pid == pid; }))
    return nullptr;
  for (const auto* list : {&endings_, &strangers_})
    for (auto seen = list->rbegin(); seen != list->rend(); ++seen)
      if (seen->pid == pid) return &*seen;
  // A wrapper that waited for it, and ended well after its MPI_Finalize, has said that all is well.
  bool told = at.inner_ending.pid != 0 && phase_of(rank) == segment::Phase::ready;
  return told ? &at.inner_ending : nullptr;
}

bool Supervisor::has_left_processes(unsigned rank) const {
  auto marks = boot::marks_of(mission_.front, rank);
  for (os::Pid pid : os::descendants_of(getpid()))
    if (os::started_with(pid, marks)) return true;
  return false;
}

void Supervisor::look_for_left_processes() {
  bool someone_is_ready = false;
  for (unsigned rank = 0; rank < ranks_.size(); ++rank)
    someone_is_ready = someone_is_ready || has_region(rank);
  for (unsigned rank = 0; rank < ranks_.size(); ++rank) {
    auto& at = ranks_[rank];
    if (at.left_ns == 0 || at.ended || phase_of(rank) == segment::Phase::ready) continue;
    bool patient = someone_is_ready || os::monotonic_ns() < at.left_ns + left_grace_ns;
    if (stage_ == Stage::running && patient && has_left_processes(rank)) continue;
    // The MPI process may have come and gone since its phase was looked at.
    collect_endings();
    if (const auto* seen = seen_ending_of_inner(rank)) {
      rank_ended(rank, *seen);
      continue;
    }
    if (phase_of(rank) == segment::Phase::ready) continue;
    at.ended = true;
    --living_;
  }
}

Verdict Supervisor::verdict_on(unsigned rank, const os::Ending& ending) {
  const auto& job = mission_.job;
  Verdict verdict;
  verdict.rank = rank;
  verdict.ending = ending;
  verdict.program = short_name(job.command.applications[job.application_of[rank]].arguments[0]);
  verdict.status = ending.status();
  verdict.was_in_mpi = has_region(rank);
  if (verdict.was_in_mpi) verdict.activity = segment::activity_of(segment_, rank);
  auto phase = phase_of(rank);
  auto& entry = segment_.entry(rank);
  if (auto how = abort_of(entry); how != segment::Abort::none) {
    verdict.reason = Reason::aborted;
    verdict.told = how == segment::Abort::failed;
    verdict.abort_code = entry.abort_code.load_relaxed();
    verdict.status = boot::exit_status_of_abort(verdict.abort_code);
  } else if (ending.by_signal()) {
    verdict.reason = Reason::signalled;
    auto now = os::read_memory_kills();
    verdict.kills = {now.group - kills_before_.group, now.machine - kills_before_.machine};
  } else if (ending.status() != 0) {
    verdict.reason = Reason::failed;
  } else if (phase == segment::Phase::ready) {
    verdict.reason = Reason::unfinalized;
    verdict.status = 1;
  }
  return verdict;
}

void Supervisor::mark_dead(unsigned rank, int raw_status) {
  auto& at = ranks_[rank];
  at.died_in = phase_of(rank);
  at.phase = segment::Phase::dead;
  auto& entry = segment_.entry(rank);
  entry.exit_status.store_relaxed(static_cast<std::uint32_t>(raw_status));
  entry.died_in.store_relaxed(static_cast<std::uint32_t>(at.died_in));
  store_phase(segment_, rank, segment::Phase::dead);
  auto& header = segment_.header();
  // SYNC: rank-phase. Release: who sees the new epoch sees the phase that raised it.
  header.epoch.add_acq_rel(1);
  os::futex_wake_all(header.epoch.address());
  os::futex_wake_all(header.ready.address());
  for (unsigned other = 0; other < ranks_.size(); ++other) {
    if (other == rank || phase_of(other) != segment::Phase::ready) continue;
    Doorbell::announce(segment_.control(other).doorbell.bell);
  }
}

void Supervisor::look() {
  looked_ns_ = os::monotonic_ns();
  for (unsigned rank = 0; rank < ranks_.size(); ++rank)
    if (!ranks_[rank].ended) look_at(rank);
  look_for_left_processes();
  look_for_missing_init();
  look_for_stall();
  look_for_held_input();
}

void Supervisor::look_at(unsigned rank) {
  auto& at = ranks_[rank];
  if (at.pid == 0 || !has_region(rank)) return;
  if (!at.ended && at.inner == 0 && at.inner_gone_ns == 0) look_for_inner(rank);
  if (!at.aborting && !at.ended && abort_of(segment_.entry(rank)) != segment::Abort::none) {
    at.aborting = true;
    decide(verdict_on(rank, {at.pid, 0}), abort_grace_ns);
  }
}

// The process that called MPI_Init may be a child of the one that was started: then its end is what counts.
void Supervisor::look_for_inner(unsigned rank) {
  auto& at = ranks_[rank];
  if (phase_of(rank) != segment::Phase::ready || at.number == at.pid) return;
  if (!os::processes_are_listed()) return; // the wrapper's end is all that can be seen
  if (watch_inner(rank) || phase_of(rank) != segment::Phase::ready) return;
  at.inner_gone_ns = os::monotonic_ns(); // it ended before it was ever seen
  int watch = -1;
  if (!os::watch_process(at.number, watch).ok()) return;
  if (os::Ending ending; os::ending_of(at.number, watch, ending)) at.inner_ending = ending;
  os::close_descriptor(watch);
}

/// Finds the living MPI process that the rank's wrapper started, and watches it.
bool Supervisor::watch_inner(unsigned rank) {
  auto& at = ranks_[rank];
  if (at.inner != 0 || at.number == at.pid || !os::processes_are_listed()) return false;
  // By its descent, since the number alone may be one of another process namespace; below the supervisor if
  // its wrapper has gone already.
  os::Pid found = os::find_descendant(at.pid, at.number);
  if (found == 0) {
    found = os::find_descendant(getpid(), at.number);
    for (const auto& other : ranks_)
      if (!other.ended && os::descends_from(found, other.pid)) found = 0;
  }
  if (found == 0 || !os::watch_process(found, at.inner_watch).ok()) return false;
  at.inner = found;
  (void)poller_.add(at.inner_watch, key_inner + rank);
  return true;
}

void Supervisor::look_for_missing_init() {
  if (decided_) return;
  unsigned without = 0;
  bool waiting = false, gone = false;
  for (unsigned rank = 0; rank < ranks_.size(); ++rank) {
    auto phase = phase_of(rank);
    waiting = waiting || (phase == segment::Phase::ready && !ranks_[rank].ended);
    if (!gone && ranks_[rank].ended && phase == segment::Phase::launched) {
      gone = true;
      without = rank;
    }
  }
  if (!waiting || !gone) return;
  Verdict verdict = verdict_on(without, {ranks_[without].pid, 0});
  verdict.reason = Reason::no_init;
  verdict.status = 1;
  decide(std::move(verdict));
}

/// No process is left below this one, so every rank has ended, whatever the segment says of MPI processes
/// that wrappers have started.
void Supervisor::look_for_lost_ranks(std::uint64_t now_ns) {
  if (!no_children_ || living_ == 0 || decided_ || stage_ != Stage::running) {
    lost_ns_ = 0;
    return;
  }
  if (lost_ns_ == 0) lost_ns_ = now_ns;
  if (now_ns < lost_ns_ + lost_grace_ns) return;
  auto lost = std::find_if(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return !rank.ended; });
  auto rank = static_cast<unsigned>(lost - ranks_.begin());
  Verdict verdict = verdict_on(rank, {lost->pid, 0});
  verdict.reason = Reason::vanished;
  verdict.text = "has ended too, and nobody has told how";
  verdict.status = 1;
  decide(std::move(verdict));
}

void Supervisor::inner_ended(unsigned rank) {
  auto& at = ranks_[rank];
  os::Ending ending;
  if (os::ending_of(at.inner, at.inner_watch, ending)) at.inner_ending = ending;
  poller_.remove(at.inner_watch);
  os::close_descriptor(at.inner_watch);
  at.inner_watch = -1;
  reap(); // it may be our child by now
  if (at.ended) return;
  if (phase_of(rank) == segment::Phase::ready) {
    at.inner_gone_ns = os::monotonic_ns();
  } else if (at.wrapper_ended) {
    // Its parent was neither the wrapper nor we: nobody is left to tell its status.
    at.ended = true;
    --living_;
    reap();
  }
}

} // namespace near::launch
