// See processor.h.
#include "copy/processor.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace near::copy {

unsigned amd_family() {
#if defined(__x86_64__)
  unsigned signature = 0, ignored = 0;
  if (__builtin_cpu_is("amd") != 0 && __get_cpuid(1, &signature, &ignored, &ignored, &ignored) != 0)
    return (signature >> 8 & 0xf) + (signature >> 20 & 0xff);
#endif
  return 0;
}

} // namespace near::copy
