// Finds the segments of running jobs from outside, for tools.
#include "os/files.h"
#include "os/memory.h"
#include "os/process.h"
#include "segment/descriptors.h"
#include "segment/parts.h"
#include "segment/segment.h"

#include <algorithm>
#include <dirent.h>
#include <string_view>
#include <unistd.h>

namespace near::segment {

using base::Code;
using base::fail;

std::string path_of_memory_file(std::int32_t process, std::string_view name, int* number) {
  const std::string folder = base::format("/proc/{}/fd", process);
  DIR* listing = opendir(folder.c_str());
  if (listing == nullptr) return {};
  int found = -1;
  for (const dirent* entry = readdir(listing); entry != nullptr; entry = readdir(listing)) {
    char target[64] = {};
    const ssize_t length = readlinkat(dirfd(listing), entry->d_name, target, sizeof target - 1);
    if (length <= 0) continue;
    std::string_view text(target, static_cast<std::size_t>(length));
    if (!text.starts_with("/memfd:")) continue;
    text.remove_prefix(std::string_view("/memfd:").size());
    int each = -1;
    if (text.substr(0, text.find(' ')) != name || !os::read_number(entry->d_name, each)) continue;
    if (found < 0 || each < found) found = each;
  }
  closedir(listing);
  if (found < 0) return {};
  if (number != nullptr) *number = found;
  return base::format("{}/{}", folder, found);
}

Result open_job(std::int32_t launcher, int& descriptor) {
  int number = -1;
  if (!path_of_memory_file(launcher, "nearmpi", &number).empty())
    return os::open_descriptor_of(launcher, number, false, descriptor);
  return fail(Code::invalid,
              "process {} is not one of your running NearMPI jobs (no segment among its descriptors)",
              launcher);
}

std::vector<std::int32_t> running_jobs() {
  struct Holder {
    std::int32_t process;
    os::FileIdentity file;
  };
  std::vector<Holder> holders;
  std::vector<std::int32_t> launchers;
  const std::string space = os::number_space();
  std::vector<std::int32_t> parts; // parts on this machine of jobs on several machines
  for (auto process : os::own_processes()) {
    if (const auto of_job = parts_of(process); !of_job.empty()) {
      launchers.push_back(process);
      for (const JobPart& part : of_job)
        if (!space.empty() && part.space == space) parts.push_back(part.launcher);
    }
    int descriptor = -1;
    os::FileIdentity file;
    if (!open_job(process, descriptor).ok()) continue;
    if (os::identify(descriptor, file).ok()) holders.push_back({process, file});
    os::close_descriptor(descriptor);
  }
  // The other half of mpiexec and wrappers of ranks have it open too. The launcher is the process from which
  // the others descend.
  for (const auto& one : holders) {
    if (std::find(parts.begin(), parts.end(), one.process) != parts.end()) continue;
    bool below = std::any_of(holders.begin(), holders.end(), [&one](const Holder& other) {
      return other.process != one.process && other.file == one.file &&
             os::descends_from(one.process, other.process);
    });
    if (!below) launchers.push_back(one.process);
  }
  std::sort(launchers.begin(), launchers.end());
  return launchers;
}

Result attach_job(std::int32_t launcher, Segment& segment) {
  int descriptor = -1;
  NEAR_TRY(open_job(launcher, descriptor));
  Result attached = segment.attach(descriptor, false);
  os::close_descriptor(descriptor);
  return attached;
}

} // namespace near::segment
