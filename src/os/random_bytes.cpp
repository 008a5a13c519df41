#include "os/random_bytes.h"

#include <cerrno>
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
