// Options: what to start (programs, the number of processes of each, where programs are found and run).
#include "launch/option_table.h"
#include "launch/tool.h"

namespace near::launch {
namespace {

using base::Code;
using base::fail;

Result read_ranks(Parsing& at) {
  auto& application = at.application;
  unsigned count = 0;
  NEAR_TRY(read_count(at, count));
  auto by = at.option + " " + at.values[0];
  bool short_c = at.option == "-c";
  if (application.ranks != 0)
    return fail(Code::invalid, "{}: {} says already how many processes{}", by, application.ranks_by,
                short_c || application.ranks_by.starts_with("-c ")
                    ? "; srun's -c, cores for each process, is --threads here"
                    : "");
  application.ranks = count;
  application.ranks_by = by;
  if (short_c)
    at.command.remarks.push_back(base::format(
        "{} starts {} processes, as with Open MPI; srun's -c, cores for each process, is --threads here", by,
        count));
  return {};
}

// The number of processes on each machine.
Result read_per_machine(Parsing& at, bool limits) {
  NEAR_TRY(read_count(at, at.application.per_machine));
  at.application.per_machine_by = at.option + " " + at.values[0];
  at.application.per_machine_limits = limits;
  return {};
}

Result read_nodes(Parsing& at) {
  unsigned count = 0;
  NEAR_TRY(read_count(at, count));
  if (count == 1) return {};
  return fail(Code::unsupported,
              "{} {}: which machines is missing; name them with --hosts A,B or --hostfile FILE, or reserve "
              "them with Slurm",
              at.option, at.values[0]);
}

const Option start_table[] = {
    {{"n", "np", "c", "nprocs", "ntasks"}, one, "N|start N processes (default 1)", read_ranks},
    {{"ppn", "perhost", "ntasks-per-node", "grr"},
     one,
     "N|start N processes on each machine in turn",
     [](Parsing& at) { return read_per_machine(at, false); }},
    {{"N", "npernode"}, one, nullptr, [](Parsing& at) { return read_per_machine(at, true); }},
    {{"rr", "bynode"},
     none,
     "|start one process on each machine in turn, again and again",
     [](Parsing& at) {
       at.values = {"1"};
       return read_per_machine(at, false);
     }},
    {{"pernode"},
     none,
     nullptr,
     [](Parsing& at) {
       at.values = {"1"};
       NEAR_TRY(read_per_machine(at, true));
       at.application.per_machine_by = at.option;
       return Result();
     }},
    {{"nodes"}, one, nullptr, read_nodes},
    {{"wdir", "wd", "chdir", "dir"},
     one,
     "DIRECTORY|run the program in this directory",
     NEAR_ACT(at.application.directory = at.values[0])},
    {{"path"},
     one,
     "FOLDERS|search the program in these folders first, separated by ':'",
     NEAR_ACT(at.application.path = at.values[0])},
    {{"configfile", "app"},
     one,
     "FILE|read the programs from the file: one on each line, after its options",
     parse_command_file},
    {{"gtool"},
     one,
     "\"COMMAND:RANKS\"|start the program of these ranks under a command; ';' separates several",
     [](Parsing& at) { return read_tools(at, at.values[0]); }},
    {{"gtoolfile"},
     one,
     nullptr,
     [](Parsing& at) {
       std::string text;
       NEAR_TRY(read_named_file(at, at.values[0], text));
       return read_tools(at, text);
     }},
};

} // namespace

OptionGroup start_options() { return {"start", "What to start", start_table}; }

} // namespace near::launch
