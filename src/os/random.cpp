// libstdc++, which the library holds statically, wants arc4random for std::random_device where the C library
// of the machine that it was built on has it: glibc from 2.36. Nothing here uses std::random_device, but the
// archive's member comes along with std::string, and the library would not load with an older glibc for that
// name alone. So it is defined here, hidden like everything else.
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
