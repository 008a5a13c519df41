// The interface for scenarios: atomics that the model executes, plain memory that it watches, threads.
// README.md shows how to write a scenario.
#pragma once

#include "execution.h"
#include "explore.h"

#include <gtest/gtest.h>

#include <cstring>
#include <initializer_list>
#include <type_traits>

namespace near::model {

/// The value of an operation; it becomes a T when it is used. Until then later operations may overtake a
/// relaxed one, as on real processors (load buffering), so headers that keep such a value declare it `auto`.
template <class T>
class Result {
public:
  explicit Result(Value value) : value_(value) {}
  explicit Result(Pending* pending) : pending_(pending) {}
  Result(const Result&) = delete;
  Result& operator=(const Result&) = delete;
  ~Result() {
    if (pending_ != nullptr) current().release_hold(*pending_);
  }
  operator T() const { return static_cast<T>(pending_ != nullptr ? current().settle(*pending_) : value_); }

private:
  Pending* pending_ = nullptr;
  Value value_ = 0;
};

template <class T>
class WeakAtomic {
public:
  WeakAtomic() : WeakAtomic(T{}) {}
  explicit WeakAtomic(T value) : word_(current().make_word(&identity_, static_cast<Value>(value))) {}
  WeakAtomic(const WeakAtomic&) = delete;
  WeakAtomic& operator=(const WeakAtomic&) = delete;

  Result<T> load_relaxed(Where at = Where::current()) const {
    return apply(Pending::load, 0, Order::relaxed, at);
  }
  Result<T> load_acquire(Where at = Where::current()) const {
    return apply(Pending::load, 0, Order::acquire, at);
  }
  void store_relaxed(T value, Where at = Where::current()) {
    current().store(word_, raw(value), Order::relaxed, at);
  }
  void store_release(T value, Where at = Where::current()) {
    current().store(word_, raw(value), Order::release, at);
  }
  Result<T> add_relaxed(T value, Where at = Where::current()) {
    return apply(Pending::add, raw(value), Order::relaxed, at);
  }
  Result<T> add_release(T value, Where at = Where::current()) {
    return apply(Pending::add, raw(value), Order::release, at);
  }
  Result<T> add_acq_rel(T value, Where at = Where::current()) {
    return apply(Pending::add, raw(value), Order::acq_rel, at);
  }
  // Only the caller writes the word, so the load returns the value that it stored last.
  void bump_relaxed(T value, Where at = Where::current()) { bump(value, Order::relaxed, at); }
  void bump_release(T value, Where at = Where::current()) { bump(value, Order::release, at); }
  Result<T> or_relaxed(T value, Where at = Where::current()) {
    return apply(Pending::bit_or, raw(value), Order::relaxed, at);
  }
  Result<T> or_release(T value, Where at = Where::current()) {
    return apply(Pending::bit_or, raw(value), Order::release, at);
  }
  Result<T> exchange_relaxed(T value, Where at = Where::current()) {
    return apply(Pending::exchange, raw(value), Order::relaxed, at);
  }
  Result<T> exchange_acquire(T value, Where at = Where::current()) {
    return apply(Pending::exchange, raw(value), Order::acquire, at);
  }
  bool cas_relaxed(T& expected, T desired, Where at = Where::current()) {
    return swap(expected, desired, Order::relaxed, at);
  }
  bool cas_acquire(T& expected, T desired, Where at = Where::current()) {
    return swap(expected, desired, Order::acquire, at);
  }
  bool cas_release(T& expected, T desired, Where at = Where::current()) {
    return swap(expected, desired, Order::release, at);
  }
  bool cas_acq_rel(T& expected, T desired, Where at = Where::current()) {
    return swap(expected, desired, Order::acq_rel, at);
  }
  T* address() { return &identity_; }

private:
  static Value raw(T value) { return static_cast<Value>(static_cast<std::make_unsigned_t<T>>(value)); }
  Result<T> apply(Pending::Kind kind, Value operand, Order order, Where at) const {
    Execution& execution = current();
    order = execution.weakened(order, at);
    if (order == Order::relaxed && execution.defers())
      return Result<T>(execution.postpone(word_, kind, operand, at));
    if (kind == Pending::load) return Result<T>(execution.load(word_, order, at));
    return Result<T>(execution.modify(word_, kind, operand, order, at));
  }
  void bump(T value, Order order, Where at) {
    const Value before = current().load(word_, Order::relaxed, at);
    current().store(word_, raw(static_cast<T>(static_cast<T>(before) + value)), order, at);
  }
  bool swap(T& expected, T desired, Order order, Where at) {
    Value value = raw(expected);
    bool swapped = current().compare_and_swap(word_, value, raw(desired), order, at);
    expected = static_cast<T>(value);
    return swapped;
  }

