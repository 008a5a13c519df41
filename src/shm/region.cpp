// Lays out, binds, reserves and fills in this process's region of the segment before any other process sees it.
#include "shm/engine.h"

#include "base/checked.h"
#include "base/kill_point.h"
#include "base/knob.h"
#include "base/log.h"
#include "base/text.h"
#include "memory/allocate.h"
#include "memory/segments.h"
#include "os/clock.h"
#include "os/descriptor.h"
#include "os/limits.h"
#include "os/memory.h"

#include <algorithm>
#include <bit>
#include <new>
#include <unistd.h>

namespace near::shm {

segment::JobShape job_shape() { return {engine().job_size, memory::space().segment.cores()}; }

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
  const std::uint64_t each = segment::reserved_by_knobs(job_shape()), all = each * engine().job_size;
  if (each <= head.expected_reserve || all < segment::large_reserve) return;
  if (!segment::first_to_say(head, segment::Notice::reserve)) return;
  base::log(Level::warning, "{} MiB of packets and queues for {} ({}) are reserved now", all >> 20,
            base::counted(engine().job_size, "rank"), segment::reserving_knobs(job_shape()));
}

/// Returns the descriptor whose lock this process holds while it checks and allocates what it reserves, or -1.
///
/// mpiexec has checked that what it expects of all ranks fits. If this rank reserves more, other ranks probably do so
/// as well, and two that check at the same time would both count the same free memory as theirs. So they take turns:
/// each finds what those before it have allocated in use, and needs to know nothing of those that come later. A sum
/// over ranks that allocate meanwhile would count some pages twice, and refuse jobs that fit.
int turn_to_reserve(int segment_descriptor) {
  const std::uint64_t each = segment::reserved_by_knobs(job_shape());
  const bool checked = each <= memory::space().segment.header().expected_reserve;
  return checked || each * engine().job_size < segment::checked_reserve ? -1 : segment_descriptor;
}

/// Fails if there is no memory for the `bytes` that this process reserves.
Result check_reserve(std::uint64_t bytes) {
  Result fits = os::check_memory(bytes);
  if (fits.ok()) return fits;
  const std::uint32_t ranks = engine().job_size;
  const auto whose = ranks == 1 ? std::string("1 rank")
                                : base::format("rank {}, one of {} ranks on this machine",
                                               memory::process_in(engine().row).rank, ranks);
  return fail(fits.code(),
              "{} MiB of packets and queues for {} ({}) do not fit: {}; lower the one that is too large{}",
              bytes >> 20, whose, segment::reserving_knobs(job_shape()), std::string(base::failure_text()),
              ranks == 1 ? "" : ", or start fewer ranks");
}

/// Where the parts of this process's region lie, and how large they are.
struct Layout {
  std::uint64_t slots = 0;
  std::uint32_t lanes = 0;
  std::uint64_t packet_bytes = 0;
  std::uint32_t packets = 0;      ///< from the start
  std::uint32_t most_packets = 0; ///< others are added under traffic
  // Offsets in the segment, in this order.
  segment::Offset begin = 0, queue_at = 0, credits_at = 0, flags_at = 0, area_at = 0, lanes_at = 0,
                  slices_at = 0, packets_at = 0, statistics_at = 0, traffic_at = 0, blocks_at = 0,
                  arena_at = 0;

  // Bytes with memory from the start: up to the first lanes, the first slice, and the first packets.
  std::uint64_t first_bytes() const {
    return align_to_page(lanes_at - begin +
                         queue::LaneRing<>::bytes(lane_slots) * std::min(lanes, first_lanes));
  }
  std::uint64_t first_slice_bytes() const { return segment::first_slice_bytes(engine().job_size); }
  std::uint64_t first_packet_bytes() const { return packets * packet_bytes; }
};

