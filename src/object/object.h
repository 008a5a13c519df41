// The header that every MPI object begins with, and the type-stable pools that objects live in.
//
// Invariants:
//   references >= 1            while the object lives
//   magic == live              while the object lives; a freed slot keeps its memory, with another magic
//   handle                     is the public value; for predefined objects the standard's constant
//   pool.find(object.handle) == &object
#pragma once

#include "base/atomic.h"
#include "object/handle.h"

#include <cstddef>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace near::object {

inline constexpr std::uint16_t magic_live = 0x4e4d;
inline constexpr std::uint16_t magic_free = 0xdead;
inline constexpr HandleBits retired_bit = 1u << 31;

struct Object {
  Kind kind = Kind::none;
  bool predefined = false; ///< never freed; MPI_*_free on it is an error
  std::uint16_t magic = magic_live;
  HandleBits handle = 0;
  base::Atomic<std::int32_t> references{1};
};

/// One more owner.
template <class T>
T* keep(T* object) {
  object->references.add_relaxed(1);
  return object;
}

/// Objects that a pool does not destroy and construct anew but reset: for those that come and go with every
/// message. Whoever destroys one has let go of what it owned.
template <class T>
concept Recycled = requires(T& object) { object.reset(); };

/// Objects of one kind, in chunks that are never returned, so a stale handle reads a valid header. The caller
/// holds the engine lock when threads are allowed.
template <class T, Kind object_kind>
class Pool {
  static constexpr std::size_t chunk_bits = 8, chunk_size = 1u << chunk_bits;
  static constexpr std::size_t chunk_count = 1u << (HandleLayout<object_kind>::index_bits - chunk_bits);
  struct Slot {
    alignas(T) std::byte storage[sizeof(T)];
    std::uint16_t generation;
    bool live;
    bool constructed; ///< also after its end, if T is recycled
  };

public:
  /// A new object with one reference; nullptr when memory or handles are used up.
  template <class... A>
  T* make(A&&... arguments) {
    if (free_.empty() && !grow()) return nullptr;
    HandleBits index = free_.back();
    free_.pop_back();
    Slot& slot = chunks_[index >> chunk_bits][index & (chunk_size - 1)];
    T* object = reinterpret_cast<T*>(slot.storage);
    if (Recycled<T> && slot.constructed) [[likely]] {
      if constexpr (Recycled<T>) object->reset();
    } else {
      object = new (slot.storage) T(std::forward<A>(arguments)...);
      object->kind = object_kind;
      object->magic = magic_live;
      slot.constructed = true;
    }
    slot.live = true;
    object->handle = make_handle<object_kind>(index, slot.generation);
    ++live_;
    return object;
  }

  /// The live object of this handle, or nullptr. Any bit pattern may be asked for.
  [[gnu::always_inline]] T* find(std::uintptr_t bits) const {
    if (!is_dynamic<object_kind>(bits)) [[unlikely]]
      return nullptr;
    HandleBits index = index_of<object_kind>(static_cast<HandleBits>(bits));
    Slot* chunk = chunks_[index >> chunk_bits];
    if (chunk == nullptr) [[unlikely]]
      return nullptr;
    Slot& slot = chunk[index & (chunk_size - 1)];
    T* object = reinterpret_cast<T*>(slot.storage);
    return slot.live && object->handle == static_cast<HandleBits>(bits) ? object : nullptr;
  }

  /// Destroys the object and retires its handle.
  void destroy(T* object) {
    HandleBits index = index_of<object_kind>(object->handle);
    Slot& slot = chunks_[index >> chunk_bits][index & (chunk_size - 1)];
    if constexpr (!Recycled<T>) object->~T();
    slot.live = false;
    ++slot.generation;
    free_.push_back(index);
    --live_;
  }

  /// Makes the handle stale at once while owners inside the library keep the object: the top bit can stand in
  /// no handle that find() accepts, and the index below it stays, so destroy() works.
  static void retire(T* object) { object->handle |= retired_bit; }

  /// How many objects live: what a leak report at finalize counts.
  std::size_t live() const { return live_; }

  /// Calls visit(T&) for each live object.
  template <class F>
  void each(F visit) {
    for (std::size_t c = 0; c < used_chunks_; ++c)
      for (std::size_t i = 0; i < chunk_size; ++i)
        if (chunks_[c][i].live) visit(*reinterpret_cast<T*>(chunks_[c][i].storage));
  }

private:
  bool grow() {
    if (used_chunks_ == chunk_count) return false;
    auto* chunk = new (std::nothrow) Slot[chunk_size]();
    if (chunk == nullptr) return false;
    chunks_[used_chunks_] = chunk;
    free_.reserve(free_.size() + chunk_size);
    for (std::size_t i = chunk_size; i-- > 0;)
      free_.push_back(static_cast<HandleBits>(used_chunks_ * chunk_size + i));
    ++used_chunks_;
    return true;
  }

  Slot* chunks_[chunk_count] = {};
  std::size_t used_chunks_ = 0, live_ = 0;
  std::vector<HandleBits> free_;
};

/// Storage that is built at compile time and never destroyed: MPI may be called until the process is gone,
/// also from the destructors of static objects.
template <class T>
union Immortal {
  constexpr Immortal() : value() {}
  ~Immortal() {}
  T value;
};

/// Predefined objects of one kind, found by the standard's constant.
template <class T, HandleBits first, HandleBits count>
class PredefinedTable {
public:
  static constexpr HandleBits first_handle = first;
  T* find(std::uintptr_t bits) const {
    std::uintptr_t index = bits - first;
    return index < count ? objects_[index] : nullptr;
  }
  void set(HandleBits constant, T* object) {
    object->predefined = true;
    object->handle = constant;
    objects_[constant - first] = object;
  }

private:
  T* objects_[count] = {};
};

} // namespace near::object
