// The environment variables of each process.
#include "base/knob.h"
#include "launch/command.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace near::launch {
std::string own_library_folder() {
  std::error_code none;
  auto program = std::filesystem::read_symlink("/proc/self/exe", none);
  auto prefix = program.parent_path().parent_path();
  for (const char* name : {"lib", "lib64"})
    if (std::filesystem::exists(prefix / name / "libmpi_abi.so.1", none)) return (prefix / name).string();
  return {};
}

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
  const auto& inheritance = application.inherited.chosen ? application.inherited : command.inherited;
  for (char** entry = inherited; *entry != nullptr; ++entry) {
    std::string row(*entry);
    if (row.starts_with("NEAR_BOOT_")) continue; // from a job that this launcher is part of
    auto name = row.substr(0, row.find('='));
    if (inheritance.passes_on(name)) rows.push_back(std::move(row));
  }
  if (command.mapping.threads > 1) {
    bool chosen = std::any_of(rows.begin(), rows.end(),
                              [](const std::string& row) { return row.starts_with("OMP_NUM_THREADS="); });
    if (!chosen) set("OMP_NUM_THREADS", std::to_string(command.mapping.threads));
  }
  for (const auto& [name, value] : command.settings) set(name, value);
  for (const auto& [name, value] : application.settings) set(name, value);
  // A program that was linked by another library's compiler wrapper has that library's folder in its run
  // path. It must use the library that belongs to its launcher, and the environment's search path comes
  // before the run path. This is done last, since a path that somebody sets for the ranks may lead to the
  // other library too.
  if (auto folder = own_library_folder(); !folder.empty()) {
    std::string path = folder;
    for (const auto& row : rows)
      if (row.starts_with("LD_LIBRARY_PATH=") && row.size() > 16) path += ":" + row.substr(16);
    set("LD_LIBRARY_PATH", path);
  }
  return rows;
}

unsigned expected_threads(const Command& command, char** inherited) {
  constexpr std::string_view name = "OMP_NUM_THREADS=";
  unsigned most = 0;
  for (const auto& application : command.applications)
    for (const auto& row : environment_for(command, application, inherited))
      if (row.starts_with(name))
        most = std::max(most, static_cast<unsigned>(std::clamp(
                                  std::strtol(row.c_str() + name.size(), nullptr, 10), 1L, 65536L)));
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

} // namespace near::launch
