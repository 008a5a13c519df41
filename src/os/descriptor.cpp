#include "os/descriptor.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>

namespace near::os {

Result identify(int descriptor, FileIdentity& identity) {
  struct stat status{};
  if (fstat(descriptor, &status) != 0)
    return base::fail_system("fstat", errno, base::format("descriptor {}", descriptor));
  identity = {status.st_dev, status.st_ino};
  return {};
}

Result open_descriptor_of(std::int32_t pid, int descriptor, int& opened) {
  auto path = base::format("/proc/{}/fd/{}", pid, descriptor);
  int made = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (made < 0) return base::fail_system("open", errno, path);
  opened = made;
  return {};
}

Result set_close_on_exec(int descriptor, bool close) {
  if (fcntl(descriptor, F_SETFD, close ? FD_CLOEXEC : 0) != 0)
    return base::fail_system("fcntl", errno, base::format("F_SETFD of descriptor {}", descriptor));
  return {};
}

} // namespace near::os
