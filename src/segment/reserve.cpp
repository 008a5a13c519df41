#include "segment/reserve.h"

#include "base/checked.h"
#include "base/knob.h"
#include "base/text.h"
#include "os/memory.h"

#include <algorithm>
#include <bit>

namespace near::segment {

namespace {

constexpr std::uint64_t queue_slot_bytes = 128;

} // namespace

std::uint64_t packet_bytes() {
  return base::round_up(std::max<std::uint64_t>(base::knobs().eager_limit.number, smallest_packet),
                        os::page_size());
}

std::uint64_t reserved_by_knobs() {
  const auto& knobs = base::knobs();
  return knobs.packets.number * packet_bytes() + std::bit_ceil(knobs.queue_slots.number) * queue_slot_bytes;
}

std::string reserving_knobs() {
  const auto& knobs = base::knobs();
  return base::format("NEAR_PACKETS={}, NEAR_EAGER_LIMIT={}, NEAR_QUEUE_SLOTS={}", knobs.packets.number,
                      knobs.eager_limit.text, knobs.queue_slots.number);
}

std::uint64_t bytes_by_knobs() {
  const auto& knobs = base::knobs();
  std::uint64_t begin_with = knobs.packets.number * packet_bytes();
  return reserved_by_knobs() - begin_with + std::max<std::uint64_t>(begin_with, knobs.pipeline.number);
}

} // namespace near::segment
