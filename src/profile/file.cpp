// The location of the profile, and the name of the machine to which it belongs.
#include "profile/profile.h"

#include "os/files.h"
#include "os/process.h"

#include <cstdlib>
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
  std::string text;
  const int error = os::read_file(path, text, largest_file);
  if (error != 0 && access(path.c_str(), F_OK) != 0) return {};
  Profile read;
  Result good =
      error != 0 || text.empty() ? fail(Code::invalid, "it cannot be read, or is empty") : parse(text, read);
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

} // namespace near::profile
