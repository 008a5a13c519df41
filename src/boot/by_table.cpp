#include "boot/by_table.h"

#include "base/text.h"
#include "boot/machine_list.h"
#include "boot/pmi.h"
#include "boot/pmix.h"
#include "os/memory.h"
#include "os/random_bytes.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <unistd.h>

namespace near::boot {

namespace {

/// The only connection of this process, once established.
Table* connection = nullptr;

Table& table() { return *connection; }

/// Never destroyed: exit handlers may abort the job.
Pmi& pmi() {
  static Pmi& made = *new Pmi;
  return made;
}
Pmix& pmix() {
  static Pmix& made = *new Pmix;
  return made;
}

/// PMI-1 first: launchers that speak it give each program its connection directly, and may run inside a job of a PMIx launcher.
Table* find_table(char** environment) {
  if (Pmi::is_offered(environment)) return &pmi();
  return Pmix::is_offered(environment) ? &pmix() : nullptr;
}

/// The segment that this process has made for its machine. It keeps the descriptors by which tools find the job.
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

/// Reads numbers separated by colons; accepts nothing else.
bool read_numbers(std::string_view text, std::span<std::uint64_t> numbers) {
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), numbers[i]);
    if (error != std::errc{}) return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (i + 1 == numbers.size()) break;
    if (!text.starts_with(':')) return false;
    text.remove_prefix(1);
  }
  return text.empty();
}

/// Writes what mpiexec would write before it starts the processes on this machine.
void describe_processes(segment::Segment& segment, const Start& start) {
  for (std::uint32_t row = 0; row < start.here; ++row) {
    segment::RankEntry& entry = segment.entry(row);
    entry.rank = start.ranks.empty() ? row : start.ranks[row];
    entry.first_cpu = -1;
    entry.location = {};
    entry.nearest = {};
    // SYNC: rank-phase. Release: as from mpiexec.
    entry.phase.store_release(static_cast<std::uint32_t>(segment::Phase::launched));
  }
}

Result make_segment(Start& start) {
  segment::Segment& segment = made_segment();
  // Not only those that this process may use: other launchers may have bound each rank to its own.
  const auto processors = static_cast<std::uint32_t>(std::max(1l, sysconf(_SC_NPROCESSORS_ONLN)));
  NEAR_TRY(
      segment.create(start.here, start.here, processors, segment::bytes_by_knobs({start.here, processors})));
  describe_processes(segment, start);
  start.segment_descriptor = segment.descriptor();
  NEAR_TRY(os::identify(start.segment_descriptor, start.segment));
  start.launcher = getpid();
  segment.unmap(); // it is mapped again, as in every process
  return {};
}

/// Opens the segment that the first process on this machine has published.
Result open_segment(Start& start) {
  const std::uint32_t first = start.ranks.empty() ? 0 : start.ranks.front();
  std::string text;
  NEAR_TRY(table().get(first, segment_key(first), text));
  std::array<std::uint64_t, 4> numbers{}; // process, descriptor, device, inode
  if (!read_numbers(text, numbers))
    return base::fail(base::Code::invalid, "rank {} describes its segment as \"{}\"", first,
                      base::printable(text));
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
  return base::fail(base::Code::gone, "the segment of rank {}, on this machine, is out of reach: {}", first,
                    std::string(base::failure_text()));
}

/// Gets the machines of all ranks from mpiexec.
Result read_machines(Start& start) {
  MachineListReader reader;
  std::string text;
  std::size_t row = 0;
  do NEAR_TRY(table().get(start.rank, machine_list_key(row++), text));
  while (reader.add(text));
  return reader.finish(start.size, start.machine_of);
}

} // namespace

bool is_table_offered(char** environment) {
  return Pmi::is_offered(environment) || Pmix::is_offered(environment);
}

