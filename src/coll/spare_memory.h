// Memory of objects that are gone, for further ones of their type: nonblocking calls are made in large numbers.
#pragma once

#include <cstddef>
#include <new>

namespace near::coll {

/// For the operators new and delete of `T`. Each thread keeps a few pieces of memory.
template <class T>
class SpareMemory {
public:
  static void* take(std::size_t size) {
    List& spare = list;
    if (spare.first == nullptr) return ::operator new(size);
    return spare.take();
  }
  static void keep(void* memory) {
    List& spare = list;
    if (spare.count == most) return ::operator delete(memory);
    spare.first = new (memory) Block{spare.first};
    ++spare.count;
  }

private:
  struct Block {
    Block* next;
  };
  static constexpr int most = 16;
  struct List {
    Block* first = nullptr;
    int count = 0;
    void* take() {
      Block* block = first;
      first = block->next;
      --count;
      return block;
    }
    ~List() {
      while (first != nullptr) ::operator delete(take());
      count = most;
    }
  };
  static inline thread_local List list;
};

} // namespace near::coll
