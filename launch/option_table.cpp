#include "launch/option_table.h"

#include "base/knob.h"
#include "os/process.h"

#include <charconv>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace near::launch {
namespace {

using base::Code;
using base::fail;

Result wrong(const Parsing& at, const char* expected) {
  return fail(Code::invalid, "{} {}: expected {}", at.option, at.values[0], expected);
}

Result read_count(const Parsing& at, unsigned& count) {
  const auto& text = at.values[0];
  unsigned number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number == 0 || number > 65536)
    return wrong(at, "a number from 1 to 65536");
  count = number;
  return {};
}

Result read_seconds(Parsing& at) {
  char* end = nullptr;
  double seconds = std::strtod(at.values[0].c_str(), &end);
  if (end == at.values[0].c_str() || *end != 0 || !(seconds > 0) || seconds > 1e9)
    return wrong(at, "a number of seconds");
  at.command.timeout_s = seconds;
  return {};
}

// "-x NAME" passes a variable on, "-x NAME=VALUE" sets it.
Result export_variable(Parsing& at) {
  const auto& text = at.values[0];
  auto equals = text.find('=');
  if (equals == 0 || text.empty()) return wrong(at, "NAME or NAME=VALUE");
  if (equals != std::string::npos)
    at.command.settings.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  else if (const char* value = std::getenv(text.c_str()))
    at.command.settings.emplace_back(text, value);
  else
    at.command.remarks.push_back(
        base::format("{} {}: there is no such variable in this environment", at.option, text));
  return {};
}

Setting pair_of(const Parsing& at) {
  if (at.values.size() == 2) return {at.values[0], at.values[1]};
  auto equals = at.values[0].find('=');
  return {at.values[0].substr(0, equals), at.values[0].substr(equals + 1)};
}

void keep_only(Parsing& at) {
  at.command.inherit = false;
  if (at.values.empty()) return;
  std::istringstream names(at.values[0]);
  for (std::string name; std::getline(names, name, ',');) at.command.only.push_back(name);
}

Result check_host(const std::string& option, std::string host) {
  host = host.substr(0, host.find(':'));
  auto own = os::machine_name();
  if (host.empty() || host == "localhost" || host == "127.0.0.1" || host == own ||
      host == own.substr(0, own.find('.')))
    return {};
  return fail(Code::unsupported,
              "{} {}: this mpiexec starts processes on this machine ({}) only; for several machines use the "
              "launcher of your cluster",
              option, host, own);
}

Result check_hosts(Parsing& at) {
  std::istringstream hosts(at.values[0]);
  for (std::string host; std::getline(hosts, host, ',');) NEAR_TRY(check_host(at.option, host));
  return {};
}

Result check_host_file(Parsing& at) {
  std::ifstream file(at.values[0]);
  if (!file) return fail(Code::invalid, "{}: cannot read the file '{}'", at.option, at.values[0]);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string host;
    if (words >> host) NEAR_TRY(check_host(at.option + " " + at.values[0] + ":", host));
  }
  return {};
}

Result read_rank_file(Parsing& at) {
  std::ifstream file(at.values[0]);
  std::string text;
  std::getline(file, text, '\0'); // all of it; bad() for a folder
  if (!file.is_open() || file.bad())
    return fail(Code::invalid, "{}: cannot read the file '{}'", at.option, at.values[0]);
  auto& placement = at.command.placement;
  NEAR_TRY(topo::parse_rank_file(text, at.values[0], placement));
  for (const auto& listed : placement.listed)
    // "+n0" is the first machine of whatever the job has got.
    if (listed.given && listed.host != "+n0")
      NEAR_TRY(check_host(base::format("{}:{}: host", at.values[0], listed.line), listed.host));
  return {};
}

Result choose_output(Parsing& at) {
  if (at.values[0] == "tag")
    at.command.tag_output = true;
  else if (at.values[0] == "merge")
    at.command.merge_output = true;
  else
    return wrong(at, "tag or merge");
  return {};
}

