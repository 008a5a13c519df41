// The library's and the launcher's ends of the start-up contract (boot.h).
#include "boot/boot.h"

#include "base/text.h"
#include "boot/by_table.h"
#include "boot/pmi.h"
#include "boot/rank_list.h"
#include "os/memory.h"
#include "os/process.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <unistd.h>
#include <utility>

namespace near::boot {
namespace {

constexpr const char* version_name = "NEAR_BOOT_VERSION";
constexpr const char* segment_name = "NEAR_BOOT_SEGMENT"; // descriptor:device:inode
constexpr const char* launcher_name = "NEAR_BOOT_LAUNCHER";
constexpr const char* rank_name = "NEAR_BOOT_RANK";
constexpr const char* size_name = "NEAR_BOOT_SIZE";
constexpr const char* application_name = "NEAR_BOOT_APPLICATION";
constexpr const char* binding_name = "NEAR_BOOT_BINDING";
// Only in jobs on several machines:
constexpr const char* machine_name = "NEAR_BOOT_MACHINE"; // number:machines
constexpr const char* ranks_name = "NEAR_BOOT_RANKS";     // of this machine: rank_list.h
constexpr const char* table_name = "NEAR_BOOT_TABLE";     // descriptor
constexpr const char* all_names[] = {version_name,     segment_name, launcher_name, rank_name,  size_name,
                                     application_name, binding_name, machine_name,  ranks_name, table_name};

template <class T>
bool take_number(std::string_view& text, T& number) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (!text.empty() && text.front() == ':') text.remove_prefix(1);
  return true;
}

template <class T>
Result read_number(char** environment, const char* name, T& number) {
  auto text = base::find_variable(environment, name);
  if (!text)
    return base::fail(base::Code::invalid,
                      "{} is missing although other NEAR_BOOT_ variables are set; start this program with "
                      "mpiexec, or unset all NEAR_BOOT_ variables to run it alone",
                      name);
  std::string_view rest = *text;
  if (!take_number(rest, number) || !rest.empty())
    return base::fail(base::Code::invalid, "{}={}: expected a number", name, *text);
  return {};
}

Result reach_segment(Start& start) {
  os::FileIdentity found;
  if (os::identify(start.segment_descriptor, found).ok() && found == start.segment) return {};
  int wanted = start.segment_descriptor, opened = -1;
  Result result = os::open_descriptor_of(start.launcher, wanted, true, opened);
  if (result.ok()) {
    if (os::identify(opened, found).ok() && found == start.segment) {
      start.segment_descriptor = opened;
      return {};
    }
    ::close(opened);
    base::set_failure_text("process " + std::to_string(start.launcher) +
                           " is no longer the mpiexec that started this program");
  }
  return base::fail(
      base::Code::gone,
      "the shared segment of the job that mpiexec (pid {}) started is out of reach: {}; if this "
      "program is not part of that job, unset all NEAR_BOOT_ variables",
      start.launcher, std::string(base::failure_text()));
}

/// Reads what a process additionally learns in a job on several machines.
Result read_machine(char** environment, Start& start) {
  const auto text = base::find_variable(environment, machine_name);
  if (!text) return {};
  std::string_view rest = *text;
  if (!take_number(rest, start.machine) || !take_number(rest, start.machines) || !rest.empty() ||
      start.machine >= start.machines)
    return base::fail(base::Code::invalid, "{}={}: expected number:machines", machine_name, *text);
  if (start.machines == 1) return {};
  NEAR_TRY(read_number(environment, table_name, start.table_descriptor));
  const auto list = base::find_variable(environment, ranks_name).value_or("");
  if (!read_rank_list(list, start.size, start.ranks).ok())
    return base::fail(base::Code::invalid, "{}={}", ranks_name, std::string(base::failure_text()));
  const auto own = std::lower_bound(start.ranks.begin(), start.ranks.end(), start.rank);
  if (own == start.ranks.end() || *own != start.rank)
    return base::fail(base::Code::invalid, "{}={} does not contain {}={}", ranks_name, list, rank_name,
                      start.rank);
  start.row = static_cast<std::uint32_t>(own - start.ranks.begin());
  start.here = static_cast<std::uint32_t>(start.ranks.size());
  return {};
}

} // namespace

