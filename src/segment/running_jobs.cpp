// Finds the segments of running jobs from outside, for tools.
#include "os/memory.h"
#include "os/process.h"
#include "segment/segment.h"

#include <algorithm>
#include <string_view>
#include <unistd.h>

namespace near::segment {

using base::Code;
using base::fail;

Result open_job(std::int32_t launcher, int& descriptor) {
  // The launcher has the descriptor open under some number below its limit; we recognise it by the file's
  // name.
  for (int number = 0; number < 1024; ++number) {
    auto path = base::format("/proc/{}/fd/{}", launcher, number);
    char target[64] = {};
    ssize_t length = readlink(path.c_str(), target, sizeof target - 1);
    if (length <= 0) continue;
    if (std::string_view(target, static_cast<std::size_t>(length)).starts_with("/memfd:nearmpi "))
      return os::open_descriptor_of(launcher, number, false, descriptor);
  }
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
  for (auto process : os::own_processes()) {
    int descriptor = -1;
    os::FileIdentity file;
    if (!open_job(process, descriptor).ok()) continue;
    if (os::identify(descriptor, file).ok()) holders.push_back({process, file});
    os::close_descriptor(descriptor);
  }
  // The other half of mpiexec and wrappers of ranks have it open too. The launcher is the process that the
  // others descend from.
  std::vector<std::int32_t> launchers;
  for (const auto& one : holders) {
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