Result no_meaning(Parsing& at) {
  at.command.remarks.push_back(base::format("{} has no meaning here and is ignored", at.option));
  return {};
}
Result silently(Parsing&) { return {}; }

// "--display map,bind" of Open MPI's launchers: what of it there is here.
Result choose_display(Parsing& at) {
  std::istringstream words(at.values[0]);
  for (std::string word; std::getline(words, word, ',');) {
    if (word == "map" || word == "map-devel" || word == "bind" || word == "bindings")
      at.command.report_bindings = true;
    else if (word == "allocation" || word == "topo" || word == "job")
      at.command.remarks.push_back(base::format(
          "{} {} has no meaning here and is ignored; --explain prints the whole plan", at.option, word));
    else
      return wrong(at, "map or bind");
  }
  return {};
}

Result choose_explanation(Parsing& at) {
  at.command.explain = true;
  if (at.values.empty() || at.values[0] == "text") return {};
  if (at.values[0] != "svg") return wrong(at, "text or svg");
  at.command.explain_as_svg = true;
  return {};
}

// Only rank 0 reads standard input: other launchers let the user choose, and that one is their default.
Result choose_input(Parsing& at) {
  if (at.values[0] == "0") return {};
  return fail(Code::unsupported,
              "{} {}: standard input goes to rank 0 alone; for no input at all append </dev/null", at.option,
              at.values[0]);
}

// MPI 5.0, section 11.5: what is not supported is left out of the answer, which is no error.
Result choose_memory_kinds(Parsing& at) {
  const std::string& list = at.values[0];
  for (std::size_t begin = 0; begin < list.size();) {
    std::size_t end = std::min(list.find(',', begin), list.size());
    std::string kind = list.substr(begin, end - begin), name = kind.substr(0, kind.find(':'));
    if (name != "mpi" && name != "system")
      at.command.remarks.push_back(
          base::format("{} {}: memory is of the kinds mpi and system only, not {}", at.option, list, kind));
    begin = end + 1;
  }
  return {};
}

Result not_here(const Parsing& at, const char* instead) {
  return fail(Code::unsupported, "{} is not supported here; {}", at.option, instead);
}

#define NEAR_ACT(...)                                                                                        \
  [](Parsing& at) -> Result {                                                                                \
    (void)at;                                                                                                \
    __VA_ARGS__;                                                                                             \
    return {};                                                                                               \
  }

