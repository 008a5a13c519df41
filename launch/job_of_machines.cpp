// How a job on several machines begins: agents, the distribution of ranks, and what each machine is told.
#include "launch/job_of_machines.h"

#include "base/knob.h"
#include "base/log.h"
#include "base/text.h"
#include "boot/machine_list.h"
#include "launch/debugger.h"
#include "launch/head.h"
#include "launch/keys.h"
#include "launch/option_table.h"
#include "machines/distribution.h"
#include "machines/tree.h"
#include "os/clock.h"
#include "os/descriptor.h"
#include "segment/parts.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <unistd.h>
#include <utility>

namespace near::launch {
namespace {

using base::fail;

/// Quotes a word for the shell of the other machine.
std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char each : word) text += each == '\'' ? std::string("'\\''") : std::string(1, each);
  return text + "'";
}

/// The path of a program of this installation, which is in the same folder on every machine.
std::string installed(const std::string& name) {
  std::error_code none;
  return std::filesystem::read_symlink("/proc/self/exe", none).parent_path() / name;
}

unsigned number_of(const std::string& name, std::vector<std::unique_ptr<Remote>>& machines, unsigned slots) {
  for (unsigned at = 0; at < machines.size(); ++at)
    if (machines[at]->host.name == name) return at;
  machines.push_back(std::make_unique<Remote>(machines::Host{name, slots}));
  return static_cast<unsigned>(machines.size() - 1);
}

/// A debugger may stop this process for as long as its user likes.
unsigned lost_after() { return is_debugged() ? 0 : static_cast<unsigned>(base::knobs().lost_after.number); }

} // namespace

/// Numbers the machines in the order of the command line.
void JobOfMachines::name_machines() {
  for (const auto& host : command_.hosts) number_of(host.name, machines_, host.slots);
  for (const auto& application : command_.applications) {
    std::vector<unsigned> on;
    for (const auto& host : application.hosts) on.push_back(number_of(host.name, machines_, host.slots));
    programs_on_.push_back(std::move(on));
  }
}

bool JobOfMachines::by_shell(const machines::Host& host) const {
  return !is_this_machine(host.name) && !command_.by_slurm;
}

