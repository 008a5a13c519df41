#include "launch/outcome.h"

#include "boot/boot.h"
#include "machines/frames.h"
#include "os/signals.h"
#include "surface/functions.h"

#include <csignal>

namespace near::launch {
namespace {

std::string memory_limit() {
  auto limits = os::read_limits();
  const auto* least = limits.least_memory();
  return least == nullptr ? "" : base::format(" of {} MiB ({})", least->bytes >> 20, least->group);
}

// The most likely cause first, as an experienced user would guess.
std::string likely_cause(const Outcome& outcome) {
  switch (outcome.ending.signal()) {
  case SIGKILL:
    if (outcome.kills.group > 0)
      return "out of memory: the kernel ended it at the control group's memory limit" + memory_limit();
    if (outcome.kills.machine > 0)
      return "out of memory: the kernel ended it because the machine had none left";
    return "killed by a user or by a limit of the batch system (the kernel reports no memory shortage)";
  case SIGBUS:
    return "memory that it had mapped could not be provided: an exhausted memory limit" + memory_limit() +
           ", or a file that was truncated";
  case SIGSEGV: return "invalid memory access (an address that the process may not use)";
  case SIGABRT: return "it aborted itself: a failed assertion or an uncaught exception; see its output above";
  case SIGILL: return "an instruction that this processor does not have, or a deliberate trap";
  case SIGFPE: return "a division by zero";
  case SIGXCPU: return "the limit on processor time (ulimit -t)";
  case SIGXFSZ: return "the limit on file size (ulimit -f)";
  case SIGPIPE: return "it wrote to a pipe or socket that nobody reads any more";
  case SIGTERM:
  case SIGINT:
  case SIGHUP: return "it was asked to end from outside";
  default: return "";
  }
}

std::string where(const Outcome& outcome, std::uint64_t now_ns) {
  if (!outcome.was_in_mpi || outcome.activity.function == 0) return "";
  return " in " +
         segment::activity_text(outcome.activity, {surface::function_name, surface::function_tells}, now_ns);
}

std::string who(const Outcome& outcome) {
  return base::format("rank {} ({}, pid {}{}{})", outcome.rank, outcome.program, outcome.ending.pid,
                      outcome.machine.empty() ? "" : " on ", outcome.machine);
}

std::string sentence(const Outcome& outcome, std::uint64_t now_ns) {
  switch (outcome.reason) {
  case Reason::none:
  case Reason::elsewhere: return "";
  case Reason::signalled: {
    auto cause = likely_cause(outcome);
    return base::format("{} was ended by signal {} ({}){}{}{}", who(outcome), outcome.ending.signal(),
                        os::signal_name(outcome.ending.signal()), where(outcome, now_ns),
                        cause.empty() ? "" : "; likely cause: ", cause);
  }
  case Reason::failed: {
    const char* hint = "";
    if (outcome.ending.status() == 127) hint = "; 127 usually says that a program or a library was not found";
    if (outcome.ending.status() == 126) hint = "; 126 usually says that a program could not be executed";
    return base::format("{} exited with status {}{}{}{}", who(outcome), outcome.ending.status(),
                        where(outcome, now_ns), outcome.late ? " after MPI_Finalize" : "", hint);
  }
  case Reason::aborted:
    return base::format("rank {} ({}{}{}) called MPI_Abort with code {}", outcome.rank, outcome.program,
                        outcome.machine.empty() ? "" : " on ", outcome.machine, outcome.abort_code);
  case Reason::unfinalized:
    return base::format("{} exited with status 0 after MPI_Init, but without MPI_Finalize{}", who(outcome),
                        where(outcome, now_ns));
  case Reason::no_init:
    return base::format("{} exited with status 0 without calling MPI_Init, which other ranks wait in",
                        who(outcome));
  case Reason::vanished:
    return base::format("the MPI process of rank {} (pid {}) ended without MPI_Finalize{}; '{}' {}",
                        outcome.rank, outcome.ending.pid, where(outcome, now_ns), outcome.program,
                        outcome.text);
  case Reason::abandoned: return "killed by a user, by a batch system or for lack of memory";
  case Reason::interrupted: return base::format("ended by {}", os::signal_name(outcome.signal));
  case Reason::timed_out: return outcome.text;
  case Reason::not_started:
  case Reason::unwritten: return outcome.text;
  }
  return "";
}

} // namespace

int weight(const Outcome& outcome) {
  switch (outcome.reason) {
  case Reason::none:
  case Reason::elsewhere: return 0;
  case Reason::vanished:
  case Reason::no_init: return 1;
  case Reason::unfinalized: return 2;
  case Reason::failed: return 3;
  case Reason::aborted: return 4;
  case Reason::signalled: return 5;
  case Reason::not_started:
  case Reason::unwritten:
  case Reason::timed_out:
  case Reason::interrupted:
  case Reason::abandoned: return weight_of_job;
  }
  return 0;
}

std::string time_out_text(double seconds) {
  return base::format("the job was ended after {:.9g} s (--timeout); what its ranks were doing", seconds);
}

OutcomeReport report_about_job(std::string sentence, int status) {
  OutcomeReport report;
  report.weight = weight_of_job;
  report.status = status;
  report.sentence = std::move(sentence);
  return report;
}

OutcomeReport report_about_unwatched(int signal, unsigned ranks) {
  OutcomeReport report =
      report_about_job(base::format("the process that watched the ranks on {} was killed by {}",
                                    os::machine_name(), os::signal_name(signal)),
                       128 + signal);
  report.of_machine = true;
  report.others = ranks;
  return report;
}

OutcomeReport report_of(const Outcome& outcome, unsigned others, unsigned not_started, std::uint64_t now_ns) {
  OutcomeReport report;
  report.weight = weight(outcome);
  report.status = outcome.status;
  report.told = outcome.told;
  report.has_table = outcome.reason == Reason::timed_out;
  report.in_start = outcome.reason == Reason::not_started;
  report.sentence = sentence(outcome, now_ns);
  report.others = others;
  report.not_started = not_started;
  return report;
}

std::string outcome_text(const OutcomeReport& report) {
  if (report.sentence.empty() || report.told) return "";
  std::string text = "mpiexec: " + report.sentence;
  bool of_job = report.weight == weight_of_job;
  if (report.others > 0 && !report.has_table)
    text += base::format("; {}{} {} ended with it", report.others, of_job ? "" : " other",
                         report.others == 1 ? "rank was" : "ranks were");
  if (report.not_started > 0 && !report.has_table && !report.in_start)
    text += base::format("; {} {} not started", report.not_started, report.not_started == 1 ? "was" : "were");
  if (text.back() != '\n') text += "\n";
  return text;
}

std::string OutcomeReport::body() const {
  return machines::BodyWriter()
      .number(static_cast<std::uint64_t>(weight))
      .number(static_cast<std::uint64_t>(status))
      .number(told)
      .number(has_table)
      .number(of_machine)
      .number(in_start)
      .text(sentence)
      .number(others)
      .number(not_started)
      .body();
}

bool OutcomeReport::read(std::string_view body, OutcomeReport& report) {
  machines::BodyReader reader(body);
  OutcomeReport read;
  read.weight = static_cast<int>(reader.number());
  read.status = static_cast<int>(reader.number() & 0xff);
  read.told = reader.number() != 0;
  read.has_table = reader.number() != 0;
  read.of_machine = reader.number() != 0;
  read.in_start = reader.number() != 0;
  read.sentence = reader.text();
  read.others = static_cast<unsigned>(reader.number());
  read.not_started = static_cast<unsigned>(reader.number());
  if (!reader.complete()) return false;
  report = std::move(read);
  return true;
}

} // namespace near::launch