/// Lays out the region as the knobs say. Fails if it has too little space.
Result lay_out(Layout& made) {
  const auto& knobs = base::knobs();
  const auto& head = memory::space().segment.header();
  made.slots = std::bit_ceil(knobs.queue_slots.number);
  made.lanes = static_cast<std::uint32_t>(knobs.lanes.number);
  made.packet_bytes = segment::packet_bytes();
  made.packets = static_cast<std::uint32_t>(segment::first_packets(job_shape()));
  if (made.packets < 2 * PacketPool::reserve || knobs.lanes.number > most_lanes)
    return fail(Code::internal, "the table of knobs allows what the transport cannot do");
  // If a limit (ulimit -v, -f) made the segment small, use fewer packets, so that an arena still fits.
  const std::uint64_t pipeline_bytes = std::min<std::uint64_t>(knobs.pipeline.number, head.stride / 2);
  made.most_packets = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(pipeline_bytes / made.packet_bytes, made.packets, 1u << 20));

  made.begin = memory::space().segment.region(engine().row);
  made.queue_at = made.begin + align_to_page(sizeof(segment::ControlPage));
  made.credits_at = made.queue_at + align_to_page(queue::SlotQueue<>::bytes(made.slots));
  made.flags_at = made.credits_at + align_to_page(std::uint64_t{head.rows} * sizeof(queue::CreditCounter<>));
  made.area_at = made.flags_at + align_to_page(made.most_packets * sizeof(PacketFlag));
  made.lanes_at = made.area_at + align_to_page(segment::first_part_bytes(engine().job_size));
  made.slices_at = made.lanes_at + align_to_page(made.lanes * queue::LaneRing<>::bytes(lane_slots));
  made.packets_at = made.slices_at + align_to_page(segment::region_slices * segment::slice_bytes);
  made.statistics_at = made.packets_at + made.most_packets * made.packet_bytes;
  made.traffic_at = made.statistics_at + align_to_page(head.rows * sizeof(segment::PairStatistics));
  made.blocks_at = made.traffic_at + align_to_page(segment::traffic_bytes(head.rows));
  made.arena_at = made.blocks_at + align_to_page(memory::Blocks::bytes());
  if (made.arena_at - made.begin <= head.stride) return {};
  return fail(Code::limit,
              "this process's part of the segment is {} KiB of addresses, its queue and packets need {} "
              "KiB; {}lower "
              "NEAR_PACKETS, NEAR_EAGER_LIMIT or NEAR_QUEUE_SLOTS, or give them to mpiexec, which makes "
              "the segment",
              head.stride >> 10, (made.arena_at - made.begin) >> 10, raise_limits());
}

/// Binds the region to this process's node and allocates the pages that are used from the start. Sets `addable_packets` to the
/// number of packets for which there is memory.
Result reserve(const Layout& layout, int segment_descriptor, std::uint32_t& addable_packets) {
  std::byte* region = memory::space().segment.at<std::byte>(layout.begin);
  Result policy = os::prefer_node(region, layout.arena_at - layout.begin, os::current_node());
  // Not even if the administrator has enabled huge pages everywhere: what is reserved here is smaller than
  // one.
  os::advise_huge_pages(region, memory::space().segment.header().stride, os::HugePages::never);
  if (!policy.ok()) base::log(Level::debug, "{}", base::failure_text());
  const std::uint64_t reserved =
      layout.first_bytes() + layout.first_slice_bytes() + layout.first_packet_bytes();
  addable_packets = layout.most_packets;
  const os::FileLock turn(turn_to_reserve(segment_descriptor));
  // There must be memory for the first packets of this process, and, if more are to be added, for those of all: adding
  // one is too frequent for a check.
  const std::uint64_t more = (layout.most_packets - layout.packets) * layout.packet_bytes * engine().job_size;
  if (!os::check_memory(reserved + more).ok()) {
    NEAR_TRY(check_reserve(reserved));
    addable_packets = layout.packets;
  }
  report_reserve();
  auto populate = [&](segment::Offset at, std::uint64_t bytes) {
    return bytes == 0 ? Result{} : os::populate(region + (at - layout.begin), bytes);
  };
  NEAR_TRY(populate(layout.begin, layout.first_bytes()));
  NEAR_TRY(populate(layout.slices_at, layout.first_slice_bytes()));
  return populate(layout.packets_at, layout.first_packet_bytes());
}

void construct_lane(std::byte* lanes, LaneIn& lane) {
  auto* ring = new (lanes + lane.index * queue::LaneRing<>::bytes(lane_slots)) queue::LaneRing<>;
  for (std::uint64_t slot = 1; slot < lane_slots; ++slot) new (&ring->slots[slot]) queue::Slot<>;
  lane.reader.attach(ring, lane_slots);
  lane.built = true;
}

