// `near`: the command line.
#include "base/knob.h"
#include "base/text.h"
#include "os/descriptor.h"
#include "tools/commands.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <unistd.h>

namespace near::tools {

int complain() {
  std::fprintf(stderr, "near: %s\n", base::printable(base::failure_text(), true).c_str());
  return 1;
}

namespace {

constexpr int usage_status = 2;

int unknown(std::string_view word, const std::vector<std::string_view>& known) {
  auto hint = base::did_you_mean(word, known);
  if (hint.empty()) hint = "; `near --help` lists what there is";
  std::fprintf(stderr, "near: unknown word '%s'%s\n", std::string(word).c_str(), hint.c_str());
  return usage_status;
}

std::vector<std::string_view> words_of(const CLI::App& app, std::vector<std::string>& kept) {
  for (const auto* command : app.get_subcommands({})) kept.push_back(command->get_name());
  for (const auto* option : app.get_options())
    for (const auto& name : option->get_lnames()) kept.push_back("--" + name);
  return {kept.begin(), kept.end()};
}

/// Instead of CLI11's own checks, whose sentences hold the limits of the C++ type.
CLI::Validator number(const char* what) {
  auto check = [what](std::string& text) {
    char* end = nullptr;
    double value = std::strtod(text.c_str(), &end);
    bool good = end != text.c_str() && *end == 0 && value > 0 && value < 1e9;
    return good ? std::string() : base::format("'{}' is not {}", text, what);
  };
  return {check, ""};
}

/// Of --job, whose number may be left out: 0.
CLI::Validator job_number() {
  auto check = [](std::string& text) {
    std::int32_t value = 0;
    const char* last = text.data() + text.size();
    if (text.empty() || text == "true") { // what CLI11 has for no value
      text = "0";
      return std::string();
    }
    auto [end, error] = std::from_chars(text.data(), last, value);
    bool good = error == std::errc{} && end == last && value > 0;
    return good ? std::string() : base::format("'{}' is not the process number of a job's mpiexec", text);
  };
  return {check, ""};
}

/// Of a share of pages.
CLI::Validator percentage() {
  auto check = [](std::string& text) {
    char* end = nullptr;
    double value = std::strtod(text.c_str(), &end);
    bool good = end != text.c_str() && *end == 0 && value > 0 && value <= 100;
    return good ? std::string() : base::format("'{}' is not a percentage above 0 and up to 100", text);
  };
  return {check, ""};
}

int run(int count, char** arguments) {
  CLI::App app("Looks at NearMPI jobs and at this machine.", "near");
  app.set_version_flag("-V,--version", "near (NearMPI) " NEAR_VERSION);
  app.require_subcommand(1);
  app.failure_message(CLI::FailureMessage::simple);

  std::int32_t job = 0;
  bool once = false, all = false, knobs = false, ways = false, show = false, remove = false;
  double interval = 1;
  auto* top_command = app.add_subcommand("top", "what the ranks of a running job are doing");
  constexpr const char* which_job = "process number of the job's mpiexec; without it the only job of yours";
  top_command->add_option("--job", job, which_job)
      ->type_name("[PID]")
      ->expected(0, 1)
      ->transform(job_number());
  top_command->add_flag("--once", once,
                        "print once, do not go on; so it is when standard output is no terminal");
  auto* interval_option =
      top_command->add_option("--interval", interval, "go on, with so many seconds between two looks")
          ->type_name("SECONDS")
          ->transform(number("a number of seconds"));
  PlaceOptions places;
  auto* place_command =
      app.add_subcommand("place", "where the memory of a running job or process lies, and where it should");
  auto* place_job = place_command->add_option("--job", places.job, which_job)
                        ->type_name("[PID]")
                        ->expected(0, 1)
                        ->transform(job_number());
  auto* place_pid = place_command->add_option("--pid", places.pid, "a process by itself, of whatever program")
                        ->type_name("PID")
                        ->transform(number("a process number"))
                        ->excludes(place_job);
  place_command
      ->add_option("command", places.command,
                   "behind --: a program to start, such as mpiexec; shown when it has ended")
      ->excludes(place_job)
      ->excludes(place_pid);
  place_command->add_flag("--all", places.all, "every mapping and part, with its ranges");
  place_command->add_flag("--json", places.json, "one JSON document, with everything");
  place_command->add_option("--output", places.output, "write text or JSON there, not to standard output")
      ->type_name("FILE");
  place_command->add_option("--html", places.page, "write a page for a browser there, besides the text")
      ->type_name("FILE");
  place_command
      ->add_option("--assert-local", places.assert_local,
                   "end with status 3 when less of a rank's memory lies where it belongs")
      ->type_name("PERCENT")
      ->transform(percentage());
  place_command->add_flag("--watch", places.watch, "go on until the job ends");
  place_command
      ->add_option("--interval", places.interval_s, "with --watch or a program: seconds between two looks")
      ->type_name("SECONDS")
      ->transform(number("a number of seconds"));
  auto* calibrate_command =
      app.add_subcommand("calibrate", "measures this machine's copies, for what jobs begin with (2 s)");
  auto* show_flag = calibrate_command->add_flag("--show", show, "print what was measured, measure nothing");
  calibrate_command->add_flag("--remove", remove, "remove what was measured")->excludes(show_flag);
  auto* coverage_command = app.add_subcommand("coverage", "how much of MPI 5.0 is there, by chapter");
  coverage_command->add_flag("--all", all, "every function");
  auto* info_command = app.add_subcommand("info", "version, machine, slots");
  info_command->add_flag("--knobs", knobs, "the knobs (environment variables) with their present values");
  info_command->add_flag("--transport", ways, "by which way large messages of a running job travel, and why");
  auto* info_job =
      info_command->add_option("--job", job, "the machine of a running job: " + std::string(which_job))
          ->type_name("[PID]")
          ->expected(0, 1)
          ->transform(job_number());

  // A word that is no subcommand is told with the nearest one, before CLI11 complains that one is missing.
  std::vector<std::string> kept;
  if (count == 1) {
    std::fputs(app.help().c_str(), stderr);
    return usage_status;
  }
  if (arguments[1][0] != '-')
    if (auto known = words_of(app, kept); std::find(known.begin(), known.end(), arguments[1]) == known.end())
      return unknown(arguments[1], known);
  try {
    app.parse(count, arguments);
  } catch (const CLI::Success& success) { return app.exit(success); } catch (const CLI::ExtrasError&) {
    auto* command = app.get_subcommands().empty() ? &app : app.get_subcommands().front();
    auto extra = app.remaining(true);
    kept.clear();
    return unknown(extra.empty() ? "" : extra.front(), words_of(*command, kept));
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "near: %s\n", error.what());
    return usage_status;
  }
  if (!base::read_knobs(environ).ok()) return complain();
  if (interval_option->empty() && !os::is_terminal(1)) once = true; // a log has no use for a picture a second
  if (top_command->parsed()) return choose_job(job) ? top(job, once, interval) : 1;
  if (place_command->parsed()) {
    bool of_job = places.pid == 0 && places.command.empty();
    if (of_job && !choose_job(places.job)) return 1;
    return place(places);
  }
  if (calibrate_command->parsed())
    return calibrate(show ? Calibrate::show : remove ? Calibrate::remove : Calibrate::measure);
  if (coverage_command->parsed()) return coverage(all);
  if (!ways && info_job->empty()) return info(knobs);
  if (!choose_job(job)) return 1;
  return ways ? transport(job) : job_machine(job);
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
