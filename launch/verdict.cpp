#include "launch/verdict.h"

#include "boot/boot.h"
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

// Most likely first: what a person who has seen many jobs die would guess.
std::string likely_cause(const Verdict& verdict) {
  switch (verdict.ending.signal()) {
  case SIGKILL:
    if (verdict.kills.group > 0)
      return "out of memory: the kernel ended it at the control group's memory limit" + memory_limit();
    if (verdict.kills.machine > 0)
      return "out of memory: the kernel ended it because the machine had none left";
    return "somebody or a batch system's limit killed it (the kernel reports no memory shortage)";
  case SIGBUS:
    return "memory that it had mapped could not be provided: a full memory limit" + memory_limit() +
           ", or a file that was cut short";
  case SIGSEGV: return "it used an address that is not its own";
  case SIGABRT:
    return "it gave up by itself: a failed assertion or an uncaught exception, told above if it was told";
  case SIGILL: return "an instruction that this processor lacks, or a deliberate trap";
  case SIGFPE: return "a division by zero";
  case SIGXCPU: return "the limit of processor time (ulimit -t)";
  case SIGXFSZ: return "the limit of file size (ulimit -f)";
  case SIGPIPE: return "it wrote to somebody who no longer reads";
  case SIGTERM:
  case SIGINT:
  case SIGHUP: return "somebody asked it to end";
  default: return "";
  }
}

std::string where(const Verdict& verdict, std::uint64_t now_ns) {
  if (!verdict.was_in_mpi || verdict.activity.function == 0) return "";
  return " in " + segment::activity_text(verdict.activity, surface::function_name, now_ns);
}

std::string who(const Verdict& verdict) {
  return base::format("rank {} ({}, pid {})", verdict.rank, verdict.program, verdict.ending.pid);
}

std::string sentence(const Verdict& verdict, std::uint64_t now_ns) {
  switch (verdict.reason) {
  case Reason::none:
  case Reason::abandoned: return "";
  case Reason::signalled: {
    auto cause = likely_cause(verdict);
    return base::format("{} was ended by signal {} ({}){}{}{}", who(verdict), verdict.ending.signal(),
                        os::signal_name(verdict.ending.signal()), where(verdict, now_ns),
                        cause.empty() ? "" : "; likely cause: ", cause);
  }
  case Reason::failed: {
    const char* hint = "";
    if (verdict.ending.status() == 127) hint = "; 127 usually says that a program or a library was not found";
    if (verdict.ending.status() == 126) hint = "; 126 usually says that a program could not be executed";
    return base::format("{} exited with status {}{}{}", who(verdict), verdict.ending.status(),
                        where(verdict, now_ns), hint);
  }
  case Reason::aborted:
    return base::format("rank {} ({}) called MPI_Abort with code {}", verdict.rank, verdict.program,
                        verdict.abort_code);
  case Reason::unfinalized:
    return base::format("{} exited with status 0 after MPI_Init, but without MPI_Finalize{}", who(verdict),
                        where(verdict, now_ns));
  case Reason::no_init:
    return base::format("{} exited with status 0 without calling MPI_Init, which other ranks wait in",
                        who(verdict));
  case Reason::vanished:
    return base::format("the MPI process of rank {} (pid {}) ended without MPI_Finalize{}; '{}' {}",
                        verdict.rank, verdict.ending.pid, where(verdict, now_ns), verdict.program,
                        verdict.text);
  case Reason::interrupted: return base::format("ended by {}", os::signal_name(verdict.signal));
  case Reason::timed_out: return verdict.text;
  case Reason::not_started:
  case Reason::unwritten: return verdict.text;
  }
  return "";
}

} // namespace

int weight(const Verdict& verdict) {
  switch (verdict.reason) {
  case Reason::none: return 0;
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

std::string verdict_text(const Verdict& verdict, unsigned others, std::uint64_t now_ns) {
  if (verdict.reason == Reason::none || verdict.told) return "";
  std::string text = "mpiexec: " + sentence(verdict, now_ns);
  bool of_job = weight(verdict) == weight_of_job;
  if (others > 0 && verdict.reason != Reason::timed_out)
    text += base::format("; {}{} {} ended with it", others, of_job ? "" : " other",
                         others == 1 ? "rank was" : "ranks were");
  if (text.back() != '\n') text += "\n";
  return text;
}

} // namespace near::launch
