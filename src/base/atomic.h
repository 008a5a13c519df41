// The atomics facade: the only place that names std::atomic. The memory order is part of each operation's
// name, so that it is visible at the call. Structures in shared memory are templates over `Atomics` (default:
// Hardware), so that tests can run the same headers under a deterministic scheduler.
#pragma once

#include <atomic>
#include <cstdint>
#include <type_traits>

namespace near::base {

template <class T>
class HardwareAtomic {
  static_assert(std::atomic<T>::is_always_lock_free, "shared memory needs address-free atomics");

public:
  HardwareAtomic() = default;
  constexpr explicit HardwareAtomic(T value) : value_(value) {}

  T load_relaxed() const { return value_.load(std::memory_order_relaxed); }
  T load_acquire() const { return value_.load(std::memory_order_acquire); }
  void store_relaxed(T value) { value_.store(value, std::memory_order_relaxed); }
  void store_release(T value) { value_.store(value, std::memory_order_release); }
  T add_relaxed(T value) { return value_.fetch_add(value, std::memory_order_relaxed); }
  T add_release(T value) { return value_.fetch_add(value, std::memory_order_release); }
  T add_acq_rel(T value) { return value_.fetch_add(value, std::memory_order_acq_rel); }
  T or_relaxed(T value) { return value_.fetch_or(value, std::memory_order_relaxed); }
  T or_release(T value) { return value_.fetch_or(value, std::memory_order_release); }
  T exchange_acquire(T value) { return value_.exchange(value, std::memory_order_acquire); }
  T exchange_relaxed(T value) { return value_.exchange(value, std::memory_order_relaxed); }

  /// Adds to a word that only the caller writes: one instruction without a lock prefix. The compiler would
  /// make a load, an addition and a store.
  void bump_relaxed(T value) {
#if defined(__x86_64__)
    if constexpr (sizeof(T) == 8) {
      asm("addq %1, %0" : "+m"(value_) : "er"(value));
      return;
    } else if constexpr (sizeof(T) == 4) {
      asm("addl %1, %0" : "+m"(value_) : "ir"(value));
      return;
    }
#endif
    store_relaxed(static_cast<T>(load_relaxed() + value));
  }
  /// Like bump_relaxed(), but after all earlier accesses of the caller (release).
  void bump_release(T value) {
#if defined(__x86_64__)
    std::atomic_signal_fence(std::memory_order_release); // the processor keeps stores in order
    bump_relaxed(value);
    std::atomic_signal_fence(std::memory_order_release);
#else
    store_release(static_cast<T>(load_relaxed() + value));
#endif
  }

  /// Compare-and-swap; on failure `expected` receives the actual value.
  bool cas_relaxed(T& expected, T desired) {
    return value_.compare_exchange_strong(expected, desired, std::memory_order_relaxed,
                                          std::memory_order_relaxed);
  }
  bool cas_acquire(T& expected, T desired) {
    return value_.compare_exchange_strong(expected, desired, std::memory_order_acquire,
                                          std::memory_order_relaxed);
  }
  bool cas_release(T& expected, T desired) {
    return value_.compare_exchange_strong(expected, desired, std::memory_order_release,
                                          std::memory_order_relaxed);
  }
  bool cas_acq_rel(T& expected, T desired) {
    return value_.compare_exchange_strong(expected, desired, std::memory_order_acq_rel,
                                          std::memory_order_acquire);
  }

  /// The word itself, for futex calls only.
  T* address() { return reinterpret_cast<T*>(&value_); }

private:
  std::atomic<T> value_;
};

/// Atomic operations on a word that is not an Atomic, because it belongs to the program.
template <class T>
class AtomicReference {
  static_assert(std::atomic_ref<T>::is_always_lock_free, "shared memory needs address-free atomics");

public:
  explicit AtomicReference(T& word) : word_(word) {}
  T load_relaxed() const { return word_.load(std::memory_order_relaxed); }
  T exchange_relaxed(T value) { return word_.exchange(value, std::memory_order_relaxed); }
  T add_relaxed(T value) { return word_.fetch_add(value, std::memory_order_relaxed); }
  T and_relaxed(T value) { return word_.fetch_and(value, std::memory_order_relaxed); }
  T or_relaxed(T value) { return word_.fetch_or(value, std::memory_order_relaxed); }
  T xor_relaxed(T value) { return word_.fetch_xor(value, std::memory_order_relaxed); }
  /// Compare-and-swap; on failure `expected` receives the actual value.
  bool cas_relaxed(T& expected, T desired) {
    return word_.compare_exchange_strong(expected, desired, std::memory_order_relaxed,
                                         std::memory_order_relaxed);
  }

private:
  std::atomic_ref<T> word_;
};

/// The policy of the shipped library: the processor's own atomics.
struct Hardware {
  template <class T>
  using Atomic = HardwareAtomic<T>;
  /// Orders earlier stores before later loads. A doorbell needs no other fence.
  static void fence_store_load() { std::atomic_thread_fence(std::memory_order_seq_cst); }
  /// Keeps the compiler, but not the processor, from moving memory accesses across this point.
  static void compiler_fence() { std::atomic_signal_fence(std::memory_order_seq_cst); }
};

template <class T>
using Atomic = Hardware::Atomic<T>;

/// Reads a plain word that another process may write at any time. It is read only once, so the value that is
/// checked is the value that is used.
template <class T>
T load_once(const T& word) {
  return __atomic_load_n(&word, __ATOMIC_RELAXED);
}

inline void cpu_relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

/// Waits until all stores of this thread have left it, so that stores that others wait for do not compete with later
/// copies. For speed only; use Hardware::fence_store_load() for ordering.
inline void drain_stores() {
#if defined(__x86_64__)
  __builtin_ia32_mfence();
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

inline constexpr std::size_t cache_line = 64;

/// Begins to fetch the line at `address` for writing, if it is mapped. Ideally this core owns the line by the time of
/// the store, which then need not wait until another core has given it up. On x86 __builtin_prefetch() would fetch it
/// for reading, unless the compiler may assume PREFETCHW; processors without that execute it as a no-op.
[[gnu::always_inline]] inline void fetch_for_writing(const void* address) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" ::"m"(*static_cast<const char*>(address)));
#else
  __builtin_prefetch(address, 1);
#endif
}

/// Begins to fetch the lines of `bytes` bytes for writing; `first` is at the beginning of a line.
inline void fetch_for_writing(const std::byte* first, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += cache_line) fetch_for_writing(first + at);
}
/// Begins to fetch the lines of `bytes` bytes for reading; `first` may be anywhere in a line.
inline void fetch_for_reading(const std::byte* first, std::size_t bytes) {
  const std::size_t within = reinterpret_cast<std::uintptr_t>(first) % cache_line;
  for (std::size_t at = 0; at < within + bytes; at += cache_line) __builtin_prefetch(first + at - within);
}

} // namespace near::base