const Option table[] = {
    {{"n", "np", "c", "nprocs"},
     1,
     "N|start N processes (default 1)",
     [](Parsing& at) { return read_count(at, at.application.ranks); }},
    {{"N", "ppn", "perhost", "npernode"},
     1,
     nullptr,
     [](Parsing& at) -> Result {
       unsigned count = 0;
       NEAR_TRY(read_count(at, count));
       if (at.application.ranks == 0) at.application.ranks = count;
       return {};
     }},
    {{"x"}, 1, "NAME[=VALUE]|pass a variable on, or set it, for every process", export_variable},
    {{"env"},
     -1,
     "NAME VALUE|set a variable for this program",
     NEAR_ACT(at.application.settings.push_back(pair_of(at)))},
    {{"genv"},
     -1,
     "NAME VALUE|set a variable for every program",
     NEAR_ACT(at.command.settings.push_back(pair_of(at)))},
    {{"genvall", "envall"},
     0,
     "|pass the whole environment on (default)",
     NEAR_ACT(at.command.inherit = true)},
    {{"genvnone", "envnone"}, 0, "|pass nothing of the environment on", NEAR_ACT(keep_only(at))},
    {{"genvlist", "envlist"}, 1, "A,B,...|pass only these variables on", NEAR_ACT(keep_only(at))},
    {{"wdir", "wd"}, 1, "DIRECTORY|work there", NEAR_ACT(at.application.directory = at.values[0])},
    {{"t", "threads", "cpus-per-proc", "cpus-per-rank"},
     1,
     "T|give each process T cores, and OMP_NUM_THREADS=T",
     [](Parsing& at) {
       at.command.placement.threads_chosen = true;
       return read_count(at, at.command.placement.threads);
     }},
    {{"bind-to", "binding"},
     1,
     "WHAT|core, l2, l3, numa, package, hwthread or none",
     [](Parsing& at) { return topo::parse_bind_to(at.values[0], at.command.placement); }},
    {{"map-by", "rank-by"},
     1,
     "HOW|core, spread, l2, l3, numa, package, hwthread, nic, ppr:N:<domain>; :PE=T",
     [](Parsing& at) { return topo::parse_map_by(at.values[0], at.command.placement); }},
    {{"use-hwthread-cpus"}, 0, nullptr, NEAR_ACT(at.command.placement.by_hwthread = true)},
    {{"report-bindings", "display-map"},
     0,
     "|say where each process runs",
     NEAR_ACT(at.command.report_bindings = true)},
    {{"display"}, 1, nullptr, choose_display},
    {{"stdin", "s"}, 1, nullptr, choose_input},
    {{"explain"},
     -2,
     "[=svg]|print the whole plan, as text or as an image; start nothing",
     choose_explanation},
    {{"machine"},
     1,
     "FILE|with --explain: plan for the machine that the file describes",
     NEAR_ACT(at.command.machine = at.values[0])},
    {{"tag-output", "l", "prepend-rank"},
     0,
     "|begin each line of output with its rank",
     NEAR_ACT(at.command.tag_output = true)},
    {{"output"}, 1, nullptr, choose_output},
    {{"merge-stderr-to-stdout"}, 0, nullptr, NEAR_ACT(at.command.merge_output = true)},
    {{"timeout"},
     1,
     "S|after S seconds end the job with status 124 and say what each rank did",
     read_seconds},
    {{"memory-alloc-kinds"},
     1,
     "KINDS|kinds of memory that the program wants to use; mpi and system are there",
     choose_memory_kinds},
    {{"oversubscribe"},
     0,
     "|more processes than processors are meant so: no warning",
     NEAR_ACT(at.command.oversubscribe = true)},
    {{"nooversubscribe"},
     0,
     "|more processes than processors are an error",
     NEAR_ACT(at.command.never_oversubscribe = true)},
    {{"host", "hosts", "H"}, 1, "NAME|this machine; others are refused", check_hosts},
    {{"hostfile", "machinefile", "f"}, 1, nullptr, check_host_file},
    {{"q", "quiet"}, 0, "|no warnings", NEAR_ACT(at.command.quiet = true)},
    {{"v", "verbose"}, 0, "|say what is started", NEAR_ACT(at.command.verbose = true)},
    {{"V", "version", "info"}, 0, "|print the version", NEAR_ACT(at.command.version = true)},
    {{"h", "help"}, 0, "|print this", NEAR_ACT(at.command.help = true)},
    {{"allow-run-as-root", "print-all-exitcodes", "bind-to-core"}, 0, nullptr, silently},
    {{"configfile", "app"},
     1,
     nullptr,
     [](Parsing& at) {
       return not_here(at, "put the file's programs on the command line, with ':' between them");
     }},
    {{"outfile-pattern", "errfile-pattern", "output-filename"},
     1,
     nullptr,
     [](Parsing& at) {
       return not_here(at, "use --tag-output, or one file for each rank: mpiexec -n N sh -c "
                           "'exec program >out.$NEAR_BOOT_RANK'");
     }},
    {{"rankfile", "rf"}, 1, "FILE|each process where the file says", read_rank_file},
    {{"prefix"},
     1,
     nullptr,
     [](Parsing& at) {
       return not_here(at,
                       "processes run with the library that belongs to this mpiexec; start the mpiexec of "
                       "the installation that is meant by its path");
     }},
    {{"mca", "gmca", "pmixmca", "prtemca"}, 2, nullptr, no_meaning},
    {{"launcher", "bootstrap", "rmk", "iface", "arch", "soft", "path"}, 1, nullptr, no_meaning},
};
#undef NEAR_ACT

} // namespace

std::span<const Option> options() { return table; }

} // namespace near::launch
