// Stacks to switch between: each thread of a model runs on one, all of them inside one thread of the system,
// so who runs next is the scheduler's decision alone and a switch costs nanoseconds.
#pragma once

#include <cstddef>

namespace near::model {

class Fibre {
public:
  Fibre() = default; ///< stands for the stack that it is first left from
  ~Fibre();
  Fibre(const Fibre&) = delete;
  Fibre& operator=(const Fibre&) = delete;

  /// Makes the next switch to this fibre call body(argument), which must leave by leave_for_good_to(). What
  /// lay on the stack is forgotten, not destroyed: so a thread can be killed, and a failed execution dropped.
  void prepare(void (*body)(void*), void* argument);
  /// Suspends this fibre, which must be the running one, until somebody switches back.
  void switch_to(Fibre& next);
  [[noreturn]] void leave_for_good_to(Fibre& next);

private:
  void allocate();
  static void enter();

  std::byte* stack_ = nullptr; ///< lowest byte of the mapping: a guard page
  void* saved_ = nullptr;      ///< stack pointer, or the context, while it does not run
  void* fake_stack_ = nullptr; ///< the address sanitizer's
  const void* bottom_ = nullptr;
  std::size_t size_ = 0;
  void (*body_)(void*) = nullptr;
  void* argument_ = nullptr;
};

} // namespace near::model