Result read_start(char** environment, Start& start) {
  bool ours = false;
  for (const char* name : all_names) ours = ours || base::find_variable(environment, name).has_value();
  if (!ours && is_table_offered(environment)) return start_by_table(environment, start);
  if (!ours) {
    std::string other = foreign_launcher(environment);
    if (other.empty()) {
      start = Start{};
      return {};
    }
    return base::fail(
        base::Code::unsupported,
        "this process was started by {}, but without PMI-1 or PMIx, by which NearMPI learns of the other "
        "processes; with Slurm say srun --mpi=pmi2, on one machine start the program with NearMPI's own "
        "`mpiexec -n N "
        "program`, or unset the variable named here to run each process alone",
        other);
  }

  Start read;
  read.singleton = false;
  int version = 0;
  NEAR_TRY(read_number(environment, version_name, version));
  if (version != contract_version)
    return base::fail(base::Code::unsupported,
                      "mpiexec uses version {} of the start-up contract and this library version {}; use the "
                      "mpiexec that is installed with the library",
                      version, contract_version);
  std::string_view segment = base::find_variable(environment, segment_name).value_or("");
  if (!take_number(segment, read.segment_descriptor) || !take_number(segment, read.segment.device) ||
      !take_number(segment, read.segment.inode) || !segment.empty())
    return base::fail(base::Code::invalid, "{}={}: expected descriptor:device:inode", segment_name,
                      base::find_variable(environment, segment_name).value_or(""));
  NEAR_TRY(read_number(environment, launcher_name, read.launcher));
  NEAR_TRY(read_number(environment, rank_name, read.rank));
  NEAR_TRY(read_number(environment, size_name, read.size));
  NEAR_TRY(read_number(environment, application_name, read.application));
  read.row = read.rank;
  read.here = read.size;
  if (read.rank >= read.size)
    return base::fail(base::Code::invalid, "{}={} is outside a job of {} processes", rank_name, read.rank,
                      read.size);
  NEAR_TRY(read_machine(environment, read));
  read.binding = base::find_variable(environment, binding_name).value_or("");
  NEAR_TRY(reach_segment(read));
  if (has_table(read)) NEAR_TRY(connect_to_table(read));
  start = std::move(read);
  return {};
}

Result meet(Start& start, std::span<const std::byte> address) {
  return has_table(start) ? meet_by_table(start, address) : Result();
}

Result address_of(const Start& start, std::uint32_t rank, std::vector<std::byte>& address) {
  if (has_table(start)) return address_in_table(rank, address);
  return base::fail(base::Code::internal, "rank {} has no address: the job has one machine", rank);
}

bool all_leave(const Start& start) { return !has_table(start) || all_leave_by_table(); }

void leave(const Start& start) {
  if (has_table(start)) leave_table();
}

std::uint32_t size_of_job(char** environment) {
  if (!base::find_variable(environment, size_name) && Pmi::is_offered(environment))
    return Pmi::size_in(environment);
  if (!base::find_variable(environment, size_name)) return foreign_launcher(environment).empty() ? 1 : 0;
  std::uint32_t size = 0;
  return read_number(environment, size_name, size).ok() ? size : 0;
}

void forget_start() {
  for (const char* name : all_names) unsetenv(name);
  for (const char* name : {"PMI_FD", "PMI_RANK", "PMI_SIZE", "PMIX_NAMESPACE", "PMIX_RANK"}) unsetenv(name);
}

std::vector<std::string> write_environment(const Start& start) {
  auto row = [](const char* name, const std::string& value) { return std::string(name) + "=" + value; };
  std::vector<std::string> rows = {row(version_name, std::to_string(contract_version)),
                                   row(segment_name, base::format("{}:{}:{}", start.segment_descriptor,
                                                                  start.segment.device, start.segment.inode)),
                                   row(launcher_name, std::to_string(start.launcher)),
                                   row(rank_name, std::to_string(start.rank)),
                                   row(size_name, std::to_string(start.size)),
                                   row(application_name, std::to_string(start.application)),
                                   row(binding_name, start.binding)};
  if (start.machines > 1) {
    rows.push_back(row(machine_name, base::format("{}:{}", start.machine, start.machines)));
    rows.push_back(row(ranks_name, rank_list_text(start.ranks)));
    rows.push_back(row(table_name, std::to_string(start.table_descriptor)));
  }
  return rows;
}

void give_rank_variables(const Start& start, std::vector<std::string>& environment) {
  const std::pair<std::string_view, std::uint32_t> rows[] = {
      {"NEAR_RANK", start.rank},       {"NEAR_SIZE", start.size},      {"NEAR_LOCAL_RANK", start.row},
      {"NEAR_LOCAL_SIZE", start.here}, {"MPI_LOCALRANKID", start.row}, {"MPI_LOCALNRANKS", start.here}};
  for (const auto& [name, value] : rows) {
    std::erase_if(environment, [wanted = std::string(name) + "="](const std::string& row) {
      return row.starts_with(wanted);
    });
    environment.push_back(base::format("{}={}", name, value));
  }
}

std::vector<std::string> marks_of(std::int32_t launcher, std::uint32_t rank) {
  return {base::format("{}={}", launcher_name, launcher), base::format("{}={}", rank_name, rank)};
}

void tell_launcher(const Start& start) {
  if (!start.singleton && !start.by_other) os::send_notice_signal(start.launcher);
}

int exit_status_of_abort(int code) {
  if (code == 0) return 1;
  int status = code & 0xff;
  return status == 0 ? 255 : status;
}

void abort_job(const Start& start, const segment::Segment& segment, int code, segment::Abort how) {
  if (!start.singleton && segment.mapped()) {
    auto& entry = segment.entry(start.row);
    entry.abort_code.store_relaxed(code);
    // SYNC: abort — the launcher that sees `aborting` must see the code.
    entry.aborting.store_release(static_cast<std::uint32_t>(how));
    tell_launcher(start);
  }
  std::fflush(nullptr);
  if (start.by_other) abort_by_table(exit_status_of_abort(code));
  _exit(exit_status_of_abort(code));
}

} // namespace near::boot
