#include "os/random.h"

#include <cerrno>
#include <cstddef>
#include <sys/random.h>
#include <sys/types.h>

namespace near::os {

Result fill_random(void* at, std::size_t bytes) {
  char* to = static_cast<char*>(at);
  for (std::size_t got = 0; got < bytes;) {
    const ssize_t more = getrandom(to + got, bytes - got, 0);
    if (more > 0)
      got += static_cast<std::size_t>(more);
    else if (errno != EINTR)
      return base::fail_system("getrandom", errno);
  }
  return {};
}

} // namespace near::os

// If libstdc++ was built on a machine with glibc 2.36 or later, its std::random_device needs arc4random. We
// link libstdc++ statically and do not use std::random_device, but its archive member comes along with
// std::string. The library would then not load with an older glibc, only because of this name. So the
// function is defined here, hidden like all others.
extern "C" unsigned int arc4random();

extern "C" unsigned int arc4random() {
  unsigned int value = 0;
  char* at = reinterpret_cast<char*>(&value);
  for (std::size_t got = 0; got < sizeof value;) {
    ssize_t more = getrandom(at + got, sizeof value - got, 0);
    if (more > 0) got += static_cast<std::size_t>(more);
  }
  return value;
}
