#include "launch/command.h"

#include "base/knob.h"
#include "launch/option_table.h"
#include "launch/slurm.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <unistd.h>

namespace near::launch {
namespace {

using base::Code;
using base::fail;

const Option* find_option(std::string_view name) {
  for (const auto& option : options())
    for (const char* spelling : option.spellings)
      if (name == spelling) return &option;
  return nullptr;
}

Result unknown_option(const std::string& written, std::string_view name) {
  std::vector<std::string_view> known;
  for (const auto& option : options())
    for (const char* spelling : option.spellings)
      if (std::strlen(spelling) > 2) known.push_back(spelling);
  auto nearest = base::nearest_word(name, known);
  if (nearest.empty())
    return fail(Code::invalid, "unknown option {}; `mpiexec --help` lists the options", written);
  const char* dashes = written.starts_with("--") ? "--" : "-";
  return fail(Code::invalid, "unknown option {}; did you mean {}{}?", written, dashes, nearest);
}

// "-env NAME -n 2": the value was forgotten, and without a word the next option would become it.
Result check_setting(const Parsing& parsing, int values) {
  if (values >= 0 || parsing.values.size() != 2) return {};
  const auto& [name, value] = std::pair(parsing.values[0], parsing.values[1]);
  if (!value.starts_with('-') || find_option(value.substr(value.starts_with("--") ? 2 : 1)) == nullptr)
    return {};
  return fail(
      Code::invalid,
      "{} {}: its value seems to be missing, since {} is an option; if it is the value, write {} {}={}",
      parsing.option, name, value, parsing.option, name, value);
}

// The options before one program and the program itself, up to the next ":".
Result parse_section(const std::vector<std::string>& arguments, std::size_t& at, Command& command) {
  Application application;
  for (; at < arguments.size() && arguments[at] != ":"; ++at) {
    const auto& written = arguments[at];
    if (written == "--") {
      ++at;
      break;
    }
    if (written.size() < 2 || written[0] != '-') break;
    std::string name = written.substr(written[1] == '-' ? 2 : 1);
    Parsing parsing{command, application, {}, written};
    auto equals = name.find('=');
    bool attached = equals != std::string::npos;
    if (attached) {
      parsing.values.push_back(name.substr(equals + 1));
      name.resize(equals);
      parsing.option = written.substr(0, written.find('='));
    }
    const Option* option = find_option(name);
    if (option == nullptr) return unknown_option(parsing.option, name);
    if (attached && option->values != 1 && option->values != -2)
      return fail(Code::invalid, "{} does not take a value after '='", parsing.option);
    int wanted = option->values;
    if (wanted == -2) {
      wanted = 0;
    } else if (wanted < 0) // NAME=VALUE is one argument, NAME VALUE are two
      wanted = at + 1 < arguments.size() && arguments[at + 1].find('=') != std::string::npos ? 1 : 2;
    while (static_cast<int>(parsing.values.size()) < wanted) {
      if (++at == arguments.size())
        return fail(Code::invalid, "{}: {} {} missing after it", parsing.option,
                    wanted == 1 ? "a value" : "values", wanted == 1 ? "is" : "are");
      parsing.values.push_back(arguments[at]);
    }
    NEAR_TRY(check_setting(parsing, option->values));
    NEAR_TRY(option->act(parsing));
  }
  for (; at < arguments.size() && arguments[at] != ":"; ++at) application.arguments.push_back(arguments[at]);
  if (!application.arguments.empty()) {
    command.applications.push_back(std::move(application));
    return {};
  }
  if (command.help || command.version) return {};
  return fail(Code::invalid,
              "no program to start; usage: mpiexec -n N program [arguments] [: -n M program2 ...]");
}

/// Ranks of programs that nobody said a number of: one, or in a job of Slurm's as many as were asked for
/// there.
void choose_ranks(const SlurmStep& slurm, Command& command) {
  bool said = command.applications.size() != 1 || command.applications[0].ranks != 0;
  if (!said && slurm.tasks != 0) command.applications[0].ranks = slurm.tasks;
  if (slurm.machines > 1)
    command.remarks.push_back(
        base::format("Slurm's job {} has {} machines; all ranks run on this one", slurm.job, slurm.machines));
  for (auto& application : command.applications) application.ranks = std::max(application.ranks, 1u);
}

} // namespace

Result parse_command(const std::vector<std::string>& arguments, Command& command) {
  Command made;
  std::size_t at = 0;
  do NEAR_TRY(parse_section(arguments, at, made));
  while (at++ < arguments.size());
  if (made.timeout_s == 0)
    if (const char* seconds = std::getenv("MPIEXEC_TIMEOUT"))
      if (double value = std::atof(seconds); value > 0) made.timeout_s = value;
  choose_ranks(read_slurm_step(environ), made);
  made.placement.ranks = 0;
  for (const auto& application : made.applications) made.placement.ranks += application.ranks;
  if (made.placement.ranks > 65536)
    return fail(Code::limit, "{} processes are more than the 65536 that one job may have",
                made.placement.ranks);
  command = std::move(made);
  return {};
}

namespace {

/// The folder of the library that belongs to this mpiexec: lib beside bin; empty when it is not there.
std::string own_library_folder() {
  std::error_code none;
  auto program = std::filesystem::read_symlink("/proc/self/exe", none);
  auto prefix = program.parent_path().parent_path();
  for (const char* name : {"lib", "lib64"})
    if (std::filesystem::exists(prefix / name / "libmpi_abi.so.1", none)) return (prefix / name).string();
  return {};
}

} // namespace

std::vector<std::string> environment_for(const Command& command, const Application& application,
                                         char** inherited) {
  std::vector<std::string> rows;
  auto set = [&](const std::string& name, const std::string& value) {
    auto same = [&](const std::string& row) {
      return row.size() > name.size() && row.starts_with(name) && row[name.size()] == '=';
    };
    std::erase_if(rows, same);
    rows.push_back(name + "=" + value);
  };
  for (char** entry = inherited; *entry != nullptr; ++entry) {
    std::string row(*entry);
    if (row.starts_with("NEAR_BOOT_")) continue; // of a job that this launcher is a part of
    auto name = row.substr(0, row.find('='));
    if (command.inherit || std::find(command.only.begin(), command.only.end(), name) != command.only.end())
      rows.push_back(std::move(row));
  }
  // A program that another library's compiler linked has that library's folder as its run path. It runs on
  // the library that its launcher belongs to: the search path of the environment comes before the run path.
  if (auto folder = own_library_folder(); !folder.empty()) {
    std::string path = folder;
    for (const auto& row : rows)
      if (row.starts_with("LD_LIBRARY_PATH=") && row.size() > 16) path += ":" + row.substr(16);
    set("LD_LIBRARY_PATH", path);
  }
  if (command.placement.threads > 1) {
    bool chosen = std::any_of(rows.begin(), rows.end(),
                              [](const std::string& row) { return row.starts_with("OMP_NUM_THREADS="); });
    if (!chosen) set("OMP_NUM_THREADS", std::to_string(command.placement.threads));
  }
  for (const auto& [name, value] : command.settings) set(name, value);
  for (const auto& [name, value] : application.settings) set(name, value);
  return rows;
}

unsigned expected_threads(const Command& command, char** inherited) {
  constexpr std::string_view name = "OMP_NUM_THREADS=";
  unsigned most = 0;
  for (const auto& application : command.applications)
    for (const auto& row : environment_for(command, application, inherited))
      if (row.starts_with(name))
        most =
            std::max(most, static_cast<unsigned>(std::clamp(std::atoi(row.c_str() + name.size()), 1, 65536)));
  return most;
}

void give_openmp_places(const std::string& places, std::vector<std::string>& environment) {
  for (const auto& row : environment)
    for (const char* name : {"OMP_PLACES=", "OMP_PROC_BIND=", "GOMP_CPU_AFFINITY=", "KMP_AFFINITY="})
      if (row.starts_with(name)) return;
  environment.push_back("OMP_PLACES=" + places);
}

Result check_knobs(const std::vector<std::string>& environment) {
  for (const auto& row : environment) {
    std::string_view text(row);
    auto equals = text.find('=');
    if (!text.starts_with("NEAR_") || equals == std::string_view::npos) continue;
    NEAR_TRY(base::check_knob(text.substr(0, equals), text.substr(equals + 1)));
  }
  return {};
}

std::string help_text() {
  std::string text = "usage: mpiexec [options] program [arguments] [: [options] program [arguments]]...\n"
                     "Starts the processes of an MPI program on this machine.\n\n";
  for (const auto& option : options()) {
    if (option.help == nullptr) continue;
    std::string_view help(option.help);
    auto bar = help.find('|');
    std::string left = " ";
    for (const char* spelling : option.spellings) {
      left += left == " " ? " " : ", ";
      left += (std::strlen(spelling) <= 2 ? "-" : "--") + std::string(spelling);
    }
    if (bar > 0) left += " " + std::string(help.substr(0, bar));
    text += left.size() < 34 ? left + std::string(34 - left.size(), ' ') : left + "\n" + std::string(34, ' ');
    text += std::string(help.substr(bar + 1)) + "\n";
  }
  return text + "\nOne dash or two are the same. Knobs are environment variables: `near info --knobs`. The "
                "manual: man mpiexec.\n";
}

} // namespace near::launch
