// Stacks to switch between: each thread of a model runs on one, all of them inside one thread of the system.
// So the scheduler alone decides which thread runs next, and a switch costs nanoseconds.
#pragma once

#include <cstddef>

namespace near::model {

class Fibre {
public:
  Fibre() = default; ///< represents the stack that is in use when it is first left
  ~Fibre();
  Fibre(const Fibre&) = delete;
  Fibre& operator=(const Fibre&) = delete;

  /// Makes the next switch to this fibre call body(argument), which must leave by leave_for_good_to().
  /// Objects on the stack are dropped without being destroyed, so threads can be killed and failed executions
  /// dropped.
  void prepare(void (*body)(void*), void* argument);
  /// Suspends this fibre, which must be the running one, until another fibre switches back to it.
  void switch_to(Fibre& next);
  [[noreturn]] void leave_for_good_to(Fibre& next);

private:
  void allocate();
  static void enter();

  std::byte* stack_ = nullptr; ///< lowest byte of the mapping: a guard page
  void* saved_ = nullptr;      ///< stack pointer, or the context, while the fibre does not run
  void* fake_stack_ = nullptr; ///< the address sanitizer's
  const void* bottom_ = nullptr;
  std::size_t size_ = 0;
  void (*body_)(void*) = nullptr;
  void* argument_ = nullptr;
};

} // namespace near::model
