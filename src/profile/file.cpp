// The location of the profile, and the name of the machine that it belongs to.
#include "profile/profile.h"

#include "os/process.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <unistd.h>

namespace near::profile {

using base::Code;
using base::fail;

namespace {

constexpr std::size_t largest_file = 256u << 10;

/// FNV-1a.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (char letter : text) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  return hash;
}

std::string temporary(const std::string& path) { return base::format("{}.{}", path, getpid()); }

Result write_file(const std::string& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (file) return {};
  Result failed = base::fail_system("write", errno, path);
  unlink(path.c_str());
  return failed;
}

/// An absolute path from the environment; a relative one would mean a different folder in each working
/// directory.
const char* folder_from(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && value[0] == '/' ? value : nullptr;
}

} // namespace

std::string machine_name(const topo::Machine& machine) {
  std::string host = os::machine_name(), all = machine.processor + "\n";
  for (const auto& core : machine.cores)
    all += base::format("{} {} {} {}\n", core.cpus.text(), core.l3, core.numa, core.package);
  return base::format("{}-{:016x}", host, hash_of(all));
}

Result path_of(const std::string& machine, std::string& path) {
  std::string folder;
  if (const char* cache = folder_from("XDG_CACHE_HOME"))
    folder = cache;
  else if (const char* home = folder_from("HOME"))
    folder = std::string(home) + "/.cache";
  else
    return fail(Code::invalid, "no folder for the machine's profile: set HOME or XDG_CACHE_HOME to an "
                               "absolute path");
  path = folder + "/near/" + machine + ".profile";
  return {};
}

Result load(const std::string& machine, Profile& profile, bool& found) {
  found = false;
  std::string path;
  if (!path_of(machine, path).ok()) return {};
  std::ifstream file(path, std::ios::binary);
  std::error_code none;
  if (!file && !std::filesystem::exists(path, none)) return {};
  std::string text(largest_file, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  Profile read;
  Result good =
      file.bad() || text.empty() ? fail(Code::invalid, "it cannot be read, or is empty") : parse(text, read);
  if (good.ok() && read.machine != machine)
    good = fail(Code::invalid, "it belongs to the machine {}, and this is {}", read.machine, machine);
  if (!good.ok())
    return fail(good.code(),
                "the machine's profile {} is ignored: {}; `near calibrate` measures the machine again", path,
                std::string(base::failure_text()));
  profile = std::move(read);
  found = true;
  return {};
}

Result prepare(const std::string& path) {
  std::error_code error;
  auto folder = std::filesystem::path(path).parent_path();
  std::filesystem::create_directories(folder, error);
  if (error)
    return fail(Code::system, "the folder {} cannot be created: {}", folder.string(), error.message());
  NEAR_TRY(write_file(temporary(path), ""));
  unlink(temporary(path).c_str());
  return {};
}

Result save(const Profile& profile, const std::string& path) {
  auto draft = temporary(path);
  NEAR_TRY(write_file(draft, text_of(profile)));
  std::error_code error;
  std::filesystem::rename(draft, path, error);
  if (!error) return {};
  unlink(draft.c_str());
  return fail(Code::system, "{} cannot be replaced: {}", path, error.message());
}

} // namespace near::profile
