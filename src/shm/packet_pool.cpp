#include "shm/packet_pool.h"

#include "base/kill_point.h"
#include "os/memory.h"

#include <algorithm>
#include <bit>
#include <span>

namespace near::shm {

void PacketPool::build(std::byte* packets, PacketFlag* flags, std::uint32_t count, std::uint32_t most,
                       std::uint64_t packet_bytes) {
  packets_ = packets;
  flags_ = flags;
  packet_bytes_ = packet_bytes;
  count_ = count;
  most_ = most;
  turn_ = std::min(reserve + 2 * few, count);
  generations_.assign(most, 0);
  free_ = 0;
  first_ = most; // so that the first check is of the first group
}

bool PacketPool::look_at_next_group(std::uint32_t end) {
  first_ += group;
  if (first_ >= end) {
    first_ = reserve;
    if (uses_since_growth_ >= uses_before_growth) grow();
  }
  std::uint32_t packets = std::min(group, end - first_);
  free_ = 0;
  for (std::uint32_t i = 0; i < packets; ++i)
    free_ |= std::uint64_t{flags_[first_ + i].is_home(generations_[first_ + i])} << i;
  return free_ != 0;
}

/// Adds a packet. Returns false if there are all, or no memory for another one.
bool PacketPool::grow() {
  uses_since_growth_ = 0;
  if (count_ == most_) return false;
  NEAR_KILL_POINT("packets-grow");
  if (os::populate(packets_ + count_ * packet_bytes_, packet_bytes_).ok()) {
    ++count_;
    return true;
  }
  most_ = count_; // the packets that there are have to suffice
  return false;
}

/// Takes the next free packet below `end`, which must be above the reserve. Packets of the current group that
/// were found free earlier come first, even if they are not below `end`.
PacketPool::Taken PacketPool::take_below(std::uint32_t end) {
  if (free_ == 0) [[unlikely]] {
    // Check each group once, the current one last.
    std::uint32_t checks = (end - reserve + group - 1) / group;
    while (!look_at_next_group(end))
      if (--checks == 0) return {};
  }
  auto bit = static_cast<std::uint32_t>(std::countr_zero(free_));
  free_ &= free_ - 1;
  return mark(first_ + bit);
}

/// Widens the rotation of eager messages to `most` packets at most, by the result of take_below(): after 32 uses, or at
/// once if there was no free packet.
PacketPool::Taken PacketPool::widen(Taken taken, std::uint32_t most) {
  if (taken) {
    if (++uses_since_widening_ < uses_before_widening) return taken;
    uses_since_widening_ = 0;
  }
  turn_ = std::min(turn_ + few, most);
  return taken ? taken : take_below(turn_);
}

/// For an eager message that has found no free packet in the rotation.
PacketPool::Taken PacketPool::take_any_or_grow() {
  turn_ = count_;
  if (Taken taken = take_below(count_)) return taken;
  return grow() ? mark(count_ - 1) : Taken{};
}

PacketPool::Taken PacketPool::take(std::uint64_t bytes, bool in_stream) {
  uses_since_growth_ += in_stream ? uses_in_stream : 1;
  const std::uint32_t most =
      bytes < short_message && !in_stream ? std::min(enough_for_short, count_) : count_;
  Taken taken = take_below(std::min(turn_, most));
  if (turn_ < most) [[unlikely]]
    taken = widen(taken, most);
  if (taken) [[likely]]
    return taken;
  return take_any_or_grow();
}

PacketPool::Taken PacketPool::take_for_train(bool in_stream) {
  uses_since_growth_ += in_stream ? uses_in_stream : 1;
  Taken taken = take_below(turn_);
  while (!taken && turn_ < count_) taken = widen(taken, count_);
  return taken;
}

void PacketPool::add_for_trains(std::uint32_t packets) {
  const std::uint32_t enough = std::min(reserve + several_trains * packets, enough_for_trains);
  if (count_ < enough) grow();
}

bool PacketPool::has_long_turn(std::uint64_t on_their_way) const {
  return on_their_way >= many_bytes && count_ >= packets_in_long_turn();
}

void PacketPool::fragment_left(std::uint64_t on_their_way, std::uint32_t packets) {
  if (on_their_way < adds_packets || has_long_turn(on_their_way)) return;
  uses_since_growth_ += packets * uses_in_long_turn;
  if (uses_since_growth_ >= uses_before_growth) grow();
}

PacketPool::Taken PacketPool::take_run() {
  const std::uint32_t end = std::min(count_, packets_in_long_turn());
  if (end < reserve + run) return {};
  // Each group once, and the rest of the current one before.
  for (std::uint32_t looks = (end - reserve + group - 1) / group + 1; looks != 0; --looks) {
    static_assert(run == 4 && group % run == 0);
    // Bits at multiples of four, if they and the next three are set.
    const std::uint64_t pairs = free_ & free_ >> 1, runs = pairs & pairs >> 2 & 0x1111'1111'1111'1111;
    if (runs != 0) {
      const auto bit = static_cast<std::uint32_t>(std::countr_zero(runs));
      free_ &= ~(std::uint64_t{0xf} << bit);
      return mark_run(first_ + bit);
    }
    look_at_next_group(end);
  }
  return {};
}

/// Gives the packets of a run one generation, which none of them has: the first one, if one of them is new (OutgoingPacket::is_new).
PacketPool::Taken PacketPool::mark_run(std::uint32_t first) {
  const auto generations = std::span(generations_).subspan(first, run);
  auto has = [&](std::uint8_t each) {
    return std::find(generations.begin(), generations.end(), each) != generations.end();
  };
  std::uint8_t next = has(0) ? 1 : generations[0];
  while (has(next)) ++next;
  std::fill(generations.begin(), generations.end(), next);
  return {first, next};
}

PacketPool::Taken PacketPool::take_for_fragment(std::uint64_t on_their_way) {
  std::uint32_t end = on_their_way >= many_bytes
                          ? std::min(count_, std::max(packets_in_long_turn(), reserve + group))
                          : count_;
  if (Taken taken = take_below(end)) return taken;
  for (std::uint32_t packet = 0; packet < reserve; ++packet)
    if (flags_[packet].is_home(generations_[packet])) return mark(packet);
  return {};
}

} // namespace near::shm
