#include "launch/command.h"

#include "base/text.h"
#include "launch/head.h"
#include "launch/option_table.h"
#include "launch/slurm.h"
#include "launch/tool.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <unistd.h>

namespace near::launch {
namespace {

using base::Code;
using base::fail;

std::string_view without_dashes(std::string_view written) {
  return written.substr(written.starts_with("--") ? 2 : 1);
}

Result unknown_option(const std::string& written, std::string_view name) {
  if (const char* instead = instead_of(name)) return fail(Code::unsupported, "{}: {}", written, instead);
  std::vector<std::string_view> known;
  for (const auto& group : option_groups())
    for (const auto& option : group.options)
      for (const char* spelling : option.spellings)
        if (std::strlen(spelling) > 2) known.push_back(spelling);
  auto hint = base::did_you_mean(name, known, written.starts_with("--") ? "--" : "-");
  if (hint.empty()) hint = "; `mpiexec --help` lists the options";
  return fail(Code::invalid, "unknown option {}{}", written, hint);
}

// "-env NAME -n 2": the value was forgotten. Without this check the next option would silently become the
// value.
Result check_setting(const Parsing& parsing, int values) {
  if (values != setting || parsing.values.size() != 2) return {};
  const auto& [name, value] = std::pair(parsing.values[0], parsing.values[1]);
  if (!value.starts_with('-') || find_option(without_dashes(value)) == nullptr) return {};
  return fail(Code::invalid,
              "{} {}: its value seems to be missing, since {} is an option; if it is the value, use {} {}={}",
              parsing.option, name, value, parsing.option, name, value);
}

// "-n2" means -n 2, a form that users of srun know.
bool split_attached_number(std::string& name, std::string& number) {
  if (name.size() < 2 || std::string_view("nNc").find(name[0]) == std::string_view::npos ||
      name.find_first_not_of("0123456789", 1) != std::string::npos)
    return false;
  number = name.substr(1);
  name.resize(1);
  return true;
}

bool is_file_of_settings(const std::string& name) {
  std::error_code none;
  auto status = std::filesystem::status(name, none);
  constexpr auto executable = std::filesystem::perms::owner_exec;
  return std::filesystem::is_regular_file(status) &&
         (status.permissions() & executable) == std::filesystem::perms::none;
}

/// Returns how many arguments after the option arguments[at] belong to it.
std::size_t values_of(const Option& option, const std::vector<std::string>& arguments, std::size_t at) {
  bool more = at + 1 < arguments.size();
  // With one dash this is Intel MPI's option, whose value is optional; Open MPI's option always has a file.
  bool has_file = arguments[at].starts_with("--") || arguments[at] == "-am";
  switch (option.values) {
  case attached: return 0;
  case setting: return more && arguments[at + 1].find('=') != std::string::npos ? 1 : 2;
  case file_or_nothing: return has_file || (more && is_file_of_settings(arguments[at + 1])) ? 1 : 0;
  default: return static_cast<std::size_t>(option.values);
  }
}

/// Reads the option arguments[at]. Afterwards `at` is the index of the last argument that belongs to it.
Result parse_option(const std::vector<std::string>& arguments, std::size_t& at, Command& command,
                    Application& application) {
  const auto& written = arguments[at];
  std::string name(without_dashes(written));
  Parsing parsing{command, application, {}, written};
  auto equals = name.find('=');
  bool given = equals != std::string::npos;
  if (given) {
    parsing.values.push_back(name.substr(equals + 1));
    name.resize(equals);
    parsing.option = written.substr(0, written.find('='));
  } else if (std::string number; split_attached_number(name, number)) {
    parsing.values.push_back(number);
    parsing.option = "-" + name;
  }
  const Option* option = find_option(name);
  if (option == nullptr) return unknown_option(parsing.option, name);
  if (given && (option->values == none || option->values == two || option->values == setting))
    return fail(Code::invalid, "{} does not take a value after '='", parsing.option);
  if (parsing.values.empty()) {
    auto wanted = values_of(*option, arguments, at);
    while (parsing.values.size() < wanted) {
      if (++at == arguments.size())
        return fail(Code::invalid, "{}: {} {} missing after it", parsing.option,
                    wanted == 1 ? "a value" : "values", wanted == 1 ? "is" : "are");
      parsing.values.push_back(arguments[at]);
    }
  }
  NEAR_TRY(check_setting(parsing, option->values));
  return option->act(parsing);
}

// Replaces the program by its full name if it is found in the folders of -path.
void find_in_path(Application& application) {
  auto& program = application.arguments[0];
  if (application.path.empty() || program.find('/') != std::string::npos) return;
  for (const auto& folder : split(application.path, ':')) {
    std::error_code none;
    auto candidate = std::filesystem::absolute(std::filesystem::path(folder) / program, none);
    if (!std::filesystem::is_regular_file(candidate, none)) continue;
    program = candidate.string();
    return;
  }
}

// Reads the options before one program, and the program itself, up to the next ":".
Result parse_section(const std::vector<std::string>& arguments, std::size_t& at, Command& command) {
  Application application;
  auto before = command.applications.size();
  for (; at < arguments.size() && arguments[at] != ":"; ++at) {
    const auto& written = arguments[at];
    if (written == "--") {
      ++at;
      break;
    }
    if (written.size() < 2 || written[0] != '-') break;
    NEAR_TRY(parse_option(arguments, at, command, application));
    if (command.help) {
      if (at + 1 < arguments.size()) command.help_about = arguments[at + 1];
      at = arguments.size();
      return {};
    }
  }
  for (; at < arguments.size() && arguments[at] != ":"; ++at) application.arguments.push_back(arguments[at]);
  if (command.applications.size() > before) { // read from a file
    if (application.arguments.empty() && application.ranks == 0) return {};
    return fail(Code::invalid, "{}: the file of -configfile says what is started; put it there",
                application.ranks != 0 ? application.ranks_by : application.arguments[0]);
  }
  if (!application.arguments.empty()) {
    find_in_path(application);
    command.applications.push_back(std::move(application));
    return {};
  }
  if (command.version) return {};
  return fail(Code::invalid,
              "no program to start; usage: mpiexec -n N program [arguments] [: -n M program2 ...]");
}

/// Sets the number of processes from an option that gives it per machine; there is one machine.
Result settle_per_machine(Application& application, Command& command) {
  auto each = application.per_machine;
  const auto& by = application.per_machine_by;
  if (each == 0) return {};
  if (application.ranks == 0) {
    application.ranks = each;
    if (by.starts_with("-N "))
      command.remarks.push_back(base::format(
          "{} starts {} processes, as with Open MPI; srun's -N counts machines, of which there is one here",
          by, each));
    return {};
  }
  // srun's "-N 1" asks for one machine.
  bool one_machine = by.starts_with("-N ") && each == 1;
  if (application.per_machine_limits && application.ranks > each && !one_machine)
    return fail(Code::unsupported,
                "{} and {}: all processes run on this machine, so these are too many for it; leave {} out",
                application.ranks_by, by, by);
  return {};
}

/// Intel MPI's "-machine FILE" is a file of hosts.
Result read_machine_file(Command& command) {
  if (command.machine.empty() || command.explain) return {};
  if (topo::Machine described; topo::machine_from_file(command.machine, described).ok())
    return fail(Code::invalid, "-machine {}: the file describes a machine, for which only --explain can plan",
                command.machine);
  Application none_yet;
  Parsing at{command, none_yet, {command.machine}, "-machine"};
  if (!find_option("machinefile")->act(at).ok())
    return fail(Code::invalid, "{}; to plan for a machine that the file describes add --explain",
                std::string(base::failure_text()));
  command.machine.clear();
  return {};
}

/// If a Slurm job has several machines and the command line names none, these are used.
Result take_machines_of_slurm(Command& command) {
  const bool named =
      !command.hosts.empty() || std::any_of(command.applications.begin(), command.applications.end(),
                                            [](const Application& each) { return !each.hosts.empty(); });
  if (named || command.is_part || !command.remote_shell.empty()) return {};
  NEAR_TRY(read_slurm_machines(environ, command.hosts));
  command.by_slurm = !command.hosts.empty();
  return {};
}

/// Chooses the number of ranks if the command line does not give it: one, or in a Slurm job the number of
/// tasks.
Result choose_ranks(const SlurmStep& slurm, Command& command) {
  const bool spans = spans_machines(command);
  for (auto& application : command.applications) {
    if (!spans && !command.is_part) NEAR_TRY(settle_per_machine(application, command));
    const auto& hosts = application.hosts.empty() ? command.hosts : application.hosts;
    if (spans && application.ranks == 0)
      application.ranks =
          static_cast<unsigned>(std::min<std::size_t>(application.per_machine * hosts.size(), 65537));
  }
  bool said = command.applications.size() != 1 || command.applications[0].ranks != 0;
  if (!said && slurm.tasks != 0 && !spans)
    command.applications[0].ranks = slurm.tasks;
  else
    command.ranks_are_default = !said;
  if (slurm.machines > 1 && command.hosts.empty())
    command.remarks.push_back(
        base::format("Slurm's job {} has {} machines; all ranks run on this one", slurm.job, slurm.machines));
  for (auto& application : command.applications) application.ranks = std::max(application.ranks, 1u);
  return {};
}

/// Reads environment variables that other launchers also read. Options take precedence.
Result read_launcher_variables(Command& command) {
  if (const char* seconds = std::getenv("MPIEXEC_TIMEOUT"); seconds != nullptr && command.timeout_s == 0)
    if (*seconds != 0 && !parse_seconds(seconds, command.timeout_s))
      return fail(Code::invalid, "MPIEXEC_TIMEOUT={}: expected a number of seconds", seconds);
  command.timeout_s = std::max(command.timeout_s, 0.0); // 0 or less: no limit, as with MPICH
  if (const char* number = std::getenv("MPIEXEC_TIMEOUT_SIGNAL"); number != nullptr && command.timeout_s > 0)
    command.remarks.push_back(base::format(
        "MPIEXEC_TIMEOUT_SIGNAL={} is ignored: after the time ranks get SIGTERM, then SIGKILL", number));
  if (std::getenv("MPIEXEC_PREFIX_DEFAULT") != nullptr && command.prefix.empty()) command.prefix = "[%r] ";
  return {};
}

/// Checks options that may contradict one another.
Result check_together(Command& command) {
  bool marked = !command.prefix.empty() || command.timestamps;
  if (marked && (!command.output_file.empty() || !command.error_file.empty()))
    return fail(Code::unsupported,
                "lines that go to files cannot begin with the rank or the time; leave that out and give each "
                "rank its own file (-outfile-pattern out.%r), or leave the files out");
  if (command.merge_output && !command.error_file.empty() && command.output_file.empty())
    return fail(Code::invalid, "standard error goes either to files or where standard output goes, not both");
  if (spans_machines(command) && !command.mapping.rankfile.empty())
    return fail(Code::unsupported, "a file of ranks is for one machine; leave it or the other machines out");
  if (spans_machines(command) && command.explain_as_svg)
    return fail(Code::unsupported,
                "a drawing as SVG is for one machine; --explain draws each of them as text");
  // The number of ranks is known only after all machines have reported their slots.
  if (command.is_part || (command.ranks_are_default && spans_machines(command))) return {};
  unsigned greatest = command.input.greatest();
  if (greatest >= command.mapping.ranks)
    return fail(Code::invalid, "standard input is for rank {}, but the ranks are 0 to {}", greatest,
                command.mapping.ranks - 1);
  for (const auto& tool : command.tools)
    if (tool.ranks.greatest() >= command.mapping.ranks)
      return fail(Code::invalid, "-gtool: there is no rank {}, the ranks are 0 to {}", tool.ranks.greatest(),
                  command.mapping.ranks - 1);
  return {};
}

} // namespace

// Each line has the form of a section between two ':' on a command line. MPI 5.0, section 11.5: '#' begins a
// comment line, and '\' at the end of a line continues it. A comment is not continued, and may follow words.
Result parse_command_file(Parsing& at) {
  const auto name = at.values[0];
  std::string text, line;
  NEAR_TRY(read_named_file(at, name, text));
  unsigned number = 0, first = 0;
  auto before = at.command.applications.size();
  if (at.command.reading_file)
    return fail(Code::invalid, "{} {}: a file of programs cannot name another one", at.option, name);
  at.command.reading_file = true;
  const auto parts = split(text, '\n');
  bool pending = false;
  for (auto part : parts) {
    ++number;
    if (!pending) first = number;
    if (part.ends_with('\r')) part.pop_back();
    auto begin = part.find_first_not_of(" \t");
    bool comment = !pending && begin != std::string::npos && part[begin] == '#';
    pending = !comment && part.ends_with('\\');
    if (pending) part.pop_back();
    line += part;
    if (pending && number < parts.size()) continue; // the last one has nothing that continues it
    std::vector<std::string> words;
    Result read = split_words(line, words, '#');
    line.clear();
    if (!words.empty() && words.back() == ":") words.pop_back();
    std::size_t next = 0;
    while (read.ok() && next < words.size()) {
      read = parse_section(words, next, at.command);
      ++next;
    }
    if (!read.ok()) return fail(Code::invalid, "{}:{}: {}", name, first, std::string(base::failure_text()));
  }
  at.command.reading_file = false;
  if (at.command.applications.size() == before)
    return fail(Code::invalid, "{} {}: no line of the file names a program", at.option, name);
  return {};
}

Result parse_command(const std::vector<std::string>& arguments, Command& command) {
  Command made;
  made.is_part = command.is_part;
  std::size_t at = 0;
  do NEAR_TRY(parse_section(arguments, at, made));
  while (at++ < arguments.size());
  if (!made.help && !made.version) {
    NEAR_TRY(read_launcher_variables(made));
    NEAR_TRY(read_machine_file(made));
    NEAR_TRY(take_machines_of_slurm(made));
    NEAR_TRY(choose_ranks(read_slurm_step(environ), made));
    made.mapping.ranks = 0;
    for (const auto& application : made.applications) made.mapping.ranks += application.ranks;
    if (made.mapping.ranks > 65536)
      return fail(Code::limit, "{} processes are more than the 65536 that one job may have",
                  made.mapping.ranks);
    NEAR_TRY(check_together(made));
  }
  command = std::move(made);
  return {};
}

} // namespace near::launch
