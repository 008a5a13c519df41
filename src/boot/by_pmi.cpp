#include "boot/by_pmi.h"

#include "base/text.h"
#include "boot/pmi.h"
#include "os/affinity.h"
#include "os/memory.h"
#include "os/random.h"

#include <algorithm>
#include <charconv>
#include <unistd.h>

namespace near::boot {

namespace {

/// The only connection of this process. Never destroyed: exit handlers may abort the job.
Pmi& launcher() {
  static Pmi& made = *new Pmi;
  return made;
}

/// The segment that this process has made for its machine. It keeps the descriptors, by which tools find the job.
segment::Segment& made_segment() {
  static segment::Segment& made = *new segment::Segment;
  return made;
}

std::string segment_key(std::uint32_t first_rank) { return base::format("near-segment-{}", first_rank); }
std::string address_key(std::uint32_t rank) { return base::format("near-address-{}", rank); }
constexpr const char* secret_key = "near-secret";

std::string to_hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) text += base::format("{:02x}", static_cast<unsigned>(byte));
  return text;
}

bool from_hex(std::string_view text, std::vector<std::byte>& bytes) {
  bytes.clear();
  if (text.size() % 2 != 0) return false;
  for (std::size_t at = 0; at < text.size(); at += 2) {
    unsigned value = 0;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + at + 2, value, 16);
    if (error != std::errc{} || end != text.data() + at + 2) return false;
    bytes.push_back(static_cast<std::byte>(value));
  }
  return true;
}

/// What mpiexec would write before it starts the processes of this machine.
void describe_processes(segment::Segment& segment, const Start& start) {
  for (std::uint32_t row = 0; row < start.here; ++row) {
    segment::RankEntry& entry = segment.entry(row);
    entry.application = start.application;
    entry.first_cpu = -1;
    entry.location = {};
    entry.nearest = {};
    // SYNC: rank-phase. Release: as from mpiexec.
    entry.phase.store_release(static_cast<std::uint32_t>(segment::Phase::launched));
  }
}

Result make_segment(Start& start) {
  segment::Segment& segment = made_segment();
  os::CpuSet allowed;
  NEAR_TRY(os::affinity_of(0, allowed));
  const segment::JobShape shape{start.here, allowed.count()};
  NEAR_TRY(segment.create(start.here, start.here, allowed.count(), segment::bytes_by_knobs(shape)));
  segment.header().expected_reserve = segment::reserved_by_knobs(shape);
  describe_processes(segment, start);
  start.segment_descriptor = segment.descriptor();
  NEAR_TRY(os::identify(start.segment_descriptor, start.segment));
  start.launcher = getpid();
  segment.unmap(); // it is mapped again as in every process
  return {};
}

/// Opens the segment that the first process of this machine has made.
Result open_segment(Start& start) {
  std::string text;
  NEAR_TRY(launcher().get(segment_key(start.ranks.front()), text));
  std::uint64_t numbers[4] = {}; // process, descriptor, device, inode
  const char* at = text.data();
  for (std::uint64_t& number : numbers) {
    const auto [end, error] = std::from_chars(at, text.data() + text.size(), number);
    if (error != std::errc{})
      return base::fail(base::Code::invalid, "rank {} describes its segment as \"{}\"", start.ranks.front(),
                        base::printable(text));
    at = end + 1;
  }
  start.launcher = static_cast<std::int32_t>(numbers[0]);
  start.segment = {numbers[2], numbers[3]};
  int opened = -1;
  Result result = os::open_descriptor_of(start.launcher, static_cast<int>(numbers[1]), true, opened);
  os::FileIdentity found;
  if (result.ok() && os::identify(opened, found).ok() && found == start.segment) {
    start.segment_descriptor = opened;
    return {};
  }
  if (result.ok()) {
    os::close_descriptor(opened);
    base::set_failure_text(base::format(
        "process {} here is another one: are the ranks in separate containers?", start.launcher));
  }
  return base::fail(base::Code::gone, "the segment of rank {}, on this machine, is out of reach: {}",
                    start.ranks.front(), std::string(base::failure_text()));
}

} // namespace

Result start_by_pmi(char** environment, Start& start) {
  Pmi& pmi = launcher();
  NEAR_TRY(pmi.connect(environment));
  start = {};
  start.singleton = false;
  start.by_pmi = true;
  start.rank = pmi.rank();
  start.size = pmi.size();
  start.application = pmi.application();
  std::string mapping;
  if (!pmi.get("PMI_process_mapping", mapping).ok())
    return base::fail(base::Code::unsupported,
                      "the launcher does not say which processes share a machine (PMI_process_mapping): {}",
                      std::string(base::failure_text()));
  std::vector<std::uint32_t> machines;
  NEAR_TRY(machines_of(mapping, start.size, machines));
  start.machine = machines[start.rank];
  start.machines = *std::max_element(machines.begin(), machines.end()) + 1;
  for (std::uint32_t rank = 0; rank < start.size; ++rank)
    if (machines[rank] == start.machine) start.ranks.push_back(rank);
  start.here = static_cast<std::uint32_t>(start.ranks.size());
  start.row = static_cast<std::uint32_t>(
      std::lower_bound(start.ranks.begin(), start.ranks.end(), start.rank) - start.ranks.begin());
  return start.row == 0 ? make_segment(start) : Result();
}

Result meet_by_pmi(Start& start, std::span<const std::byte> address) {
  Pmi& pmi = launcher();
  if (start.row == 0)
    NEAR_TRY(
        pmi.put(segment_key(start.rank), base::format("{}:{}:{}:{}", start.launcher, start.segment_descriptor,
                                                      start.segment.device, start.segment.inode)));
  if (!address.empty()) NEAR_TRY(pmi.put(address_key(start.rank), to_hex(address)));
  if (start.rank == 0) {
    std::uint64_t secret = 0;
    NEAR_TRY(os::fill_random(&secret, sizeof secret));
    NEAR_TRY(pmi.put(secret_key, std::to_string(secret)));
  }
  NEAR_TRY(pmi.fence());
  std::string secret;
  NEAR_TRY(pmi.get(secret_key, secret));
  std::from_chars(secret.data(), secret.data() + secret.size(), start.secret);
  return start.row == 0 ? Result() : open_segment(start);
}

Result address_by_pmi(std::uint32_t rank, std::vector<std::byte>& address) {
  std::string text;
  NEAR_TRY(launcher().get(address_key(rank), text));
  if (from_hex(text, address)) return {};
  return base::fail(base::Code::invalid, "rank {} has published \"{}\", which is not an address", rank,
                    base::printable(text));
}

bool all_leave_by_pmi() {
  static bool begun = false, over = false;
  if (!begun) over = !launcher().begin_fence().ok();
  begun = true;
  if (!over && !launcher().look_at_fence(over).ok()) over = true;
  return over;
}

void leave_pmi() { (void)launcher().finalize(); }

void abort_by_pmi(int status) {
  // Hydra kills at once, and what it has not read of our output is lost.
  constexpr std::uint64_t until_read_ns = 100'000'000;
  (void)os::wait_until_readable({}, until_read_ns);
  launcher().abort(status);
}

} // namespace near::boot
