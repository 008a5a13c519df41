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

/// By default a rank starts with `few` packets, or in a small job with `many`, of 16 KiB each unless the eager limit
/// is larger.
constexpr std::uint64_t few = 32, many = 64;

} // namespace

std::uint64_t packet_bytes() {
  return base::round_up(std::max<std::uint64_t>(base::knobs().eager_limit.number, smallest_packet),
                        os::page_size());
}

bool is_small_job(JobShape job) {
  constexpr std::uint32_t most = 16;
  return job.ranks > 1 && job.ranks <= most && job.ranks <= job.processors;
}

std::uint64_t first_packets(JobShape job) {
  const auto& packets = base::knobs().packets;
  if (!packets.automatic) return packets.number;
  return is_small_job(job) ? many : few;
}

std::uint64_t reserved_by_knobs(JobShape job) {
  const auto& knobs = base::knobs();
  return first_packets(job) * packet_bytes() + std::bit_ceil(knobs.queue_slots.number) * queue_slot_bytes;
}

std::string reserving_knobs(JobShape job) {
  const auto& knobs = base::knobs();
  return base::format("NEAR_PACKETS={}, NEAR_EAGER_LIMIT={}, NEAR_QUEUE_SLOTS={}", first_packets(job),
                      knobs.eager_limit.text, knobs.queue_slots.number);
}

std::uint64_t bytes_by_knobs(JobShape job) {
  const std::uint64_t begin_with = first_packets(job) * packet_bytes();
  return reserved_by_knobs(job) - begin_with +
         std::max<std::uint64_t>(begin_with, base::knobs().pipeline.number);
}

} // namespace near::segment
