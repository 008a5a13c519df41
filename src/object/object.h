// The header with which every MPI object begins, and the type-stable pools in which objects live.
//
// Invariants:
//   references >= 1            while the object lives
//   magic == live              while the object lives; a freed object keeps its memory, with another magic
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

/// Adds an owner.
template <class T>
T* keep(T* object) {
  object->references.add_relaxed(1);
  return object;
}

/// Objects that a pool resets instead of destroying and reconstructing them: for those made and freed with
/// every message. A pool constructs a chunk of them at once. The caller releases what an object owns before
/// it destroys the object.
template <class T>
concept Recycled = requires(T& object) { object.reset(); };

/// Objects of one kind, in chunks that are never returned, so a stale handle reads a valid header. The caller
/// holds the engine lock when threads are allowed.
template <class T, Kind object_kind>
class Pool {
  static constexpr std::size_t chunk_bits = 8, chunk_size = 1u << chunk_bits;
  static constexpr std::size_t chunk_count = 1u << (HandleLayout<object_kind>::index_bits - chunk_bits);
  struct Entry {
    Entry* next_free;
    HandleBits handle; ///< the object's; in a free entry, the next object's
    bool live;
    alignas(T) std::byte storage[sizeof(T)];
    T* object() { return reinterpret_cast<T*>(storage); }
  };
  static Entry& entry_of(T* object) {
    return *reinterpret_cast<Entry*>(reinterpret_cast<std::byte*>(object) - offsetof(Entry, storage));
  }

public:
  /// Makes an object with one reference; nullptr if memory or handles are exhausted. Inlined at each call, so
  /// that other callers do not make a small receive, which makes a request, more expensive.
  template <class... A>
  [[gnu::always_inline]] T* make(A&&... arguments) {
    if (free_ == nullptr && !grow()) [[unlikely]]
      return nullptr;
    Entry& entry = *free_;
    free_ = entry.next_free;
    if constexpr (Recycled<T>)
      entry.object()->reset(std::forward<A>(arguments)...);
    else
      construct(entry, std::forward<A>(arguments)...);
    entry.live = true;
    entry.object()->handle = entry.handle;
    ++live_;
    return entry.object();
  }

  /// The live object with this handle, or nullptr. Any bit pattern is allowed.
  [[gnu::always_inline]] T* find(std::uintptr_t bits) const {
    if (!is_dynamic<object_kind>(bits)) [[unlikely]]
      return nullptr;
    HandleBits index = index_of<object_kind>(static_cast<HandleBits>(bits));
    Entry* chunk = chunks_[index >> chunk_bits];
    if (chunk == nullptr) [[unlikely]]
      return nullptr;
    Entry& entry = chunk[index & (chunk_size - 1)];
    if (!entry.live || entry.object()->handle != static_cast<HandleBits>(bits)) [[unlikely]]
      return nullptr;
    return entry.object();
  }

  /// Destroys the object and retires its handle.
  void destroy(T* object) {
    Entry& entry = entry_of(object);
    if constexpr (!Recycled<T>) object->~T();
    entry.live = false;
    entry.handle = successor<object_kind>(entry.handle);
    entry.next_free = free_;
    free_ = &entry;
    --live_;
  }

  /// Invalidates the handle at once, although owners inside the library keep the object: find() accepts no
  /// handle whose top bit is set.
  static void retire(T* object) { object->handle |= retired_bit; }

  /// The number of live objects, for the leak report at finalisation.
  std::size_t live() const { return live_; }

  /// Calls visit(T&) for each live object.
  template <class F>
  void each(F visit) {
    for (std::size_t c = 0; c < used_chunks_; ++c)
      for (std::size_t i = 0; i < chunk_size; ++i)
        if (chunks_[c][i].live) visit(*chunks_[c][i].object());
  }

private:
  [[gnu::cold]] [[gnu::noinline]] bool grow() {
    if (used_chunks_ == chunk_count) return false;
    auto* chunk = new (std::nothrow) Entry[chunk_size]();
    if (chunk == nullptr) return false;
    chunks_[used_chunks_] = chunk;
    for (std::size_t i = chunk_size; i-- > 0;) {
      Entry& entry = chunk[i];
      entry.handle = make_handle<object_kind>(static_cast<HandleBits>(used_chunks_ * chunk_size + i), 0);
      if constexpr (Recycled<T>) construct(entry);
      entry.next_free = free_;
      free_ = &entry;
    }
    ++used_chunks_;
    return true;
  }

  template <class... A>
  static void construct(Entry& entry, A&&... arguments) {
    T* object = new (entry.storage) T(std::forward<A>(arguments)...);
    object->kind = object_kind;
    object->magic = magic_live;
  }

  Entry* chunks_[chunk_count] = {};
  std::size_t used_chunks_ = 0, live_ = 0;
  Entry* free_ = nullptr;
};

/// Storage that is built at compile time and never destroyed: MPI may be called until the process ends, even
/// from the destructors of static objects.
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
