// If libstdc++ was built on a machine with glibc 2.36 or later, its std::random_device needs arc4random. We
// link libstdc++ statically and do not use std::random_device, but its archive member comes along with
// std::string. This name alone would keep the library from loading with an older glibc. So the function is
// defined here, hidden like all others.
#include <cstddef>
#include <sys/random.h>
#include <sys/types.h>

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