  T identity_{}; ///< only its address is used: the execution keeps the values
  std::uint16_t word_;
};

/// The policy `Atomics` of the model.
struct Weak {
  template <class T>
  using Atomic = WeakAtomic<T>;
  static void fence_store_load(Where at = Where::current()) { current().fence(at); }
  static void compiler_fence(Where at = Where::current()) { current().light_fence(at); }
};

/// The system calls of the doorbell. Timeouts never end a wait here: a lost wake-up is a deadlock.
struct WeakSystem {
  static void wait(std::uint32_t* word, std::uint32_t expected, std::uint64_t, Where at = Where::current()) {
    current().futex_wait(word, expected, at);
  }
  static void wake(std::uint32_t* word, Where at = Where::current()) { current().futex_wake(word, at); }
  static void barrier_all(Where at = Where::current()) { current().heavy_fence(at); }
};

/// Plain memory that threads hand to each other: two accesses without ordering between them are a data race.
template <class T>
void put(void* at, T value, Where where = Where::current()) {
  current().plain(at, sizeof(T), true, where);
  std::memcpy(at, &value, sizeof value);
}
template <class T>
T get(const void* at, Where where = Where::current()) {
  current().plain(at, sizeof(T), false, where);
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

/// Ends the execution as failed unless `holds`.
inline void require(bool holds, const char* what) {
  if (!holds) current().fail(what);
}

/// Calls `poll` until it returns true. Repeats it when another thread has changed something, or if it read a
/// stale value. A poll that returns false must not have changed any state that the thread keeps.
template <class Poll>
void until(Poll&& poll) {
  current().begin_poll();
  while (!poll()) current().poll_again();
}

/// A lock such as the library's engine lock, for scenarios with several threads of one process.
class Mutex {
public:
  Mutex() : index_(current().make_mutex()) {}
  void lock(Where at = Where::current()) { current().lock(index_, at); }
  void unlock(Where at = Where::current()) { current().unlock(index_, at); }

private:
  std::uint16_t index_;
};

/// The frame of a scenario: make the shared data, add threads, call go(), check the result.
class Stage {
public:
  /// Adds a thread. It must not own heap memory, since an execution that fails drops its stack.
  ThreadId thread(std::string name, std::function<void()> body) {
    return current().add_thread(std::move(name), std::move(body), false);
  }
  /// Adds a thread that may be killed before any of its operations.
  ThreadId mortal(std::string name, std::function<void()> body) {
    return current().add_thread(std::move(name), std::move(body), true);
  }
  /// Names an atomic in traces.
  template <class T>
  void name(WeakAtomic<T>& atomic, std::string as, ValueText text = nullptr) {
    current().name_word(atomic.address(), std::move(as), text);
  }
  /// Memory for shared data that is not on the scenario's own stack; it is released with the execution.
  std::byte* memory(std::size_t bytes, std::size_t alignment) { return current().allocate(bytes, alignment); }
  /// Runs the threads to their ends.
  void go() { current().go(); }

  /// Called by a thread: waits for the end of another one and sees all that it did, as waitpid does. Returns
  /// whether it was killed.
  bool await_end(ThreadId thread, Where at = Where::current()) { return current().await_end(thread, at); }
  /// Called by a thread: returns whether all of them have ended; if so, sees all that they did.
  bool over(std::initializer_list<ThreadId> threads) {
    return current().have_ended({threads.begin(), threads.size()});
  }
  bool killed(ThreadId thread) const { return current().was_killed(thread); }
};

/// Defines a scenario: MODEL_SCENARIO(suite, behaviour, plan) { ... run ... }. It becomes a test, and one of
/// those that must notice a weakened ordering.
#define MODEL_SCENARIO(suite, behaviour, ...)                                                                \
  static void suite##_##behaviour(near::model::Stage&);                                                      \
  static const near::model::Scenario* const suite##_##behaviour##_entry =                                    \
      near::model::add_scenario({#suite "." #behaviour, suite##_##behaviour, __VA_ARGS__});                  \
  TEST(suite, behaviour) { near::model::expect_holds(*suite##_##behaviour##_entry); }                        \
  static void suite##_##behaviour([[maybe_unused]] near::model::Stage& stage)

} // namespace near::model
