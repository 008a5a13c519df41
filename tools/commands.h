// The subcommands of `near`. Each returns the exit status.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace near::tools {

/// Shows what the ranks of a running job are doing. `launcher` is the process id of its mpiexec. Repeats
/// every `interval_s` seconds until the job ends, unless `once`.
int top(std::int32_t launcher, bool once, double interval_s);

/// Shows how much of the standard is implemented, by chapter; with `all`, lists every function.
int coverage(bool all);

/// Measures copies on this machine and saves the profile, shows it, or removes it.
enum class Calibrate { measure, show, remove };
int calibrate(Calibrate what);

/// The options of `near model`.
struct ModelOptions {
  std::string type;        ///< see model/type_text.h; "": none
  std::uint64_t bytes = 0; ///< packed; 0: one element
  bool check = false, all = false;
  std::string plot; ///< file for a drawing of the grid; "": none
};
/// The options of `near model --coll`. Times in microseconds, bandwidths in GB/s, 0: the default.
struct ModelCollectivesOptions {
  std::string names;                 ///< "broadcast,allreduce"; "": both
  std::vector<std::string> machines; ///< one job each, see model/job.h
  std::uint32_t nodes = 4, nic_node = 1, root = 0;
  double latency = 0, overhead = 0, bandwidth = 0, link_bandwidth = 0, copy_bandwidth = 0,
         memory_bandwidth = 0;
  std::uint64_t eager = 0; ///< bytes
  std::string plot;        ///< file for a drawing; "": none
};
/// Predicts broadcasts and allreduces of many machines.
int model_collectives(const ModelCollectivesOptions& options);
/// Predicts the time for packing and unpacking a datatype; with `check`, compares it with measurements.
int model(const ModelOptions& options);

/// Shows version, machine, slots, profile and running jobs; with `knobs`, the knobs and their present
/// values.
int info(bool knobs);
/// `near info --job`: shows the machine of a running job, as mpiexec has published it.
int job_machine(std::int32_t launcher);
/// `near info --transport`: shows the protocols of large messages in a running job.
int transport(std::int32_t launcher);

/// The options of `near info --coll`.
struct CollectivesOptions {
  std::string names;            ///< "allreduce,broadcast"; "": all
  std::uint32_t ranks = 0;      ///< 0: as many as there are processors
  std::uint32_t processors = 0; ///< 0: those of this machine that this process may use
  std::uint32_t nodes = 0;      ///< NUMA nodes on which the ranks run; 0: this machine's
  bool why = false;
  std::string machines;    ///< see model/job.h; "": one machine
  bool turns = false;      ///< one rank on each machine in turn
  bool leaders = false;    ///< show who leads, and what the leaders do
  std::uint64_t bytes = 8; ///< with `leaders`
  std::uint32_t root = 0;  ///< with `leaders`
};
/// Shows which algorithms collectives use, by size; with `why`, the reasons.
int collectives(const CollectivesOptions& options);
/// collectives() for a job on several machines.
int collectives_between_machines(const CollectivesOptions& options);

/// The options of `near place`. One of `job`, `pid` and `command` is set.
struct PlaceOptions {
  std::int32_t job = 0, pid = 0; ///< process ids; 0: not given
  std::vector<std::string> command;
  bool all = false, json = false, watch = false;
  bool both = false; ///< a line of JSON, then the text: for `near place` on another machine
  double interval_s = 1;
  double assert_local = 0; ///< percent; 0: nothing is asserted
  std::string output;      ///< file for text or JSON; "": standard output
  std::string page;        ///< file for an HTML page; "": none
};
int place(const PlaceOptions& options);

/// Sets `job` to the launcher of this user's only running job, unless it is already set. If there is none
/// or there are several, prints a message and the list, and returns false.
bool choose_job(std::int32_t& job);
/// A table of jobs, identified by their launchers.
std::string jobs_text(const std::vector<std::int32_t>& launchers);

/// Prints "near: <failure text>" on standard error; returns 1.
int complain();

} // namespace near::tools
