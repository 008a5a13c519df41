// Options: where ranks run (machines, cores, numbering).
#include "launch/head.h"
#include "launch/option_table.h"
#include "os/process.h"

#include <algorithm>
#include <cstddef>

namespace near::launch {
namespace {

using base::Code;
using base::fail;

// A rankfile is for one machine.
Result check_host(const std::string& option, const std::string& host) {
  if (host.empty() || is_this_machine(host)) return {};
  return fail(Code::unsupported, "{} {}: a file of ranks can name this machine ({}) only", option, host,
              os::machine_name());
}

Result use_hosts(Parsing& at) { return machines::parse_hosts(at.values[0], at.option, at.command.hosts); }

// -host names the machines of one program, as in the standard and Open MPI.
Result use_own_hosts(Parsing& at) {
  return machines::parse_hosts(at.values[0], at.option, at.application.hosts);
}

Result use_host_file(Parsing& at) {
  if (at.command.is_part) return {}; // mpiexec has read it
  std::string text;
  NEAR_TRY(read_named_file(at, at.values[0], text));
  return machines::parse_host_file(text, at.values[0], at.command.hosts);
}

Result read_rank_file(Parsing& at, const std::string& name) {
  std::string text;
  NEAR_TRY(read_named_file(at, name, text));
  auto& mapping = at.command.mapping;
  NEAR_TRY(planning::parse_rankfile(text, name, mapping));
  for (const auto& entry : mapping.rankfile)
    // "+n0" is the first machine of the job, whatever it is.
    if (entry.given && entry.host != "+n0")
      NEAR_TRY(check_host(base::format("{}:{}: host", name, entry.line), entry.host));
  return {};
}

Result choose_mapping(Parsing& at, const std::string& words) {
  constexpr std::string_view file = "rankfile:file=";
  if (words.starts_with(file)) return read_rank_file(at, words.substr(file.size()));
  if (words == "rankfile")
    return fail(Code::invalid, "{} rankfile: which file is missing; use {} rankfile:file=FILE", at.option,
                at.option);
  return planning::parse_map_by(words, at.command.mapping);
}

// Reads "pin=yes;cell=core;domain=socket;map=spread", an Intel MPI option.
Result choose_intel_binding(Parsing& at) {
  const std::string& text = at.values[0];
  if (text.find('=') == std::string::npos) return planning::parse_bind_to(text, at.command.mapping);
  for (const auto& entry : split(text, ';')) {
    auto equals = entry.find('=');
    auto name = entry.substr(0, equals), value = equals == std::string::npos ? "" : entry.substr(equals + 1);
    if (name == "pin") {
      NEAR_TRY(use_intel_variable(at, "I_MPI_PIN", value));
    } else if (name == "cell" && value == "unit") {
      NEAR_TRY(planning::parse_bind_to("hwthread", at.command.mapping));
    } else if (name == "cell" && value == "core") {
      NEAR_TRY(planning::parse_bind_to("core", at.command.mapping));
    } else if (name == "domain") {
      NEAR_TRY(use_intel_variable(at, "I_MPI_PIN_DOMAIN", value));
    } else if (name == "map" && (value == "spread" || value == "scatter")) {
      NEAR_TRY(planning::parse_map_by("spread", at.command.mapping));
    } else if (name == "map" && value == "bunch") {
      NEAR_TRY(planning::parse_map_by("core", at.command.mapping));
    } else {
      return fail(Code::unsupported, "{} {}: '{}' is not known here; see --bind-to and --map-by", at.option,
                  text, entry);
    }
  }
  return {};
}

// Accepts only the default: each process takes memory from its own node.
Result choose_memory(Parsing& at) {
  for (const char* same : {"local", "firsttouch", "none"})
    if (at.values[0] == same) return {};
  return fail(Code::unsupported,
              "{} {}: memory comes from the process's own node; for another policy use mpiexec -n N numactl "
              "--interleave=all program",
              at.option, at.values[0]);
}

/// The word for which an option stands, as a template argument.
template <std::size_t Size>
struct Word {
  char text[Size];
  consteval Word(const char (&word)[Size]) { std::copy_n(word, Size, text); }
};
template <Word word>
Result map_by(Parsing& at) {
  return planning::parse_map_by(word.text, at.command.mapping);
}
template <Word word>
Result bind_to(Parsing& at) {
  return planning::parse_bind_to(word.text, at.command.mapping);
}

const Option mapping_table[] = {
    {{"threads", "cpus-per-proc", "cpus-per-rank"},
     one,
     "T|give each process T cores, and OMP_NUM_THREADS=T",
     [](Parsing& at) {
       at.command.mapping.threads_chosen = true;
       return read_count(at, at.command.mapping.threads);
     }},
    {{"bind-to"},
     one,
     "WHAT|core, l2, l3, numa, package, hwthread, none, user:0,2-3; default: as mapped",
     [](Parsing& at) { return planning::parse_bind_to(at.values[0], at.command.mapping); }},
    {{"map-by"},
     one,
     "HOW|core, spread, l2, l3, numa, package, hwthread, nic, ppr:N:<domain>; :PE=T",
     [](Parsing& at) { return choose_mapping(at, at.values[0]); }},
    {{"rank-by"},
     one,
     "HOW|with --map-by of domains: fill one domain after the other, or span all",
     [](Parsing& at) { return planning::parse_rank_by(at.values[0], at.command.mapping); }},
    {{"rankfile", "rf"},
     one,
     "FILE|run each process where the file says",
     [](Parsing& at) { return read_rank_file(at, at.values[0]); }},
    {{"cpu-set", "cpu-list"},
     one,
     "CORES|run all processes on these cores, such as 0-3,8",
     [](Parsing& at) {
       return planning::use_cores(at.values[0], false, at.option + " " + at.values[0], at.command.mapping);
     }},
    {{"oversubscribe", "overcommit"},
     none,
     "|allow more processes than processors without a warning",
     NEAR_ACT(at.command.mapping.may_share = true)},
    {{"nooversubscribe"},
     none,
     "|refuse more processes than processors",
     NEAR_ACT(at.command.mapping.must_not_share = true)},
    {{"hosts", "hostlist", "nodelist"},
     one,
     "A:4,B:4|run on these machines, so many processes on each (default: by processors)",
     use_hosts},
    {{"host", "H"}, one, "A,B|the same for one program of several", use_own_hosts},
    {{"hostfile", "machinefile", "f", "machine-file", "default-hostfile"},
     one,
     "FILE|run on the machines of this file: on each line A, A:4 or A slots=4",
     use_host_file},
    {{"launcher-exec", "bootstrap-exec", "remote-shell"},
     one,
     "COMMAND|reach other machines with this command (default ssh)",
     NEAR_ACT(at.command.remote_shell = at.values[0])},
    {{"machine"},
     one,
     "FILE|with --explain: plan for the machine that the file describes",
     NEAR_ACT(at.command.machine = at.values[0])},
    {{"binding"}, one, nullptr, choose_intel_binding},
    {{"use-hwthread-cpus"}, none, nullptr, NEAR_ACT(at.command.mapping.by_hwthread = true)},
    {{"npersocket"},
     one,
     nullptr,
     [](Parsing& at) {
       return planning::parse_map_by("ppr:" + at.values[0] + ":package", at.command.mapping);
     }},
    {{"bycore", "byslot"}, none, nullptr, map_by<"core">},
    {{"bysocket"}, none, nullptr, map_by<"package">},
    {{"bind-to-core"}, none, nullptr, bind_to<"core">},
    {{"bind-to-socket"}, none, nullptr, bind_to<"package">},
    {{"bind-to-none"}, none, nullptr, bind_to<"none">},
    {{"membind"}, one, nullptr, choose_memory},
};

} // namespace

OptionGroup mapping_options() { return {"placement", "Where processes run", mapping_table}; }

} // namespace near::launch
