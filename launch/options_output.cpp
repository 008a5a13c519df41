// Standard streams of the processes, and what mpiexec prints about the job.
#include "launch/option_table.h"
#include "launch/pattern.h"

namespace near::launch {
namespace {

using base::Code;
using base::fail;

constexpr const char* rank_prefix = "[%r] ";

// A name of files that Open MPI's launchers take, with their ":nocopy"; here nothing is copied anyway.
Result file_name(Parsing& at, std::string name, std::string& made) {
  auto colon = name.rfind(':');
  if (colon != std::string::npos) {
    auto modifier = name.substr(colon + 1);
    if (modifier == "nocopy") {
      name.resize(colon);
    } else if (modifier == "copy" || modifier == "pattern") {
      return fail(
          Code::unsupported,
          "{} {}: ':{}' is not supported here; output goes to the files alone, and -outfile-pattern takes "
          "patterns",
          at.option, name, modifier);
    }
  }
  if (name.empty()) return fail(Code::invalid, "{}: a name is missing", at.option);
  made = std::move(name);
  return {};
}

// "%" in a name that is no pattern stands for itself.
std::string literally(const std::string& name) {
  std::string made;
  for (char letter : name) made += letter == '%' ? "%%" : std::string(1, letter);
  return made;
}

Result into_files(Parsing& at, const std::string& value) {
  std::string name;
  NEAR_TRY(file_name(at, value, name));
  at.command.output_file = literally(name) + ".%r.out";
  at.command.error_file = literally(name) + ".%r.err";
  return {};
}

Result into_folder(Parsing& at, const std::string& value) {
  std::string name;
  NEAR_TRY(file_name(at, value, name));
  at.command.output_file = literally(name) + "/rank.%r/stdout";
  at.command.error_file = literally(name) + "/rank.%r/stderr";
  return {};
}

Result choose_output(Parsing& at) {
  for (const auto& word : split(at.values[0], ',')) {
    if (word == "tag" || word == "rank" || word == "tag-detailed" || word == "tag-fullname")
      at.command.prefix = rank_prefix;
    else if (word == "timestamp")
      at.command.timestamps = true;
    else if (word == "merge" || word == "merge-stderr-to-stdout")
      at.command.merge_output = true;
    else if (word.starts_with("dir="))
      NEAR_TRY(into_folder(at, word.substr(4)));
    else if (word.starts_with("file="))
      NEAR_TRY(into_files(at, word.substr(5)));
    else
      return wrong(at, "tag, timestamp, merge, file=NAME or dir=FOLDER; srun's --output PATTERN is "
                       "-outfile-pattern here");
  }
  return {};
}

Result choose_pattern(Parsing& at, std::string& pattern) {
  if (at.values[0].empty()) return wrong(at, "a pattern such as out.%r");
  NEAR_TRY(check_pattern(at.option, at.values[0]));
  pattern = at.values[0];
  return {};
}

Result choose_input(Parsing& at) {
  if (at.values[0] == "none") {
    at.command.input = {};
    return {};
  }
  if (!NamedRanks::parse(at.values[0], at.command.input))
    return wrong(at, "all, none, or ranks such as 0,2-3; srun's -s is --oversubscribe here");
  return {};
}

// "--display map,bind" of Open MPI's launchers.
Result choose_display(Parsing& at) {
  for (const auto& word : split(at.values[0], ',')) {
    if (word == "map" || word == "map-devel" || word == "bind" || word == "bindings")
      at.command.report_bindings = true;
    else if (word == "allocation" || word == "alloc")
      at.command.display_allocation = true;
    else if (word == "topo")
      at.command.display_machine = true;
    else
      return wrong(at, "map, bind, allocation or topo");
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

const Option table[] = {
    {{"l", "tag-output", "prepend-rank", "label"},
     none,
     "|begin each line of output with its rank",
     NEAR_ACT(at.command.prefix = rank_prefix)},
    {{"prepend-pattern"},
     one,
     "PATTERN|begin each line so: %r is the rank, %h the machine",
     [](Parsing& at) { return choose_pattern(at, at.command.prefix); }},
    {{"timestamp-output", "prepend-timestamp"},
     none,
     "|begin each line with the time",
     NEAR_ACT(at.command.timestamps = true)},
    {{"outfile-pattern", "outfile"},
     one,
     "FILE|standard output to files, such as out.%r",
     [](Parsing& at) { return choose_pattern(at, at.command.output_file); }},
    {{"errfile-pattern", "errfile"},
     one,
     "FILE|standard error to files",
     [](Parsing& at) { return choose_pattern(at, at.command.error_file); }},
    {{"output-filename"},
     one,
     "NAME|both to files NAME.<rank>.out and NAME.<rank>.err",
     [](Parsing& at) { return into_files(at, at.values[0]); }},
    {{"output"}, one, "HOW|tag, timestamp, merge, file=NAME, dir=FOLDER, with ',' between", choose_output},
    {{"output-directory"}, one, nullptr, [](Parsing& at) { return into_folder(at, at.values[0]); }},
    {{"merge-stderr-to-stdout"},
     none,
     "|standard error goes where standard output goes",
     NEAR_ACT(at.command.merge_output = true)},
    {{"stdin", "s"}, one, "RANKS|who reads standard input: all, none, 0,2-3 (default 0)", choose_input},
    {{"report-bindings", "display-map", "display-devel-map"},
     none,
     "|say where each process runs",
     NEAR_ACT(at.command.report_bindings = true)},
    {{"display"}, one, "WHAT|map, bind, allocation, topo, with ',' between", choose_display},
    {{"display-allocation"}, none, nullptr, NEAR_ACT(at.command.display_allocation = true)},
    {{"display-topo"}, none, nullptr, NEAR_ACT(at.command.display_machine = true)},
    {{"print-rank-map"}, none, "|print (machine:ranks) first", NEAR_ACT(at.command.print_rank_map = true)},
    {{"print-all-exitcodes"},
     none,
     "|print each process's exit status at the end",
     NEAR_ACT(at.command.print_exit_codes = true)},
    {{"report-pid"},
     one,
     "FILE|write mpiexec's process number there; - is standard output",
     NEAR_ACT(at.command.report_pid = at.values[0])},
    {{"explain"},
     attached,
     "[=svg]|print the whole plan, as text or as an image; start nothing",
     choose_explanation},
    {{"do-not-launch"}, none, nullptr, NEAR_ACT(at.command.explain = true)},
    {{"q", "quiet"}, none, "|no warnings", NEAR_ACT(at.command.quiet = true)},
    {{"v", "verbose"}, none, "|say what is started", NEAR_ACT(at.command.verbose = true)},
};

} // namespace

OptionGroup output_options() { return {"output", "Input and output", table}; }

} // namespace near::launch
