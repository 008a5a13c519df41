#include "launch/output_files.h"

#include "launch/pattern.h"
#include "os/descriptor.h"
#include "os/memory.h"

#include <filesystem>

namespace near::launch {

using base::Result;

OutputFiles::~OutputFiles() {
  for (const auto& [file, descriptor] : files_) os::close_descriptor(descriptor);
}

base::Result OutputFiles::open(const std::string& pattern, unsigned rank, int& descriptor) {
  auto name = expand_pattern(pattern, rank);
  if (auto known = names_.find(name); known != names_.end()) {
    descriptor = known->second;
    return {};
  }
  std::error_code refused; // open_output_file() reports the error
  if (auto folder = std::filesystem::path(name).parent_path(); !folder.empty())
    std::filesystem::create_directories(folder, refused);
  int made = -1;
  NEAR_TRY(os::open_output_file(name, made));
  os::FileIdentity identity;
  Result ready = os::identify(made, identity);
  if (ready.ok()) {
    // Two names may refer to one file. It is emptied only once, since ranks may already be writing to it.
    auto [first, is_new] = files_.emplace(std::pair(identity.device, identity.inode), made);
    if (is_new) {
      ready = os::empty_file(made, name);
    } else {
      os::close_descriptor(made);
      made = first->second;
    }
  } else {
    os::close_descriptor(made);
  }
  NEAR_TRY(ready);
  descriptor = made;
  names_.emplace(std::move(name), made);
  return {};
}

} // namespace near::launch
