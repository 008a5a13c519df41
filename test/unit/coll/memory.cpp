// See memory.h: the operators new of the test program.
#include "memory.h"

#include <cstdlib>
#include <limits>
#include <new>

namespace near::coll::test {
namespace {

constexpr int no_limit = std::numeric_limits<int>::max();
thread_local int allocations_left = no_limit;

void* take_from_heap(std::size_t bytes) {
  if (allocations_left == 0) return nullptr;
  if (allocations_left != no_limit) --allocations_left;
  return std::malloc(bytes != 0 ? bytes : 1);
}

} // namespace

FewAllocations::FewAllocations(int number) { allocations_left = number; }
FewAllocations::~FewAllocations() { allocations_left = no_limit; }

} // namespace near::coll::test

void* operator new(std::size_t bytes) {
  if (void* made = near::coll::test::take_from_heap(bytes)) return made;
  throw std::bad_alloc();
}
void* operator new[](std::size_t bytes) { return operator new(bytes); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return near::coll::test::take_from_heap(bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return near::coll::test::take_from_heap(bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
