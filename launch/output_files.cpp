#include "launch/output_files.h"

#include "launch/pattern.h"
#include "os/descriptor.h"
#include "os/memory.h"

#include <filesystem>

namespace near::launch {

OutputFiles::~OutputFiles() {
  for (const auto& [name, descriptor] : open_) os::close_descriptor(descriptor);
}

base::Result OutputFiles::open(const std::string& pattern, unsigned rank, int& descriptor) {
  auto name = expand_pattern(pattern, rank);
  if (auto known = open_.find(name); known != open_.end()) {
    descriptor = known->second;
    return {};
  }
  std::error_code refused; // open says what is wrong
  if (auto folder = std::filesystem::path(name).parent_path(); !folder.empty())
    std::filesystem::create_directories(folder, refused);
  NEAR_TRY(os::open_output_file(name, descriptor));
  open_.emplace(std::move(name), descriptor);
  return {};
}

} // namespace near::launch
