#include "shm/asked_for.h"

#include <utility>

namespace near::shm {

void AskedFor::begin_turn(std::uint64_t now_ns) {
  const std::uint64_t bytes = std::exchange(arrived_, 0);
  const auto took = static_cast<float>(now_ns - std::exchange(began_ns_, now_ns));
  const Class its = class_of(std::exchange(most_, 0));
  const std::uint64_t copied = std::exchange(copied_, {})[its];
  if (its == fits || its == too_long) return;
  // Of a turn that grew, or of data with gaps, too little went the way that is measured.
  if (bytes < least || 2 * copied < bytes)
    turns_of(its).skip();
  else if (before_[its] < first_turns)
    ++before_[its];
  else
    turns_of(its).note(took * 1024 / static_cast<float>(bytes));
}

} // namespace near::shm
