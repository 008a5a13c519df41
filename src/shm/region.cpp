// Lays out, binds, reserves and fills in this process's region of the segment before any other process sees it.
#include "shm/engine.h"

#include "base/checked.h"
#include "base/kill_point.h"
#include "base/knob.h"
#include "base/log.h"
#include "base/text.h"
#include "os/clock.h"
#include "os/limits.h"
#include "os/memory.h"

#include <algorithm>
#include <bit>
#include <new>
#include <unistd.h>

namespace near::shm {

using base::Code;
using base::fail;
using base::Level;

namespace {

/// Peers read this word through CMA to learn whether the kernel permits that. It is deliberately in private
/// memory.
std::uint64_t probe_word;

std::uint64_t align_to_page(std::uint64_t bytes) { return base::round_up(bytes, os::page_size()); }

/// Returns advice about the limits that made the segment small, such as "raise the limit on file sizes
/// (ulimit -f), ", or "" if there are none.
std::string raise_limits() {
  const bool addresses = os::address_space_limit() != UINT64_MAX, files = os::file_sizes_are_limited();
  if (!addresses && !files) return {};
  return base::format("raise the limit on {}{}{}, ", addresses ? "address space (ulimit -v)" : "",
                      addresses && files ? " and that on " : "", files ? "file sizes (ulimit -f)" : "");
}

/// Reports, once per job, that its ranks reserve much memory, unless mpiexec has done so: it does not see knobs that
/// are set between it and the rank, and there is none in a job of one rank.
void report_reserve() {
  auto& head = memory::space().segment.header();
  const std::uint64_t each = segment::reserved_by_knobs(), all = each * engine().job_size;
  if (each <= head.expected_reserve || all < segment::large_reserve) return;
  if (!segment::first_to_say(head, segment::Notice::reserve)) return;
  base::log(Level::warning, "{} MiB of packets and queues for {} ({}) are reserved now", all >> 20,
            base::counted(engine().job_size, "rank"), segment::reserving_knobs());
}

} // namespace

Result build_region() {
  Engine& self = engine();
  const auto& knobs = base::knobs();
  auto& head = memory::space().segment.header();
  std::uint64_t slots = std::bit_ceil(knobs.queue_slots.number);
  std::uint64_t packet_bytes = segment::packet_bytes();
  auto packets = static_cast<std::uint32_t>(knobs.packets.number);
  if (packets < 2 * PacketPool::reserve || knobs.lanes.number > most_lanes)
    return fail(Code::internal, "the table of knobs allows what the transport cannot do");
  // If a limit (ulimit -v, -f) made the segment small, use fewer packets, so that an arena still fits.
  std::uint64_t pipeline_bytes = std::min<std::uint64_t>(knobs.pipeline.number, head.stride / 2);
  auto most_packets =
      static_cast<std::uint32_t>(std::clamp<std::uint64_t>(pipeline_bytes / packet_bytes, packets, 1u << 20));

  segment::Offset begin = memory::space().segment.region(self.row);
  segment::Offset queue_at = begin + align_to_page(sizeof(segment::ControlPage));
  auto lanes = static_cast<std::uint32_t>(knobs.lanes.number);
  segment::Offset lanes_at = queue_at + align_to_page(queue::SlotQueue<>::bytes(slots));
  segment::Offset credits_at = lanes_at + align_to_page(lanes * queue::LaneRing<>::bytes(lane_slots));
  segment::Offset flags_at =
      credits_at + align_to_page(std::uint64_t{head.rows} * sizeof(queue::CreditCounter<>));
  segment::Offset packets_at = flags_at + align_to_page(most_packets * sizeof(PacketFlag));
  segment::Offset statistics_at = packets_at + most_packets * packet_bytes;
  segment::Offset traffic_at = statistics_at + align_to_page(head.rows * sizeof(segment::PairStatistics));
  segment::Offset blocks_at = traffic_at + align_to_page(segment::traffic_bytes(head.rows));
  segment::Offset arena_at = blocks_at + align_to_page(memory::Blocks::bytes());
  if (arena_at - begin > head.stride)
    return fail(Code::limit,
                "this process's part of the segment is {} KiB of addresses, its queue and packets need {} "
                "KiB; {}lower "
                "NEAR_PACKETS, NEAR_EAGER_LIMIT or NEAR_QUEUE_SLOTS, or give them to mpiexec, which makes "
                "the segment",
                head.stride >> 10, (arena_at - begin) >> 10, raise_limits());

  std::byte* base = memory::space().segment.base();
  int node = os::current_node();
  Result policy = os::prefer_node(base + begin, arena_at - begin, node);
  // Not even if the administrator has enabled huge pages everywhere: what is reserved here is smaller than
  // one.
  os::advise_huge_pages(base + begin, head.stride, os::HugePages::never);
  if (!policy.ok()) base::log(Level::debug, "{}", base::failure_text());
  // The other packets are added under traffic.
  segment::Offset populated_end = packets_at + packets * packet_bytes;
  std::uint32_t addable_packets = most_packets;
  // There must be memory for the first packets of this process, and, if more are to be added, for those of all: adding
  // one is too frequent for a check.
  const std::uint64_t more = (most_packets - packets) * packet_bytes * self.job_size;
  if (!os::check_memory(populated_end - begin + more).ok()) {
    NEAR_TRY(os::check_memory(populated_end - begin));
    addable_packets = packets;
  }
  report_reserve();
  NEAR_TRY(os::populate(base + begin, populated_end - begin));

  NEAR_KILL_POINT("region-reserved");
  auto* queue = new (base + queue_at) queue::SlotQueue<>;
  for (std::uint64_t i = 1; i < slots; ++i) new (&queue->slots[i]) queue::Slot<>;
  self.lane_count = lanes;
  for (std::uint32_t i = 0; i < lanes; ++i) {
    auto* ring = new (base + lanes_at + i * queue::LaneRing<>::bytes(lane_slots)) queue::LaneRing<>;
    for (std::uint64_t slot = 1; slot < lane_slots; ++slot) new (&ring->slots[slot]) queue::Slot<>;
    self.lanes[i].index = i;
    self.lanes[i].reader.attach(ring, lane_slots);
  }
  auto* credits = memory::space().segment.at<queue::CreditCounter<>>(credits_at);
  for (std::uint32_t i = 0; i < head.rows; ++i) new (credits + i) queue::CreditCounter<>;
  auto* flags = memory::space().segment.at<PacketFlag>(flags_at);
  for (std::uint32_t i = 0; i < most_packets; ++i) new (flags + i) PacketFlag;
  // Nothing to initialize: the pages read as zeros, and the first message that is counted there allocates
  // them.
  for (std::size_t path = 0; path < segment::paths; ++path)
    self.traffic[path] = memory::space().segment.at<segment::Traffic>(traffic_at) + path * head.rows;
  self.packets.build(base + packets_at, flags, packets, addable_packets, packet_bytes);
  self.eager_limit = std::max<std::uint64_t>(knobs.eager_limit.number, inline_bytes);
  transport::fast_path.eager_limit = self.eager_limit;
  memory::space().kept.build();
  auto* control = new (base + begin) segment::ControlPage{};
  control->version = segment::layout_version;
  control->pid = static_cast<std::uint32_t>(getpid());
  control->queue = queue_at;
  control->lanes = lanes_at;
  control->credits = credits_at;
  control->packet_flags = flags_at;
  control->packets = packets_at;
  control->statistics = statistics_at;
  control->traffic = traffic_at;
  control->blocks = blocks_at;
  control->arena = arena_at;
  control->queue_slots = slots;
  control->lane_count = lanes;
  control->packet_count = most_packets;
  control->packet_bytes = packet_bytes;
  control->arena_bytes = begin + head.stride - arena_at;
  probe_word = static_cast<std::uint64_t>(getpid()) * 0x9e3779b97f4a7c15u ^ os::monotonic_ns();
  control->probe_address = reinterpret_cast<std::uint64_t>(&probe_word);
  control->probe_value = probe_word;
  NEAR_KILL_POINT("region-filled");
  control->magic = segment::magic;
  self.control = control;
  memory::space().blocks.build(memory::space().segment.at<segment::Block>(blocks_at), &control->block_count);
  self.queue.attach(queue, slots);
  return {};
}

} // namespace near::shm
