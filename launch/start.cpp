// How the supervisor begins: it prepares itself and starts the ranks.
#include "launch/supervisor.h"

#include "boot/boot.h"
#include "launch/advice.h"
#include "launch/keys.h"
#include "launch/pattern.h"
#include "launch/published_machine.h"
#include "launch/rank_table.h"
#include "os/clock.h"
#include "os/descriptor.h"
#include "os/memory.h"
#include "profile/profile.h"

#include <csignal>

namespace near::launch {
namespace {

// After this time the job is long enough to afford the search for devices.
constexpr std::uint64_t until_devices_ns = 300'000'000;
// The first check for another MPI's library comes this long after the start, the next after twice that time,
// and so on.
constexpr std::uint64_t until_foreign_ns = 30'000'000;

} // namespace

base::Result Supervisor::prepare() {
  static constexpr int signals[] = {SIGCHLD, SIGINT,  SIGTERM, SIGHUP,  SIGQUIT,
                                    SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT, SIGURG};
  NEAR_TRY(inbox_.open(signals));
  // For each rank three pipes, a pidfd and a socket, and two files if output is copied to files; some more for the
  // supervisor.
  unsigned each = description_.job.command.copy_output ? 8 : 6;
  NEAR_TRY(os::allow_descriptors(description_.job.command.mapping.ranks * each + 64));
  os::ignore_signal(SIGPIPE);
  os::ignore_signal(SIGXFSZ); // exceeding the limit on file sizes causes a message, not our end
  os::ignore_signal(SIGTTOU);
  NEAR_TRY(os::lead_own_group());
  NEAR_TRY(os::become_subreaper());
  NEAR_TRY(os::watch_process(description_.front_end, front_end_watch_));
  NEAR_TRY(poller_.open());
  NEAR_TRY(poller_.add(inbox_.descriptor(), key_signals));
  NEAR_TRY(poller_.add(front_end_watch_, key_front_end));
  NEAR_TRY(output_.open(poller_, key_streams, description_.job.command.merge_output,
                        description_.job.command.timestamps));
  NEAR_TRY(poller_.add(output_.bell_descriptor(), key_bell));
  NEAR_TRY(segment_.attach(description_.segment_descriptor, true));
  control_.open(description_.job.part.control);
  if (control_.is_open()) NEAR_TRY(poller_.add(control_.descriptor(), key_control));
  kills_before_ = os::read_memory_kills();
  return os::open_null(null_input_);
}

base::Result Supervisor::start_ranks() {
  const auto& application_of = description_.job.application_of;
  ranks_.resize(application_of.size());
  table_.expect(ranks_.size());
  if (publish(description_.job.machine, segment_))
    timers_.set(Timer::devices, os::monotonic_ns() + until_devices_ns);
  for (unsigned rank = 0; rank < ranks_.size(); ++rank) {
    const auto& binding = description_.job.plan.bindings[rank];
    auto& entry = segment_.entry(rank);
    entry.rank = description_.job.rank_of(rank);
    entry.first_cpu = binding.cpus.first();
    entry.location = profile::location_of(
        description_.job.machine, binding.cpus.empty() ? description_.job.slots.allowed : binding.cpus);
    // For a rank that is bound to several nodes, the node of its own cores counts.
    entry.nearest =
        nearest_nodes(description_.job.machine, binding.cpus.empty() ? binding.cpus : binding.home);
    // This is complete before any rank runs, so that an early rank's values are not overwritten.
    store_phase(segment_, rank, segment::Phase::launched);
  }
  for (unsigned rank = 0; rank < ranks_.size(); ++rank) {
    NEAR_TRY(start_rank(rank));
    handle_pending_events();
    if (decided()) return {}; // no further rank is started
  }
  started_ns_ = os::monotonic_ns();
  timers_.set(Timer::foreign, started_ns_ + until_foreign_ns);
  tell_front_end();
  return input_.start();
}

/// While some ranks are still to be started, a rank may end, the user may interrupt or stop the job, or its time may be
/// over. Waits while the job is stopped.
void Supervisor::handle_pending_events() {
  do {
    poller_.wait(paused_ ? wait_ms(os::monotonic_ns()) : 0, keys_);
    for (auto key : keys_) dispatch(key);
    run_timers(os::monotonic_ns());
  } while (paused_ && !decided());
}

/// Sends the process ids to the front end, which has the table that debuggers read, or to mpiexec on another machine.
void Supervisor::tell_front_end() {
  std::vector<os::Pid> pids;
  for (const auto& rank : ranks_) pids.push_back(rank.pid);
  (void)os::write_all(description_.pids_to, reinterpret_cast<const char*>(pids.data()),
                      pids.size() * sizeof(os::Pid));
  os::close_descriptor(description_.pids_to);
  if (control_.is_open())
    control_.send(machines::Kind::processes,
                  machines::Processes{os::number_space(), {pids.begin(), pids.end()}}.body());
}

// Finding them takes milliseconds, which a short job should not pay for.
void Supervisor::find_devices() {
  topo::Machine machine;
  if (topo::read_machine(machine, true).ok()) publish_devices(machine, description_.job.machine, segment_);
}

/// Connects the standard streams of the rank. `piped` says which of them are ends of pipes, to be closed
/// once the rank has been started.
base::Result Supervisor::connect(unsigned rank, os::Launch& launch, Piped& piped) {
  const auto& command = description_.job.command;
  launch.input = null_input_;
  const unsigned in_world = description_.job.rank_of(rank);
  if (command.input.has(in_world)) {
    launch.input = 0;
    piped.input = command.input.several();
    if (piped.input) NEAR_TRY(input_.add(in_world, launch.input));
  }
  // Only the terminal's foreground group may read from it. If the job is in the background, reading stops the whole group, as the
  // user expects, so that the shell can continue it in the foreground.
  launch.own_group = !(launch.input == 0 && description_.terminal_input);
  launch.join_group = launch.own_group ? 0 : description_.front_end_group;

  auto prefix = expand_pattern(command.prefix, in_world);
  // The output of a single rank cannot mix with that of others: it gets the real descriptors, including the
  // terminal.
  bool direct = ranks_.size() == 1 && prefix.empty() && !command.timestamps && !command.merge_output;
  auto give = [&](Output::Which which, const std::string& pattern, int& descriptor,
                  bool& is_pipe) -> base::Result {
    int file = -1;
    if (!pattern.empty()) NEAR_TRY(files_.open(pattern, in_world, file));
    is_pipe = file >= 0 ? command.copy_output : !direct;
    if (is_pipe)
      return output_.add(which, prefix, {file, file < 0 ? std::string() : expand_pattern(pattern, in_world)},
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
  const auto& job = description_.job;
  const auto& application = job.command.applications[job.application_of[rank]];
  const auto& binding = job.plan.bindings[rank];

  boot::Start start;
  start.singleton = false;
  start.segment_descriptor = description_.segment_descriptor;
  NEAR_TRY(os::identify(description_.segment_descriptor, start.segment));
  start.launcher = description_.front_end;
  start.rank = job.rank_of(rank);
  start.row = rank;
  start.here = static_cast<std::uint32_t>(ranks_.size());
  start.size = job.part.size == 0 ? start.here : job.part.size;
  start.application = job.application_of[rank];
  start.binding = binding.text;
  start.machine = job.part.machine;
  start.machines = job.part.machines;
  start.ranks = job.plan.ranks;
  if (start.machines > 1) NEAR_TRY(table_.add(poller_, key_table + rank, start.table_descriptor));

  os::Launch launch;
  launch.arguments = arguments_for(job.command, application, start.rank);
  launch.program = launch.arguments[0];
  launch.environment = environment_for(job.command, application, description_.environment);
  if (!binding.cpus.empty()) {
    auto places = planning::openmp_places(job.machine, binding);
    // A single place would only repeat the binding.
    if (places.find("},{") != std::string::npos) give_openmp_places(places, launch.environment);
  }
  for (auto& row : boot::write_environment(start)) launch.environment.push_back(std::move(row));
  boot::give_rank_variables(start, launch.environment);
  launch.directory = application.directory;
  launch.keep = {description_.segment_descriptor, segment_.huge_descriptor(), start.table_descriptor};
  launch.cpus = binding.cpus;
  launch.local_memory = !os::has_memory_policy(); // `numactl mpiexec ...` is meant for the ranks
  Piped piped;
  NEAR_TRY(connect(rank, launch, piped));
  if (job.command.report_bindings)
    output_.say(base::format("mpiexec: rank {}: {}\n", start.rank, binding.text));
  base::Result started = os::start_process(launch, ranks_[rank].pid);
  if (piped.input) os::close_descriptor(launch.input);
  if (piped.output) os::close_descriptor(launch.output);
  if (piped.error) os::close_descriptor(launch.error);
  if (start.table_descriptor >= 0) os::close_descriptor(start.table_descriptor);
  if (!started.ok())
    base::set_failure_text(std::string(base::failure_text()) + advice_on(launch.program, launch.directory));
  NEAR_TRY(started);
  segment_.entry(rank).pid.store_relaxed(static_cast<std::uint32_t>(ranks_[rank].pid));
  ++living_;
  if (job.command.verbose)
    output_.say(base::format("mpiexec: rank {}: pid {}: {}\n", start.rank, ranks_[rank].pid, launch.program));
  return {};
}

} // namespace near::launch