Result start_by_table(char** environment, Start& start) {
  Table& offered = *find_table(environment);
  NEAR_TRY(offered.connect(environment));
  start = {};
  // PMIx says so only now.
  if (offered.size() == 1) return offered.finalize();
  connection = &offered;
  start.singleton = false;
  start.by_other = true;
  start.rank = table().rank();
  start.size = table().size();
  start.application = table().application();
  std::vector<std::uint32_t> machines;
  NEAR_TRY(table().find_machines(machines));
  start.machine = machines[start.rank];
  for (std::uint32_t rank = 0; rank < start.size; ++rank)
    if (machines[rank] == start.machine) start.ranks.push_back(rank);
  start.here = static_cast<std::uint32_t>(start.ranks.size());
  start.row = static_cast<std::uint32_t>(
      std::lower_bound(start.ranks.begin(), start.ranks.end(), start.rank) - start.ranks.begin());
  if (start.here == start.size)
    start.ranks.clear(); // they equal the rows
  else
    start.machine_of = machines;
  std::sort(machines.begin(), machines.end());
  start.machines =
      static_cast<std::uint32_t>(std::unique(machines.begin(), machines.end()) - machines.begin());
  return start.row == 0 ? make_segment(start) : Result();
}

Result connect_to_table(const Start& start) {
  os::FileIdentity file;
  if (!os::identify(start.table_descriptor, file).ok())
    return base::fail(
        base::Code::gone,
        "the connection to mpiexec (descriptor {}) is not open: a program between mpiexec and this one "
        "closes the descriptors of programs that it starts",
        start.table_descriptor);
  NEAR_TRY(pmi().connect(start.table_descriptor, start.rank, start.size));
  connection = &pmi();
  os::close_on_exec(start.table_descriptor);
  return {};
}

Result meet_by_table(Start& start, std::span<const std::byte> address) {
  if (made_segment(start))
    NEAR_TRY(table().put(segment_key(start.rank),
                         base::format("{}:{}:{}:{}", start.launcher, start.segment_descriptor,
                                      start.segment.device, start.segment.inode)));
  if (!address.empty()) NEAR_TRY(table().put(address_key(start.rank), to_hex(address)));
  if (start.rank == 0) {
    std::uint64_t secret = 0;
    while (secret == 0) NEAR_TRY(os::fill_random(&secret, sizeof secret));
    NEAR_TRY(table().put(secret_key, std::to_string(secret)));
  }
  NEAR_TRY(table().fence());
  std::string secret;
  NEAR_TRY(table().get(0, secret_key, secret));
  if (!read_numbers(secret, std::span(&start.secret, 1)) || start.secret == 0)
    return base::fail(base::Code::invalid, "rank 0 has published \"{}\", which is no secret",
                      base::printable(secret));
  if (start.machines > 1 && start.machine_of.empty()) NEAR_TRY(read_machines(start));
  return start.segment_descriptor >= 0 ? Result() : open_segment(start);
}

Result address_in_table(std::uint32_t rank, std::vector<std::byte>& address) {
  std::string text;
  NEAR_TRY(table().get(rank, address_key(rank), text));
  if (from_hex(text, address)) return {};
  return base::fail(base::Code::invalid, "rank {} has published \"{}\", which is not an address", rank,
                    base::printable(text));
}

namespace {

/// Whether the final fence has begun, and whether it is over.
bool begun = false, over = false;

} // namespace

bool all_leave_by_table() {
  if (!begun) over = !table().begin_fence().ok();
  begun = true;
  if (!over && !table().look_at_fence(over).ok()) over = true;
  return over;
}

void when_launcher_is_lost(void (*callback)()) { table().when_lost(callback); }

void leave_table() {
  // A launcher that waits for a process that has died answers nothing else, and may take a goodbye for an error.
  if (!begun || over) (void)table().finalize();
}

void abort_by_table(int status) {
  // Hydra kills at once, and any output of ours that it has not read is lost.
  constexpr std::uint64_t until_read_ns = 100'000'000;
  (void)os::wait_until_readable({}, until_read_ns);
  table().abort(status);
}

} // namespace near::boot