/// The command that runs a program on the machine, with these standard streams. If by_shell(), the last word is a command for a
/// shell there.
std::vector<std::string> JobOfMachines::words_for(const machines::Host& host,
                                                  const std::string& program) const {
  if (is_this_machine(host.name)) return {program};
  if (command_.by_slurm) {
    // mpiexec's own environment names the job; tools are called in a different one.
    const char* job = std::getenv("SLURM_JOB_ID");
    std::vector<std::string> words = {
        "srun",        "--nodes=1", "--ntasks=1",      "--nodelist=" + host.name,
        "--overlap",   "--quiet",   "--cpu-bind=none", "--kill-on-bad-exit=0",
        "--unbuffered"};
    if (job != nullptr) words.push_back(base::format("--jobid={}", job));
    words.push_back(program);
    return words;
  }
  std::vector<std::string> words;
  for (const auto& word : split(command_.remote_shell, ' '))
    if (!word.empty()) words.push_back(word);
  if (words.empty()) words.emplace_back("ssh");
  const bool is_ssh = words[0].substr(words[0].rfind('/') + 1) == "ssh";
  if (is_ssh)
    for (const char* option : {"-x", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"})
      words.emplace_back(option);
  words.push_back(host.name);
  words.push_back("exec " + quoted(program));
  return words;
}

Result JobOfMachines::start() {
  static constexpr std::array signals = {SIGCHLD, SIGINT,  SIGTERM, SIGHUP, SIGQUIT,
                                         SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};
  NEAR_TRY(inbox_.open(signals));
  os::ignore_signal(SIGPIPE);
  os::ignore_signal(SIGTTOU);
  os::ignore_signal(SIGTTIN); // input from a terminal ends for a job in the background
  name_machines();
  NEAR_TRY(poller_.open());
  NEAR_TRY(poller_.add(inbox_.descriptor(), key_signals));
  NEAR_TRY(output_.open(poller_, key_streams, command_.merge_output, false));
  NEAR_TRY(poller_.add(output_.bell_descriptor(), key_bell));
  if (command_.timeout_s > 0)
    time_out_ns_ = os::monotonic_ns() + static_cast<std::uint64_t>(command_.timeout_s * 1e9);
  return reach_machines();
}

/// Starts the agents on the first machines. The other machines are reached from these as soon as they have greeted.
Result JobOfMachines::reach_machines() {
  // srun does not start processes itself: the daemons of Slurm do, in a tree of their own.
  const auto fan_out = command_.by_slurm ? 0 : static_cast<unsigned>(base::knobs().fanout.number);
  std::vector<unsigned> elsewhere;
  unsigned reached_here = 0;
  for (unsigned at = 0; at < machines_.size(); ++at) {
    const bool is_here = is_this_machine(machines_[at]->host.name);
    const auto from =
        is_here ? std::nullopt : machines::reached_from(static_cast<unsigned>(elsewhere.size()), fan_out);
    if (from)
      behind_.emplace(at, elsewhere[*from]);
    else
      ++reached_here;
    if (!is_here) elsewhere.push_back(at);
  }
  constexpr unsigned each = 7, each_here = 3, others = 64;
  NEAR_TRY(os::allow_descriptors(static_cast<unsigned>(machines_.size()) * each + reached_here * each_here +
                                 others));
  for (unsigned at = 0; at < machines_.size(); ++at) {
    Remote& remote = *machines_[at];
    const RemoteKeys keys = {key_agents + at, key_agent_errors + at, key_agent_input + at};
    remote.set_limit(lost_after());
    if (const auto found = behind_.find(at); found != behind_.end())
      NEAR_TRY(remote.start_behind(*machines_[found->second], at, poller_, keys, output_.bell()));
    else
      NEAR_TRY(remote.start(agent_words(remote.host), poller_, keys, output_.bell()));
    NEAR_TRY(remote.connect_output(output_));
  }
  return {};
}

std::vector<std::string> JobOfMachines::agent_words(const machines::Host& host) const {
  std::vector<std::string> words = words_for(host, installed("mpiexec"));
  if (by_shell(host))
    words.back() += " --agent";
  else
    words.emplace_back("--agent");
  return words;
}

/// After the machine has greeted: makes it start the agents of the machines that are reached from it.
void JobOfMachines::reach_from(unsigned machine) {
  std::error_code none;
  const std::string directory = std::filesystem::current_path(none).string();
  for (const auto& [behind, from] : behind_)
    if (from == machine)
      machines_[behind]->be_reached(agent_words(machines_[behind]->host), directory, lost_after());
}

/// Distributes the ranks, once every machine has reported its slots.
Result JobOfMachines::distribute() {
  std::vector<machines::Slots> slots;
  unsigned all_slots = 0;
  for (const auto& remote : machines_) {
    const bool chosen = remote->host.slots != 0;
    const unsigned there = remote->hello ? remote->hello->slots : 0;
    slots.push_back({chosen ? remote->host.slots : there, chosen});
    all_slots += slots.back().count;
  }
  std::vector<machines::Share> shares;
  for (unsigned program = 0; program < command_.applications.size(); ++program) {
    const auto& application = command_.applications[program];
    machines::Share share;
    share.on = programs_on_[program];
    share.each = application.per_machine;
    share.each_is_limit = application.per_machine_limits;
    const auto used = static_cast<unsigned>(share.on.empty() ? machines_.size() : share.on.size());
    share.ranks = application.ranks;
    if (command_.ranks_are_default) share.ranks = share.each == 0 ? all_slots : share.each * used;
    application_of_.insert(application_of_.end(), share.ranks, program);
    shares.push_back(std::move(share));
  }
  NEAR_TRY(machines::distribute(slots, shares, machine_of_));
  constexpr std::size_t most_ranks = 65536;
  if (machine_of_.size() > most_ranks)
    return fail(base::Code::limit, "{} processes are more than the {} that one job may have",
                machine_of_.size(), most_ranks);
  if (const unsigned greatest = command_.input.greatest(); greatest >= machine_of_.size())
    return fail(base::Code::invalid, "standard input is for rank {}, but the ranks are 0 to {}", greatest,
                machine_of_.size() - 1);
  for (unsigned rank = 0; rank < machine_of_.size(); ++rank)
    machines_[machine_of_[rank]]->ranks.push_back(rank);
  for (unsigned at = 0; at < machines_.size(); ++at)
    if (!machines_[at]->ranks.empty()) parts_.push_back(at);
  std::vector<std::vector<std::uint32_t>> ranks;
  for (const unsigned part : parts_) ranks.push_back(machines_[part]->ranks);
  const std::vector<std::string> rows = boot::machine_list_rows(ranks);
  for (std::size_t row = 0; row < rows.size(); ++row) table_[boot::machine_list_key(row)] = rows[row];
  return {};
}

AgentJob JobOfMachines::job_for(unsigned machine) const {
  AgentJob job;
  job.arguments = arguments_;
  for (char** row = environ; *row != nullptr; ++row)
    if (const std::string text(*row); !is_of_machine(text.substr(0, text.find('='))))
      job.environment.push_back(text);
  std::error_code none;
  job.directory = std::filesystem::current_path(none).string();
  job.ranks = machines_[machine]->ranks;
  job.ranks_of_program.resize(command_.applications.size());
  for (const unsigned rank : job.ranks) {
    ++job.ranks_of_program[application_of_[rank]];
    job.has_input = job.has_input || command_.input.has(rank);
  }
  job.size = static_cast<unsigned>(machine_of_.size());
  job.machine = static_cast<unsigned>(std::find(parts_.begin(), parts_.end(), machine) - parts_.begin());
  job.machines = static_cast<unsigned>(parts_.size());
  job.lost_after = lost_after();
  job.explain = command_.explain;
  job.debugged = is_debugged();
  return job;
}

Result JobOfMachines::send_jobs() {
  NEAR_TRY(distribute());
  if (command_.explain) {
    state_ = State::running;
    explain_next();
    return {};
  }
  if (command_.input.several() && os::is_terminal(0))
    return fail(base::Code::unsupported,
                "only one rank can read from a terminal; for {} use cat | mpiexec, or give a file: <FILE",
                command_.input.text());
  // A job in the background must not stop when it reads from its terminal.
  const bool readable = !os::is_terminal(0) || os::is_foreground_terminal(0);
  bool any_input = false;
  for (const unsigned machine : parts_) {
    AgentJob job = job_for(machine);
    job.has_input = job.has_input && readable;
    if (job.has_input) {
      int pipe = -1;
      NEAR_TRY(input_.add(machine, pipe));
      NEAR_TRY(machines_[machine]->connect_input(pipe));
      any_input = true;
    }
    machines_[machine]->say(machines::Kind::job, job.body());
  }
  state_ = State::running;
  return any_input ? input_.start() : Result();
}

/// Once all parts run, lets tools find them, and a debugger find the ranks.
void JobOfMachines::part_started(unsigned machine, const machines::Processes& processes) {
  if (!processes_.emplace(machine, processes).second || processes_.size() < parts_.size()) return;
  publish();
  tell_debugger_of_all();
}

void JobOfMachines::publish() {
  std::vector<segment::JobPart> parts;
  for (const unsigned part : parts_) {
    const Remote& remote = *machines_[part];
    parts.push_back({remote.host.name, processes_[part].space, remote.launcher,
                     static_cast<std::uint32_t>(remote.ranks.size()),
                     words_for(remote.host, installed("near")), by_shell(remote.host)});
  }
  int kept_open = -1;
  if (!segment::publish_parts(parts, kept_open).ok())
    base::log(base::Level::warning, "tools will see only parts of this job: {}", base::failure_text());
}

void JobOfMachines::tell_debugger_of_all() {
  const std::vector<std::string> programs = program_files(command_);
  std::vector<Debugged> ranks(machine_of_.size());
  for (const unsigned part : parts_) {
    const Remote& remote = *machines_[part];
    const std::vector<unsigned>& numbers = processes_[part].numbers;
    for (std::size_t i = 0; i < std::min(numbers.size(), remote.ranks.size()); ++i)
      ranks[remote.ranks[i]] = {remote.host.name, programs[application_of_[remote.ranks[i]]],
                                static_cast<os::Pid>(numbers[i])};
  }
  tell_debugger(std::move(ranks));
  if (!is_debugged()) return;
  for (const unsigned part : parts_) machines_[part]->say(machines::Kind::go_on);
}

} // namespace near::launch
