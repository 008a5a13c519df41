// See memory.h: the operators new of the test program.
#include "memory.h"

#include <cstdlib>
#include <limits>
#include <new>

namespace near::coll::test {
namespace {

constexpr int no_limit = std::numeric_limits<int>::max();
thread_local int allocations_left = no_limit;
thread_local int allocations_made = 0;

/// Whether this thread may allocate.
bool count_allocation() {
  if (allocations_left == 0) return false;
  if (allocations_left != no_limit) --allocations_left;
  ++allocations_made;
  return true;
}

void* take_from_heap(std::size_t bytes) {
  return count_allocation() ? std::malloc(bytes != 0 ? bytes : 1) : nullptr;
}

void* take_from_heap(std::size_t bytes, std::size_t alignment) {
  return count_allocation() ? std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment)
                            : nullptr;
}

} // namespace

FewAllocations::FewAllocations(int number) { allocations_left = number; }
FewAllocations::~FewAllocations() { allocations_left = no_limit; }

int allocations() { return allocations_made; }

} // namespace near::coll::test

void* operator new(std::size_t bytes) {
  if (void* made = near::coll::test::take_from_heap(bytes)) return made;
  throw std::bad_alloc();
}
void* operator new[](std::size_t bytes) { return operator new(bytes); }
/// Memory resources use this one for every alignment.
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  if (void* made = near::coll::test::take_from_heap(bytes, static_cast<std::size_t>(alignment))) return made;
  throw std::bad_alloc();
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return near::coll::test::take_from_heap(bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return near::coll::test::take_from_heap(bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
