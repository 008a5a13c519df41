// Options: the standard streams of the processes, and what mpiexec prints about the job.
#include "launch/option_table.h"
#include "launch/pattern.h"

#include <cctype>

namespace near::launch {
namespace {

using base::Code;
using base::fail;

constexpr const char* rank_prefix = "[%r] ";

/// The modifiers that follow a file name in options of Open MPI's launchers: ":nocopy", ":nojobid,nocopy".
struct Modifiers {
  bool without_job = false; ///< nojobid
  bool copy_chosen = false; ///< copy or nocopy
};

Result read_modifiers(Parsing& at, const std::string& value, std::string& name, Modifiers& made) {
  auto words = split(value, ':');
  if (words.empty() || words[0].empty()) return fail(Code::invalid, "{}: a name is missing", at.option);
  name = words[0];
  for (std::size_t i = 1; i < words.size(); ++i)
    for (auto word : split(words[i], ',')) {
      for (auto& letter : word) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
      if (word == "nojobid") {
        made.without_job = true;
      } else if (word == "copy" || word == "nocopy") {
        bool copy = word == "copy";
        if (made.copy_chosen && at.command.copy_output != copy)
          return fail(Code::invalid, "{} {}: copy and nocopy contradict each other", at.option, value);
        made.copy_chosen = true;
        at.command.copy_output = copy;
      } else if (word == "pattern") {
        return fail(Code::unsupported, "{} {}: patterns are for -outfile-pattern and -errfile-pattern",
                    at.option, value);
      } else if (word != "raw") { // files receive the output as the rank wrote it anyway
        return fail(Code::invalid,
                    "{} {}: expected copy, nocopy, nojobid or raw after ':'; a name that contains ':' needs "
                    "-outfile-pattern",
                    at.option, value);
      }
    }
  return {};
}

// Escapes "%" in a name that is not a pattern.
std::string literally(const std::string& name) {
  std::string made;
  for (char letter : name) made += letter == '%' ? "%%" : std::string(1, letter);
  return made;
}

/// The pattern for a stream's files, and the option that set it.
struct Files {
  const char* stream;
  std::string& pattern;
  std::string& by;
};
Files output_files(Command& command) {
  return {"standard output", command.output_file, command.output_file_by};
}
Files error_files(Command& command) { return {"standard error", command.error_file, command.error_file_by}; }

// All programs share the names, so a second option would replace the first.
Result name_files(Files files, const std::string& given, const std::string& pattern) {
  if (!files.by.empty() && files.by != given)
    return fail(Code::invalid, "{}: {} says already to which files {} goes, for all programs of the job",
                given, files.by, files.stream);
  files.pattern = pattern;
  files.by = given;
  return {};
}

Result into_files(Command& command, const std::string& given, const std::string& name) {
  NEAR_TRY(name_files(output_files(command), given, literally(name) + ".%r.out"));
  return name_files(error_files(command), given, literally(name) + ".%r.err");
}

Result into_folder(Command& command, const std::string& given, const std::string& name) {
  NEAR_TRY(name_files(output_files(command), given, literally(name) + "/rank.%r/stdout"));
  return name_files(error_files(command), given, literally(name) + "/rank.%r/stderr");
}

std::string as_given(const Parsing& at) { return at.option + " " + at.values[0]; }

// As in Open MPI 5, the names of the files begin with NAME. ":nojobid" belongs to version 4, where NAME is
// a folder and output also goes to the terminal unless ":nocopy" is given.
Result choose_files(Parsing& at) {
  std::string name;
  Modifiers modifiers;
  NEAR_TRY(read_modifiers(at, at.values[0], name, modifiers));
  if (!modifiers.without_job) return into_files(at.command, as_given(at), name);
  NEAR_TRY(into_folder(at.command, as_given(at), name));
  if (!modifiers.copy_chosen) at.command.copy_output = true;
  return {};
}

Result choose_names(Parsing& at, const std::string& given, const std::string& value,
                    Result (*use)(Command&, const std::string&, const std::string&)) {
  std::string name;
  Modifiers modifiers;
  NEAR_TRY(read_modifiers(at, value, name, modifiers));
  return use(at.command, given, name);
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
      NEAR_TRY(choose_names(at, at.option + " " + word, word.substr(4), into_folder));
    else if (word.starts_with("file="))
      NEAR_TRY(choose_names(at, at.option + " " + word, word.substr(5), into_files));
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

Result choose_file_pattern(Parsing& at, Files files) {
  std::string pattern;
  NEAR_TRY(choose_pattern(at, pattern));
  return name_files(files, as_given(at), pattern);
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

// Reads "--display map,bind", an option of Open MPI's launchers.
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

const Option output_table[] = {
    {{"l", "tag-output", "prepend-rank", "label"},
     none,
     "|begin each line of output with its rank",
     NEAR_ACT(at.command.prefix = rank_prefix)},
    {{"prepend-pattern"},
     one,
     "PATTERN|begin each line with this: %r is the rank, %h the machine",
     [](Parsing& at) { return choose_pattern(at, at.command.prefix); }},
    {{"timestamp-output", "prepend-timestamp"},
     none,
     "|begin each line with the time",
     NEAR_ACT(at.command.timestamps = true)},
    {{"outfile-pattern", "outfile"},
     one,
     "FILE|standard output to files, such as out.%r",
     [](Parsing& at) { return choose_file_pattern(at, output_files(at.command)); }},
    {{"errfile-pattern", "errfile"},
     one,
     "FILE|standard error to files",
     [](Parsing& at) { return choose_file_pattern(at, error_files(at.command)); }},
    {{"output-filename"},
     one,
     "NAME|both to files NAME.<rank>.out and NAME.<rank>.err; NAME:copy: to the terminal too",
     choose_files},
    {{"output"}, one, "HOW|tag, timestamp, merge, file=NAME, dir=FOLDER, separated by ','", choose_output},
    {{"output-directory"},
     one,
     nullptr,
     [](Parsing& at) { return choose_names(at, as_given(at), at.values[0], into_folder); }},
    {{"merge-stderr-to-stdout"},
     none,
     "|send standard error where standard output goes",
     NEAR_ACT(at.command.merge_output = true)},
    {{"stdin", "s"},
     one,
     "RANKS|the ranks that read standard input: all, none, 0,2-3 (default 0)",
     choose_input},
    {{"report-bindings", "display-map", "display-devel-map"},
     none,
     "|say where each process runs",
     NEAR_ACT(at.command.report_bindings = true)},
    {{"display"}, one, "WHAT|map, bind, allocation, topo, separated by ','", choose_display},
    {{"display-allocation"}, none, nullptr, NEAR_ACT(at.command.display_allocation = true)},
    {{"display-topo"}, none, nullptr, NEAR_ACT(at.command.display_machine = true)},
    {{"print-rank-map"}, none, "|print (machine:ranks) first", NEAR_ACT(at.command.print_rank_map = true)},
    {{"print-all-exitcodes"},
     none,
     "|print each process's exit status at the end",
     NEAR_ACT(at.command.print_exit_codes = true)},
    {{"report-pid"},
     one,
     "FILE|write the process number of mpiexec to FILE; - is standard output",
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

OptionGroup output_options() { return {"output", "Input and output", output_table}; }

} // namespace near::launch
