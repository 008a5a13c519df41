// The subcommands of `near`. Each returns the exit status.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace near::tools {

/// What the ranks of a running job do: the job whose mpiexec is process `launcher`; again every `interval_s`
/// seconds until it ends, or `once`.
int top(std::int32_t launcher, bool once, double interval_s);

/// How much of the standard is there, by chapter; with `all`, every function.
int coverage(bool all);

/// Measures this machine's copies and keeps the profile, shows it, or removes it.
enum class Calibrate { measure, show, remove };
int calibrate(Calibrate what);

/// Version, machine, slots, profile and running jobs; the knobs with their present values.
int info(bool knobs);
/// `near info --job`: the machine of a running job, as mpiexec has told it.
int job_machine(std::int32_t launcher);
/// `near info --transport`: the ways of large messages in a running job.
int transport(std::int32_t launcher);

/// Where the pages of a job, a process, or a program that is started for it lie.
struct PlaceOptions {
  std::int32_t job = 0, pid = 0; ///< of one of them, or
  std::vector<std::string> command;
  bool all = false, json = false, watch = false;
  double interval_s = 1;
  double assert_local = 0; ///< percent; 0: nothing is asserted
  std::string output;      ///< file for text or JSON; "": standard output
  std::string page;        ///< file for an HTML page; "": none
};
int place(const PlaceOptions& options);

/// Sets `job` to the launcher of the only running job of this user, unless it is set already. Where there are
/// none or several: says so, lists them, and returns false.
bool choose_job(std::int32_t& job);
/// A table of jobs, by their launchers.
std::string jobs_text(const std::vector<std::int32_t>& launchers);

/// "near: <failure text>" on standard error; returns 1.
int complain();

} // namespace near::tools
