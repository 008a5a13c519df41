// From MPI_Init to MPI_Finalize: this process joins the job, waits for the others, and leaves.
#include "shm/packets.h"
#include "shm/provider.h"

#include "base/kill_point.h"
#include "base/knob.h"
#include "base/log.h"
#include "base/text.h"
#include "memory/segments.h"
#include "object/context.h"
#include "os/futex.h"
#include "os/limits.h"
#include "os/peer_memory.h"
#include "transport/polling.h"

#include <algorithm>
#include <pthread.h>
#include <unistd.h>

namespace near::shm {

using base::Code;
using base::fail;
using base::Level;

namespace {

void in_forked_child() {
  // The segment is not mapped in the child (MADV_DONTFORK), so the child must not use MPI.
  transport::set_running(false);
}

/// Checks that NEAR_COPY names a protocol.
Result check_choice_of_copy() {
  std::vector<std::string_view> names = {"auto"};
  for (const Provider& provider : ladder())
    if (provider.protocol != Protocol::count) names.emplace_back(provider.name);
  const std::string& choice = base::knobs().copy.text;
  if (std::find(names.begin(), names.end(), choice) != names.end()) return {};
  std::string list;
  for (auto name : names)
    list += (list.empty() ? "" : name == names.back() ? " or " : ", ") + std::string(name);
  return fail(Code::invalid, "NEAR_COPY={}: expected {}{}", choice, list, base::did_you_mean(choice, names));
}

/// The limit in nanoseconds up to which each further sleep of one wait may take twice as long: if a thousand
/// ranks share two processors, polling every 10 ms would use up both.
std::uint64_t longest_sleep_ns() {
  constexpr std::uint64_t ranks_per_core = 8;
  return transport::sleep_limit_ns *
         std::max<std::uint64_t>(1, engine().job_size /
                                        (ranks_per_core * std::max(1u, memory::space().segment.cores())));
}

/// Prints the line for NEAR_STATS: what this process has sent and received.
void report_traffic() {
  const auto& counters = engine().control->counters;
  std::string text = "sent";
  for (std::size_t path = 0; path < segment::paths; ++path) {
    auto sent = transport::own_traffic(static_cast<segment::Path>(path));
    text += base::format("{} {}: {} messages, {} bytes", path == 0 ? "" : ";",
                         segment::path_name(static_cast<segment::Path>(path)), sent.messages, sent.bytes);
  }
  if (const std::uint64_t messages = counters.network_messages.load_relaxed(); messages != 0)
    text += base::format("; to other machines: {} messages, {} bytes", messages,
                         counters.network_bytes.load_relaxed());
  text += base::format("; received {} unexpected; slept {} times", counters.unexpected.load_relaxed(),
                       counters.sleeps.load_relaxed());
  if (const std::uint64_t read = counters.area_bytes.load_relaxed(); read != 0)
    text += base::format("; collectives read {} bytes of other ranks, {} of them from other NUMA nodes", read,
                         counters.area_bytes_of_other_nodes.load_relaxed());
  if (const std::uint64_t handed = counters.handed.load_relaxed(); handed != 0)
    text += base::format("; {} short one-sided operations carried out by their targets, {} by this rank",
                         handed - counters.taken_back.load_relaxed(), counters.taken_back.load_relaxed());
  base::write_line(Level::note, text);
}

/// Waits until all processes with which the job begins are ready.
void wait_for_first_processes() {
  const std::uint32_t job_size = engine().job_size;
  auto& head = memory::space().segment.header();
  for (;;) {
    // SYNC: all-ready. Acquire: the regions of all counted processes are laid out, for map_peer().
    std::uint32_t ready = head.ready.load_acquire();
    // Nothing wakes us when `held` is cleared, but the sleep times out.
    if (ready >= job_size && head.held.load_relaxed() == 0) return;
    os::futex_wait(head.ready.address(), ready, transport::sleep_limit_ns * (1 + job_size / 64));
  }
}

/// Lets other processes see this one.
void publish() {
  // SYNC: rank-phase. A process that sees `ready` sees the region's layout.
  memory::space()
      .segment.entry(engine().row)
      .phase.store_release(static_cast<std::uint32_t>(segment::Phase::ready));
}

/// Bytes of this process's region before its arena, which other processes read.
std::uint64_t front_bytes() { return engine().control->arena - memory::space().segment.region(engine().row); }

void note_front(segment::Header& head) {
  std::uint64_t largest = head.largest_front.load_relaxed();
  while (largest < front_bytes() && !head.largest_front.cas_relaxed(largest, front_bytes())) {}
}

Result check_fronts(std::uint64_t largest, std::uint64_t mapped) {
  if (largest <= mapped) return {};
  return fail(Code::limit,
              "a process of this job has {} KiB of queue and packets, of which this process can map {} KiB: "
              "lower NEAR_PACKETS, NEAR_EAGER_LIMIT or NEAR_QUEUE_SLOTS, and give them to all ranks alike",
              largest >> 10, mapped >> 10);
}

/// Publishes this process and waits for the others with which the job begins.
Result meet() {
  Engine& self = engine();
  segment::Segment& job = memory::space().segment;
  auto& head = job.header();
  if (!os::register_for_barrier()) head.fences.store_relaxed(1);
  note_front(head);
  NEAR_KILL_POINT("init-unready");
  publish();
  NEAR_KILL_POINT("init-uncounted");
  // SYNC: all-ready. Release: our region is laid out before we are counted.
  const std::uint32_t before = head.ready.add_acq_rel(1);
  NEAR_KILL_POINT("init-counted");
  // Only the last one wakes the others: if each did, a job of a thousand ranks would start with a million
  // wake-ups.
  if (before + 1 >= self.job_size) os::futex_wake_all(head.ready.address());
  wait_for_first_processes();
  NEAR_KILL_POINT("init-met");
  self.fences = head.fences.load_relaxed() != 0;
  memory::open_arenas(self.control->arena);
  NEAR_TRY(reserve_rts());
  return check_fronts(head.largest_front.load_relaxed(),
                      job.reach()); // map_peer() reads this much of each region
}

/// Publishes this process in a job that has begun. The others have agreed without it on where they allocate, how much of
/// a region they map, and whether senders fence, so it is refused if it cannot agree.
Result join() {
  Engine& self = engine();
  segment::Segment& job = memory::space().segment;
  auto& head = job.header();
  wait_for_first_processes();
  NEAR_TRY(job.check_reach());
  NEAR_TRY(check_fronts(head.largest_front.load_relaxed(), job.reach()));
  NEAR_TRY(check_fronts(front_bytes(), head.reach.load_relaxed()));
  self.fences = head.fences.load_relaxed() != 0;
  if (!os::register_for_barrier() && !self.fences)
    return fail(Code::unsupported,
                "the processes of this job rely on membarrier(2), which the kernel refuses to this process");
  memory::open_arenas(self.control->arena);
  NEAR_TRY(reserve_rts());
  note_front(head);
  publish();
  return {};
}

/// Attaches the job's segment and claims this process's row in it, or creates a segment for a job of one process.
Result enter_segment(const Job& job) {
  segment::Segment& segment = memory::space().segment;
  if (job.segment_descriptor < 0)
    return segment.create(1, 1, static_cast<std::uint32_t>(std::max(1l, sysconf(_SC_NPROCESSORS_ONLN))));
  NEAR_TRY(segment.attach(job.segment_descriptor, true));
  if (job.row < job.size) segment.publish_reach();
  segment.close_descriptor(); // that of the huge pages; the caller owns the other one
  if (job.row >= segment.header().rows)
    return fail(Code::invalid, "row {} is outside the rank table of {} rows", job.row, segment.header().rows);
  const object::ProcessId process = memory::process_in(job.row);
  if (!object::fits_context(process))
    return fail(Code::limit,
                "process {} has no number for the contexts of its communicators: use fewer processes",
                process.rank);
  // A program that this rank starts inherits the rank's environment. It must not lay out the region again while
  // peers use it.
  std::uint32_t owner = 0;
  if (!segment.entry(job.row).claimed.cas_relaxed(owner, static_cast<std::uint32_t>(getpid())))
    return fail(
        Code::refused,
        "rank {} of this job is process {}, and a rank can be one MPI program only; one that it starts "
        "is a job of its own if the NEAR_BOOT_ variables are unset",
        process.rank, owner);
  NEAR_KILL_POINT("segment-mapped");
  os::admit_descendants_of(job.ancestor != 0 ? job.ancestor : segment.launcher());
  return {};
}

/// How long a wait polls by default where ranks share processors: a rank that moves a long message may keep its processor for longer than
/// a wait polls otherwise, and ranks that sleep meanwhile are late for the next one.
constexpr std::uint64_t spin_of_shared_ns = 1'000'000;

/// How long a wait polls before it sleeps, by the knobs. Nanoseconds.
std::uint64_t spin_time() {
  constexpr std::uint64_t for_ever = std::uint64_t{1} << 62;
  const auto& knobs = base::knobs();
  if (knobs.wait.text == "spin") return for_ever;
  if (knobs.wait.text == "sleep") return 0;
  return knobs.spin.automatic ? 100'000 : knobs.spin.number * 1000;
}

} // namespace

object::Immortal<Engine> engine_storage;

Result start(const Job& job) {
  Engine& self = engine();
  if (transport::running()) return {};
  if (transport::has_transports())
    return fail(Code::internal, "the node transport must be started before other transports");
  set_internal_handlers();
  memory::space().ranks = job.ranks;
  memory::space().machine = job.machine;
  memory::space().machine_of = job.machine_of;
  NEAR_TRY(enter_segment(job));
  NEAR_TRY(check_choice_of_copy()); // only now, because the segment decides which rank reports it
  self.row = memory::space().row = job.row;
  self.job_size = memory::space().job_size = job.size;
  transport::wait_settings.spin_ns = spin_time();
  transport::wait_settings.may_sleep_at_once =
      base::knobs().wait.text != "spin" && base::knobs().spin.automatic;
  self.credit_limit = static_cast<std::uint32_t>(base::knobs().credits.number);
  self.by_row.assign(memory::space().segment.header().rows, nullptr);
  NEAR_TRY(build_region(job.segment_descriptor));
  static const int registered = pthread_atfork(nullptr, nullptr, in_forked_child);
  (void)registered;
  memory::space().segment.entry(self.row).nic_distance.store_relaxed(job.nic_distance);
  NEAR_TRY(self.row < self.job_size ? meet() : join());
  self.oversubscribed = transport::shared_processors() != 0 || transport::shares_its_processors();
  if (self.oversubscribed) transport::fast_path.polls = 1;
  transport::WaitSettings& waits = transport::wait_settings;
  waits.doorbell = &self.control->doorbell;
  waits.sleeps = &self.control->counters.sleeps;
  waits.longest_sleep_ns = longest_sleep_ns();
  waits.fences = self.fences;
  waits.oversubscribed = self.oversubscribed;
  if (self.oversubscribed && waits.may_sleep_at_once && waits.spin_ns != 0) waits.spin_ns = spin_of_shared_ns;
  transport::add(node_transport);
  transport::set_running(true);
  map_peers_ahead();
  return {};
}

namespace {

bool is_drained() {
  Engine& self = engine();
  std::erase_if(self.fragment_peers, [](Peer* peer) {
    if (!has_left(*peer)) return false;
    peer->on_fragment_list = false;
    return true;
  });
  return self.pending_peers.empty() && self.fragment_peers.empty();
}

void leave() {
  if (base::knobs().stats.number != 0) report_traffic();
  return_kept_packets();
  NEAR_KILL_POINT("finalize-drained");
  // SYNC: rank-phase. A process that sees `finalized` sees the last messages that this process committed.
  memory::space()
      .segment.entry(engine().row)
      .phase.store_release(static_cast<std::uint32_t>(segment::Phase::finalized));
  NEAR_KILL_POINT("finalize-told");
}

void poll_always() { engine().always_polled = engine().deferred_work = true; }

} // namespace

transport::Peer* connect(object::ProcessId process);

const transport::Transport node_transport = {
    .name = "shm",
    .connect = connect,
    .set_handler = set_handler,
    .is_idle = is_idle,
    .advance = make_progress,
    .has_arrived = has_arrived,
    .waits_for_flow_control = waits_for_flow_control,
    .register_as_waiter = register_as_waiter,
    .descriptor = -1,
    .poll_always = poll_always,
    .receive_no_more = receive_no_more,
    .sends_settled = sends_settled,
    .is_drained = is_drained,
    .leave = leave,
};

} // namespace near::shm
