#include "transport/cells.h"

#include "base/kill_point.h"
#include "os/limits.h"
#include "os/memory.h"

#include <algorithm>
#include <bit>

namespace near::transport {

void Cells::build(std::byte* cells, CellFlag* flags, std::uint32_t count, std::uint32_t most,
                  std::uint64_t cell_bytes) {
  cells_ = cells;
  flags_ = flags;
  cell_bytes_ = cell_bytes;
  count_ = count;
  most_ = most;
  laps_.assign(most, 0);
  free_ = 0;
  first_ = most; // the first look is at the first group
}

bool Cells::look_at_next_group(std::uint32_t end) {
  first_ += group;
  if (first_ >= end) {
    first_ = reserve;
    if (rounds_ < rounds_before_growth) {
      ++rounds_;
      if (rounds_ == rounds_before_growth) grow();
    }
  }
  std::uint32_t cells = std::min(group, count_ - first_);
  free_ = 0;
  for (std::uint32_t i = 0; i < cells; ++i)
    free_ |= std::uint64_t{flags_[first_ + i].is_home(laps_[first_ + i])} << i;
  return free_ != 0;
}

void Cells::grow() {
  std::uint64_t bytes = (most_ - count_) * cell_bytes_;
  if (bytes == 0 || !os::check_memory(bytes).ok()) return;
  NEAR_KILL_POINT("cells-grow");
  // When memory is short the first cells must do.
  if (os::populate(cells_ + count_ * cell_bytes_, bytes).ok()) count_ = most_;
}

/// The next free cell of those below `end`, which is above the reserve. Cells of the present group that were
/// seen free are taken first, wherever they lie.
Cells::Taken Cells::take_below(std::uint32_t end) {
  if (free_ == 0) [[unlikely]] {
    // Each group once, the present one last.
    std::uint32_t looks = (end - reserve + group - 1) / group;
    while (!look_at_next_group(end))
      if (--looks == 0) return {};
  }
  auto bit = static_cast<std::uint32_t>(std::countr_zero(free_));
  free_ &= free_ - 1;
  return mark(first_ + bit);
}

Cells::Taken Cells::take() { return take_below(count_); }

Cells::Taken Cells::take_for_piece(std::uint64_t bytes) {
  auto enough = static_cast<std::uint32_t>(long_turn / cell_bytes_);
  std::uint32_t end = bytes >= long_message ? std::min(count_, std::max(enough, reserve + group)) : count_;
  if (Taken taken = take_below(end)) return taken;
  for (std::uint32_t cell = 0; cell < reserve; ++cell)
    if (flags_[cell].is_home(laps_[cell])) return mark(cell);
  return {};
}

} // namespace near::transport
