// Writes the machine's profile. Only `near calibrate` uses this: ranks
// read the profile, without streams (os/files.h).
#include "profile/profile.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <unistd.h>

namespace near::profile {

using base::Code;
using base::fail;

namespace {

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

} // namespace

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
