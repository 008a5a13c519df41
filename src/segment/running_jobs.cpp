// Finds the segments of running jobs from outside, for tools.
#include "os/memory.h"
#include "os/process.h"
#include "segment/descriptors.h"
#include "segment/segment.h"

#include <algorithm>
#include <string_view>
#include <unistd.h>

namespace near::segment {

using base::Code;
using base::fail;

std::string path_of_memory_file(std::int32_t process, std::string_view name, int* number) {
  // A process has it open under some number below its limit.
  for (int each = 0; each < 1024; ++each) {
    auto path = base::format("/proc/{}/fd/{}", process, each);
    char target[64] = {};
    const ssize_t length = readlink(path.c_str(), target, sizeof target - 1);
    if (length <= 0) continue;
    std::string_view text(target, static_cast<std::size_t>(length));
    if (!text.starts_with("/memfd:")) continue;
    text.remove_prefix(std::string_view("/memfd:").size());
    if (text.substr(0, text.find(' ')) != name) continue;
    if (number != nullptr) *number = each;
    return path;
  }
  return {};
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
  std::vector<std::int32_t> launchers; // first those of jobs on several machines
  for (auto process : os::own_processes()) {
    if (!path_of_memory_file(process, "nearmpi-parts").empty()) launchers.push_back(process);
    int descriptor = -1;
    os::FileIdentity file;
    if (!open_job(process, descriptor).ok()) continue;
    if (os::identify(descriptor, file).ok()) holders.push_back({process, file});
    os::close_descriptor(descriptor);
  }
  // The other half of mpiexec and wrappers of ranks have it open too. The launcher is the process that the
  // others descend from.
  const std::vector<std::int32_t> of_several = launchers;
  for (const auto& one : holders) {
    // The part of such a job on this machine is one of those that its launcher has published.
    const bool is_part = std::any_of(of_several.begin(), of_several.end(), [&one](std::int32_t launcher) {
      return os::descends_from(one.process, launcher);
    });
    if (is_part) continue;
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
