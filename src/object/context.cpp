#include "object/context.h"

#include <stdexcept>

namespace near::object {

namespace {

constinit std::uint64_t contexts_made = 0;

} // namespace

std::uint64_t new_context() {
  constexpr std::uint64_t last = (std::uint64_t{1} << context_counter_bits) - 1;
  if (contexts_made == last)
    throw std::length_error("this process has made as many communicators as there are context ids");
  const std::uint64_t process = std::uint64_t{own_process().rank} + 1;
  return (process << context_counter_bits | ++contexts_made) << 4;
}

void set_contexts_made(std::uint64_t count) { contexts_made = count; }

} // namespace near::object
