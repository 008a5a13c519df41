// Memory of the heap that ends when a test says so.
#pragma once

namespace near::coll::test {

/// While it exists, this thread can allocate only so many more pieces of memory.
class FewAllocations {
public:
  explicit FewAllocations(int number);
  ~FewAllocations();
  FewAllocations(const FewAllocations&) = delete;
  FewAllocations& operator=(const FewAllocations&) = delete;
};

/// How many pieces of memory this thread has allocated.
int allocations();

} // namespace near::coll::test
