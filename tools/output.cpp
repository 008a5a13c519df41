#include "tools/output.h"

#include <filesystem>
#include <system_error>
#include <unistd.h>

namespace near::tools {

base::Result replace_file(const std::string& path, const std::string& text) {
  Output draft;
  std::error_code none;
  auto there = std::filesystem::symlink_status(path, none).type();
  if (there != std::filesystem::file_type::regular && there != std::filesystem::file_type::not_found) {
    NEAR_TRY(draft.open(path));
    return draft.write(text);
  }
  auto beside = base::format("{}.{}", path, getpid());
  // In a folder that everybody may write to, somebody could have created a link of this name to another file.
  unlink(beside.c_str());
  NEAR_TRY(draft.open(beside, "wxe"));
  auto written = draft.write(text);
  if (written.ok() && std::rename(beside.c_str(), path.c_str()) != 0)
    written = base::fail_system("rename", errno, path);
  if (!written.ok()) unlink(beside.c_str());
  return written;
}

} // namespace near::tools
