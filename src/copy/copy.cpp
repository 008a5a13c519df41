// The list of kernels, and the choice among them.
#include "copy/copy.h"

#include "copy/kernel.h"
#include "copy/processor.h"
#include "copy/raw.h"
#include "copy/strided.h"
#include "copy/windows.h"

#include <cstring>
#include <iterator>

namespace near::copy {
namespace {

#if defined(__x86_64__)
// These builtins also check XCR0: wide registers that the system does not save are not counted.
bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
constexpr Kernel list[] = {
    {"avx512vbmi", "AVX-512 (F, BW, DQ, VL and VBMI)",
     [] { return has_avx512() && __builtin_cpu_supports("avx512vbmi"); }, streaming_avx512, looping_avx512,
     &strided_avx512, &windows_avx512},
    {"avx512", "AVX-512 (F, BW, DQ and VL)", has_avx512, streaming_avx512, looping_avx512, &strided_avx512,
     nullptr},
    {"avx2", "AVX2", [] { return __builtin_cpu_supports("avx2") != 0; }, streaming_avx2, looping_avx2,
     &strided_avx2, nullptr},
    {"sse2", "", [] { return true; }, streaming_sse2, looping_sse2, &strided_baseline, nullptr},
};
#elif defined(__aarch64__)
constexpr Kernel list[] = {
    {"neon", "", [] { return true; }, streaming_neon, looping_neon, &strided_baseline, nullptr},
};
#else
#error "no copy kernel for this architecture: see HACKING.md, Add a copy kernel"
#endif

const Kernel* most_capable() {
  for (const Kernel& kernel : list)
    if (kernel.runs()) return &kernel;
  return &list[std::size(list) - 1];
}

// Until this file's initialisers have run, the last kernel is in use, which works on every processor.
constinit const Kernel* in_use = &list[std::size(list) - 1];
[[maybe_unused]] const bool chosen_at_start = (in_use = most_capable(), true);

constexpr unsigned zen3_and_zen4 = 25; // the family

} // namespace

bool strings_are_slow_just_past = amd_family() == zen3_and_zen4;

void copy(void* to, const void* from, std::size_t bytes, Store how) {
  if (how == Store::streaming) {
    in_use->streaming(to, from, bytes);
  } else {
    // None of our kernels was faster: doc/adr/0006-stores-to-lines-that-others-read.md.
    raw(to, from, bytes);
  }
}

void loop(void* to, const void* from, std::size_t bytes) { in_use->looping(to, from, bytes); }

std::span<const Kernel> kernels() { return list; }

const Kernel& chosen() { return *in_use; }

std::string kernel_name() {
  std::string text(in_use->name);
  for (const Kernel* better = list; better != in_use; ++better) {
    text += better->runs() ? ", asked for instead of " : ", since there is no ";
    text += better->runs() ? better->name : better->needs;
  }
  return text;
}

bool choose(std::string_view name) {
  for (const Kernel& kernel : list) {
    if (kernel.name == name && kernel.runs()) {
      in_use = &kernel;
      return true;
    }
  }
  return false;
}

} // namespace near::copy
