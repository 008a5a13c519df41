#include "shm/asked_for.h"

#include "os/clock.h"
#include "os/memory.h"

#include <utility>

namespace near::shm {

std::uint64_t AskedFor::last_level_cache() {
  constexpr std::uint64_t usual = 32u << 20;
  static const std::uint64_t largest = os::largest_cache();
  return largest != 0 ? largest : usual;
}

void AskedFor::begin_turn() {
  const std::uint64_t bytes = std::exchange(bytes_, 0), most = std::exchange(most_, 0),
                      now = os::monotonic_ns();
  const auto took = static_cast<float>(now - std::exchange(began_ns_, now));
  if (most < std::max(least, cache_ / maybe_past) || most >= cache_) return;
  const std::size_t which = class_of(most);
  if (before_[which] < first_turns)
    ++before_[which];
  else
    turns_[which].note(took * 1024 / static_cast<float>(bytes));
}

} // namespace near::shm