/// Constructs what lies in the reserved part, and attaches the engine to it.
void fill(const Layout& layout, std::uint32_t addable_packets) {
  Engine& self = engine();
  const segment::Segment& job = memory::space().segment;
  auto* queue = new (job.at<std::byte>(layout.queue_at)) queue::SlotQueue<>;
  for (std::uint64_t i = 1; i < layout.slots; ++i) new (&queue->slots[i]) queue::Slot<>;
  self.queue.attach(queue, layout.slots);
  self.lane_count = layout.lanes;
  for (std::uint32_t i = 0; i < layout.lanes; ++i) {
    self.lanes[i].index = i;
    if (i < first_lanes) construct_lane(job.at<std::byte>(layout.lanes_at), self.lanes[i]);
  }
  auto* credits = job.at<queue::CreditCounter<>>(layout.credits_at);
  for (std::uint32_t i = 0; i < job.header().rows; ++i) new (credits + i) queue::CreditCounter<>;
  auto* flags = job.at<PacketFlag>(layout.flags_at);
  for (std::uint32_t i = 0; i < layout.most_packets; ++i) new (flags + i) PacketFlag;
  // Nothing to initialize: the pages read as zeros, and the first message that is counted there allocates
  // them.
  for (std::size_t path = 0; path < segment::paths; ++path)
    self.traffic[path] = job.at<segment::Traffic>(layout.traffic_at) + path * job.header().rows;
  self.packets.build(job.at<std::byte>(layout.packets_at), flags, layout.packets, addable_packets,
                     layout.packet_bytes);
}

/// Writes the control page. Peers do not read it before this process is ready.
segment::ControlPage& write_control_page(const Layout& layout) {
  const segment::Segment& job = memory::space().segment;
  auto* control = new (job.at<std::byte>(layout.begin)) segment::ControlPage{};
  control->version = segment::layout_version;
  control->pid = static_cast<std::uint32_t>(getpid());
  control->queue = layout.queue_at;
  control->area_part = layout.area_at;
  control->lanes = layout.lanes_at;
  control->slices = layout.slices_at;
  control->credits = layout.credits_at;
  control->packet_flags = layout.flags_at;
  control->packets = layout.packets_at;
  control->statistics = layout.statistics_at;
  control->traffic = layout.traffic_at;
  control->blocks = layout.blocks_at;
  control->arena = layout.arena_at;
  control->queue_slots = layout.slots;
  control->lane_count = layout.lanes;
  control->packet_count = layout.packets;
  control->packet_bytes = layout.packet_bytes;
  control->arena_bytes = layout.begin + job.header().stride - layout.arena_at;
  probe_word = static_cast<std::uint64_t>(getpid()) * 0x9e3779b97f4a7c15u ^ os::monotonic_ns();
  control->probe_address = reinterpret_cast<std::uint64_t>(&probe_word);
  control->probe_value = probe_word;
  NEAR_KILL_POINT("region-filled");
  control->magic = segment::magic;
  return *control;
}

} // namespace

bool build_lane(LaneIn& lane) {
  std::byte* lanes = memory::space().segment.at<std::byte>(engine().control->lanes);
  const std::uint64_t bytes = queue::LaneRing<>::bytes(lane_slots), page = os::page_size();
  const std::uint64_t begin = lane.index * bytes / page * page, end = align_to_page((lane.index + 1) * bytes);
  if (!memory::populate_pages(lanes + begin, end - begin).ok()) return false;
  construct_lane(lanes, lane);
  return true;
}

Result build_region(int segment_descriptor) {
  Engine& self = engine();
  memory::Space& space = memory::space();
  Layout layout;
  NEAR_TRY(lay_out(layout));
  std::uint32_t addable_packets = 0;
  NEAR_TRY(reserve(layout, segment_descriptor, addable_packets));
  NEAR_KILL_POINT("region-reserved");
  fill(layout, addable_packets);
  self.eager_limit = std::max<std::uint64_t>(base::knobs().eager_limit.number, inline_bytes);
  self.kept_take_cached = base::knobs().stores.text != "streaming";
  // A limit below the default says that few messages should leave before they are received.
  if (self.eager_limit >= segment::smallest_packet) self.train_limit = longest_train;
  transport::fast_path.longest_eager = self.train_limit;
  transport::fast_path.eager_limit = self.eager_limit;
  space.kept.build();
  self.control = &write_control_page(layout);
  space.blocks.build(space.segment.at<segment::Block>(layout.blocks_at), &self.control->block_count);
  return {};
}

} // namespace near::shm
