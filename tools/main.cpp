// `near`: the command line.
#include "base/knob.h"
#include "base/text.h"
#include "os/descriptor.h"
#include "segment/segment.h"
#include "tools/commands.h"
#include "tools/parts.h"
#include "tools/validators.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <unistd.h>

namespace near::tools {

int complain() {
  std::fprintf(stderr, "near: %s\n", base::printable(base::failure_text(), true).c_str());
  return 1;
}

namespace {

constexpr int usage_status = 2;

/// Reports that `word`, a `kind` of word, is unknown, and suggests the most similar one.
int unknown(const char* kind, std::string_view word, const std::vector<std::string_view>& known) {
  auto hint = base::did_you_mean(word, known);
  if (hint.empty()) hint = "; `near --help` lists the commands";
  std::fprintf(stderr, "near: unknown %s '%s'%s\n", kind, std::string(word).c_str(), hint.c_str());
  return usage_status;
}

std::vector<std::string_view> words_of(const CLI::App& app, std::vector<std::string>& kept) {
  for (const auto* command : app.get_subcommands({})) kept.push_back(command->get_name());
  for (const auto* option : app.get_options())
    for (const auto& name : option->get_lnames()) kept.push_back("--" + name);
  return {kept.begin(), kept.end()};
}

/// The values from the command line, for all subcommands.
struct Options {
  std::int32_t job = 0;
  bool once = false, all = false, knobs = false, transport = false, show = false, remove = false;
  double interval_s = 1;
  PlaceOptions place;
  CollectivesOptions collectives;
  ModelOptions model;
  ModelCollectivesOptions scale;
};

/// The parser, with its subcommands, and the options whose presence matters.
struct Parser {
  CLI::App app{"Inspects NearMPI jobs and this machine.", "near"};
  CLI::App *top = nullptr, *place = nullptr, *calibrate = nullptr, *model = nullptr, *coverage = nullptr,
           *info = nullptr;
  CLI::Option *interval = nullptr, *info_job = nullptr, *info_coll = nullptr, *model_coll = nullptr;
};

constexpr const char* which_job = "process number of the job's mpiexec; default: your only running job";

CLI::Option* add_job(CLI::App& command, std::int32_t& job, const std::string& help) {
  return command.add_option("--job", job, help)->type_name("[PID]")->expected(0, 1)->transform(job_number());
}

void add_top(Parser& parser, Options& options) {
  parser.top = parser.app.add_subcommand("top", "show what the ranks of a running job are doing");
  add_job(*parser.top, options.job, which_job);
  parser.top->add_flag("--once", options.once,
                       "print once and exit; the default if standard output is not a terminal");
  parser.interval =
      parser.top
          ->add_option("--interval", options.interval_s, "repeat, with this many seconds between two tables")
          ->type_name("SECONDS")
          ->transform(number("a number of seconds"));
}

void add_place(Parser& parser, PlaceOptions& options) {
  auto& command =
      *(parser.place = parser.app.add_subcommand(
            "place", "show where the memory of a running job or process lies, and where it should"));
  auto* job = add_job(command, options.job, which_job);
  auto* pid = command.add_option("--pid", options.pid, "a single process of any program")
                  ->type_name("PID")
                  ->transform(number("a process number"))
                  ->excludes(job);
  command
      .add_option("command", options.command,
                  "after --: a program to start, such as mpiexec; the result is shown when it has ended")
      ->excludes(job)
      ->excludes(pid);
  command.add_flag("--all", options.all, "show every mapping and part with its ranges");
  command.add_flag("--json", options.json, "write everything as one JSON document");
  command.add_flag("--both", options.both)->group(""); // for `near` itself
  command.add_option("--output", options.output, "write text or JSON to FILE instead of standard output")
      ->type_name("FILE");
  command.add_option("--html", options.page, "also write a page for a browser to FILE")->type_name("FILE");
  command
      .add_option("--assert-local", options.assert_local,
                  "exit with status 3 if less than this share of a rank's memory is local")
      ->type_name("PERCENT")
      ->transform(percentage());
  command.add_flag("--watch", options.watch, "repeat until the job ends");
  command
      .add_option("--interval", options.interval_s, "with --watch or a program: seconds between two samples")
      ->type_name("SECONDS")
      ->transform(number("a number of seconds"));
}

void add_calibrate(Parser& parser, Options& options) {
  parser.calibrate = parser.app.add_subcommand(
      "calibrate", "measure copies on this machine, as initial estimates for jobs (2 s)");
  auto* show = parser.calibrate->add_flag("--show", options.show, "print the profile and measure nothing");
  parser.calibrate->add_flag("--remove", options.remove, "remove the profile")->excludes(show);
}

void add_model(Parser& parser, ModelOptions& options) {
  parser.model = parser.app.add_subcommand(
      "model", "predict what packing and unpacking a datatype take, from what near calibrate has measured");
  auto* type =
      parser.model
          ->add_option("--type", options.type,
                       "the datatype, such as 'vector(1000,1,16,double)': count, block length, stride")
          ->type_name("TYPE");
  parser.model
      ->add_option("--bytes", options.bytes,
                   "bytes of data, rounded up to whole elements; default: one element")
      ->type_name("N")
      ->transform(bytes())
      ->needs(type);
  auto* check =
      parser.model->add_flag("--check", options.check,
                             "measure as well; without --type: a grid of blocks, and how wrong the model is");
  parser.model
      ->add_flag("--all", options.all, "with --check and without --type: print every point of the grid")
      ->needs(check)
      ->excludes(type);
  parser.model
      ->add_option("--plot", options.plot,
                   "with --check and without --type, or with --coll: also draw the result into FILE (SVG)")
      ->type_name("FILE")
      ->excludes(type);
}

/// The options of `near model --coll`.
void add_model_of_collectives(Parser& parser, ModelCollectivesOptions& options) {
  CLI::App& command = *parser.model;
  CLI::Option* coll = parser.model_coll =
      command
          .add_option("--coll", options.names,
                      "predict broadcasts and allreduces between machines; NAMES: only one of them")
          ->type_name("[NAMES]")
          ->expected(0, 1)
          ->transform([](const std::string& text) { return text == "true" ? "" : text; })
          ->excludes(command.get_option("--type"))
          ->excludes(command.get_option("--check"));
  command
      .add_option(
          "--machines", options.machines,
          "with --coll: jobs of so many machines with so many ranks each; default: 64x8 1024x8 16384x8")
      ->type_name("NxR ...")
      ->needs(coll);
  auto add_count = [&](const char* name, std::uint32_t& value, const char* help) {
    command.add_option(name, value, help)->type_name("N")->transform(rank_number())->needs(coll);
  };
  command.add_option("--nodes", options.nodes, "with --coll: NUMA nodes of a machine; default: 4")
      ->type_name("N")
      ->transform(count("NUMA nodes", 1024))
      ->needs(coll);
  add_count("--nic-node", options.nic_node, "with --coll: the node of the NIC, from 0; default: 1");
  add_count("--root", options.root, "with --coll: the root of broadcasts; default: 0");
  auto add_figure = [&](const char* name, double& value, bool is_time, const char* help) {
    command.add_option(name, value, help)
        ->type_name(is_time ? "US" : "GB/s")
        ->transform(number(is_time ? "a number of microseconds" : "a number of GB/s"))
        ->needs(coll);
  };
  add_figure("--latency", options.latency, true, "with --coll: from a NIC to another");
  add_figure("--overhead", options.overhead, true, "with --coll: of the processor, for each message");
  add_figure("--bandwidth", options.bandwidth, false, "with --coll: of a NIC, each way");
  add_figure("--link-bandwidth", options.link_bandwidth, false,
             "with --coll: of the link of a NUMA node, each way");
  add_figure("--copy-bandwidth", options.copy_bandwidth, false, "with --coll: of one rank that copies");
  add_figure("--memory-bandwidth", options.memory_bandwidth, false, "with --coll: of the memory of a node");
  command
      .add_option("--eager", options.eager,
                  "with --coll: longer messages wait for their receivers; default: 64k")
      ->type_name("N")
      ->transform(bytes())
      ->needs(coll);
}

void add_coverage(Parser& parser, Options& options) {
  parser.coverage =
      parser.app.add_subcommand("coverage", "show how much of MPI 5.0 is implemented, by chapter");
  parser.coverage->add_flag("--all", options.all, "list every function");
}

/// The options of `near info --coll` for several machines.
void add_machines(CLI::App& info, CLI::Option* coll, CollectivesOptions& options) {
  auto* machines = info.add_option("--machines", options.machines,
                                   "with --coll: a job on several machines: 64 (machines), 64x8 (with 8 "
                                   "ranks each), 4,4,2 (the ranks "
                                   "of each); x8:FILE: as described by FILE, as with mpiexec --machine")
                       ->type_name("LIST")
                       ->needs(coll);
  info.add_flag("--turns", options.turns, "with --machines: ranks are placed on the machines in turns")
      ->needs(machines);
  auto* leaders =
      info.add_flag(
              "--leaders", options.leaders,
              "with --machines: who leads each machine, and who sends to whom in broadcast and allreduce")
          ->needs(machines);
  info.add_option("--bytes", options.bytes, "with --leaders: bytes of the vector; default: 8")
      ->type_name("N")
      ->transform(bytes())
      ->needs(leaders);
  info.add_option("--root", options.root, "with --leaders: the root of the broadcast; default: 0")
      ->type_name("RANK")
      ->transform(rank_number())
      ->needs(leaders);
}

void add_info(Parser& parser, Options& options) {
  parser.info = parser.app.add_subcommand("info", "show version, machine, slots");
  parser.info->add_flag("--knobs", options.knobs,
                        "list the knobs (environment variables) with their present values");
  parser.info->add_flag("--transport", options.transport,
                        "show which protocol the large messages of a running job use, and why");
  auto& coll = options.collectives;
  parser.info_coll =
      parser.info
          ->add_option("--coll", coll.names,
                       "show which algorithms collectives take, by size; NAMES: only of these, such as "
                       "allreduce,broadcast")
          ->type_name("[NAMES]")
          ->expected(0, 1)
          ->transform([](const std::string& text) { return text == "true" ? "" : text; });
  parser.info
      ->add_option("--ranks", coll.ranks, "with --coll: the number of ranks; default: as many as processors")
      ->type_name("N")
      ->transform(count("ranks", segment::most_rows))
      ->needs(parser.info_coll);
  parser.info
      ->add_option("--processors", coll.processors,
                   "with --coll: the number of processors; default: those of this machine")
      ->type_name("N")
      ->transform(count("processors", segment::most_rows))
      ->needs(parser.info_coll);
  parser.info
      ->add_option(
          "--nodes", coll.nodes,
          "with --coll: the number of NUMA nodes on which the ranks run; default: those of this machine")
      ->type_name("N")
      ->transform(count("NUMA nodes", segment::most_rows))
      ->needs(parser.info_coll);
  parser.info
      ->add_flag("--why", coll.why,
                 "with --coll: why the other algorithms are not taken, and what other kinds of calls take")
      ->needs(parser.info_coll);
  add_machines(*parser.info, parser.info_coll, coll);
  parser.info_job =
      add_job(*parser.info, options.job, "show the machine of a running job: " + std::string(which_job));
}

/// Reads the command line. Returns false if there is nothing to run, with the exit status in `status`.
bool parse(Parser& parser, int count, char** arguments, int& status) {
  CLI::App& app = parser.app;
  std::vector<std::string> kept;
  status = usage_status;
  if (count == 1) {
    std::fputs(app.help().c_str(), stderr);
    return false;
  }
  // An unknown subcommand is reported with the most similar one, before CLI11 complains that the subcommand
  // is missing.
  if (arguments[1][0] != '-')
    if (auto known = words_of(app, kept);
        std::find(known.begin(), known.end(), arguments[1]) == known.end()) {
      status = unknown("command", arguments[1], known);
      return false;
    }
  try {
    app.parse(count, arguments);
    return true;
  } catch (const CLI::Success& success) { status = app.exit(success); } catch (const CLI::ExtrasError&) {
    auto* command = app.get_subcommands().empty() ? &app : app.get_subcommands().front();
    auto extra = app.remaining(true);
    kept.clear();
    std::string word = extra.empty() ? "" : extra.front();
    status = unknown(word.starts_with('-') ? "option" : "argument", word, words_of(*command, kept));
  } catch (const CLI::ParseError& error) { std::fprintf(stderr, "near: %s\n", error.what()); }
  return false;
}

int run(int count, char** arguments) {
  Options options;
  Parser parser;
  parser.app.set_version_flag("-V,--version", "near (NearMPI) " NEAR_VERSION);
  parser.app.require_subcommand(1);
  parser.app.failure_message(CLI::FailureMessage::simple);
  add_top(parser, options);
  add_place(parser, options.place);
  add_calibrate(parser, options);
  add_model(parser, options.model);
  add_model_of_collectives(parser, options.scale);
  add_coverage(parser, options);
  add_info(parser, options);
  if (int status = 0; !parse(parser, count, arguments, status)) return status;

  if (!base::read_knobs(environ).ok()) return complain();
  // If the output goes to a log, prints only once.
  if (parser.interval->empty() && !os::is_terminal(1)) options.once = true;
  if (parser.top->parsed()) {
    if (!choose_job(options.job)) return 1;
    const auto parts = segment::parts_of(options.job);
    return parts.empty()
               ? top(options.job, options.once, options.interval_s)
               : show_parts(options.job, parts, {"top", "--once"}, options.once, options.interval_s);
  }
  if (parser.place->parsed()) {
    bool of_job = options.place.pid == 0 && options.place.command.empty();
    if (of_job && !choose_job(options.place.job)) return 1;
    return place(options.place);
  }
  if (parser.calibrate->parsed())
    return calibrate(options.show     ? Calibrate::show
                     : options.remove ? Calibrate::remove
                                      : Calibrate::measure);
  if (parser.model->parsed()) {
    if (!parser.model_coll->empty()) {
      options.scale.plot = options.model.plot;
      return model_collectives(options.scale);
    }
    if (!options.model.plot.empty() && !options.model.check) {
      std::fputs("near: --plot requires --check or --coll\n", stderr);
      return usage_status;
    }
    if (!options.model.type.empty() || options.model.check) return model(options.model);
    std::fputs("near: model needs --type, --check or both, or --coll; `near model --help` has an example\n",
               stderr);
    return usage_status;
  }
  if (parser.coverage->parsed()) return coverage(options.all);
  if (!parser.info_coll->empty()) return collectives(options.collectives);
  if (!options.transport && parser.info_job->empty()) return info(options.knobs);
  if (!choose_job(options.job)) return 1;
  if (const auto parts = segment::parts_of(options.job); !parts.empty()) {
    std::vector<std::string> asked = {"info"};
    if (options.transport) asked.emplace_back("--transport");
    return show_parts(options.job, parts, asked, true, 0);
  }
  return options.transport ? transport(options.job) : job_machine(options.job);
}

} // namespace
} // namespace near::tools

int main(int count, char** arguments) {
  try {
    return near::tools::run(count, arguments);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "near: %s\n", failure.what());
    return 1;
  }
}
