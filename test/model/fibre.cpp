#include "fibre.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#if defined(__SANITIZE_ADDRESS__)
#define NEAR_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define NEAR_ADDRESS_SANITIZER 1
#endif
#endif
#ifdef NEAR_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace near::model {

namespace {

constexpr std::size_t stack_bytes = 256u << 10, guard_bytes = 64u << 10; // a page is at most 64 KiB

Fibre* entering = nullptr; ///< the fibre that is being entered for the first time
Fibre* left = nullptr;     ///< the fibre that the last switch left

#if defined(__x86_64__)
// Saves the registers that the calling convention preserves on the old stack and loads them from the new one.
extern "C" void near_model_switch(void** save, void* load);
asm(R"(
.text
.type near_model_switch, @function
near_model_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size near_model_switch, . - near_model_switch
)");
#endif

} // namespace

Fibre::~Fibre() {
  if (stack_ != nullptr) munmap(stack_, guard_bytes + stack_bytes);
#if !defined(__x86_64__)
  delete static_cast<ucontext_t*>(saved_);
#endif
}

void Fibre::allocate() {
  void* made = mmap(nullptr, guard_bytes + stack_bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (made == MAP_FAILED || mprotect(made, guard_bytes, PROT_NONE) != 0) {
    std::perror("no memory for a fibre's stack");
    std::abort();
  }
  stack_ = static_cast<std::byte*>(made);
  bottom_ = stack_ + guard_bytes;
  size_ = stack_bytes;
}

void Fibre::prepare(void (*body)(void*), void* argument) {
  if (stack_ == nullptr) allocate();
  body_ = body;
  argument_ = argument;
#ifdef NEAR_ADDRESS_SANITIZER
  __asan_unpoison_memory_region(bottom_, size_); // dropped frames have left red zones behind
  fake_stack_ = nullptr;
#endif
#if defined(__x86_64__)
  auto* top = reinterpret_cast<std::uintptr_t*>(stack_ + guard_bytes + stack_bytes);
  *--top = 0; // in place of a return address, so the stack is aligned as after a call
  *--top = reinterpret_cast<std::uintptr_t>(&Fibre::enter);
  for (int registers = 6; registers > 0; --registers) *--top = 0;
  saved_ = top;
#else
  if (saved_ == nullptr) saved_ = new ucontext_t;
  auto* context = static_cast<ucontext_t*>(saved_);
  getcontext(context);
  context->uc_stack.ss_sp = stack_ + guard_bytes;
  context->uc_stack.ss_size = stack_bytes;
  context->uc_link = nullptr;
  makecontext(context, &Fibre::enter, 0);
#endif
}

namespace {

#ifdef NEAR_ADDRESS_SANITIZER
void announce(void** fake_stack, const void* bottom, std::size_t size) {
  __sanitizer_start_switch_fiber(fake_stack, bottom, size);
}
void arrived(void* fake_stack, const void** bottom, std::size_t* size) {
  __sanitizer_finish_switch_fiber(fake_stack, bottom, size);
}
#else
void announce(void**, const void*, std::size_t) {}
void arrived(void*, const void**, std::size_t*) {}
#endif

void change(void** save, void* load) {
#if defined(__x86_64__)
  near_model_switch(save, load);
#else
  if (*save == nullptr) *save = new ucontext_t;
  swapcontext(static_cast<ucontext_t*>(*save), static_cast<ucontext_t*>(load));
#endif
}

} // namespace

void Fibre::enter() {
  Fibre& self = *entering;
  // The very first fibre is the system's stack, whose bounds only the sanitizer knows.
  const void* bottom = nullptr;
  std::size_t size = 0;
  arrived(nullptr, &bottom, &size);
  if (left->stack_ == nullptr) {
    left->bottom_ = bottom;
    left->size_ = size;
  }
  self.body_(self.argument_);
  std::abort();
}

void Fibre::switch_to(Fibre& next) {
  left = this;
  entering = &next;
  announce(&fake_stack_, next.bottom_, next.size_);
  change(&saved_, next.saved_);
  arrived(fake_stack_, nullptr, nullptr);
}

void Fibre::leave_for_good_to(Fibre& next) {
  left = this;
  entering = &next;
  announce(nullptr, next.bottom_, next.size_);
  change(&saved_, next.saved_);
  std::abort();
}

} // namespace near::model
