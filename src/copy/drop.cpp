// Lines out of every cache.
#include "copy/copy.h"

#include <cstdint>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace near::copy {
namespace {

#if defined(__x86_64__)

constexpr std::uintptr_t line = 64;

bool has_clflushopt() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned clflushopt = 1u << 23; // CPUID leaf 7, EBX
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & clflushopt) != 0;
}

// CLFLUSH, which every processor has, waits for each line in turn: slower than what it would save.
[[gnu::target("clflushopt")]] void drop_lines(std::uintptr_t first, std::uintptr_t end) {
  for (std::uintptr_t at = first; at < end; at += line) _mm_clflushopt(reinterpret_cast<void*>(at));
}

const bool droppable = has_clflushopt();

#else

// Linux lets user space read the line's length and clean and invalidate by address (SCTLR_EL1.UCT and UCI).
std::uintptr_t line_bytes() {
  std::uint64_t cache_type = 0;
  asm("mrs %0, ctr_el0" : "=r"(cache_type));
  return std::uintptr_t{4} << (cache_type >> 16 & 15);
}

const std::uintptr_t line = line_bytes();

void drop_lines(std::uintptr_t first, std::uintptr_t end) {
  for (std::uintptr_t at = first; at < end; at += line) asm volatile("dc civac, %0" : : "r"(at) : "memory");
}

constexpr bool droppable = true;

#endif

} // namespace

bool can_drop() { return droppable; }

void drop(const void* range, std::size_t bytes) {
  if (!droppable || bytes == 0) return;
  const auto first = reinterpret_cast<std::uintptr_t>(range);
  drop_lines(first & ~(line - 1), first + bytes);
}

} // namespace near::copy
