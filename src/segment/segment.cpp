#include "segment/segment.h"

#include "base/checked.h"
#include "base/knob.h"
#include "base/text.h"
#include "os/memory.h"
#include "os/process.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <ctime>
#include <new>
#include <unistd.h>

namespace near::segment {

using base::Code;
using base::fail;

namespace {

// The size of all regions of a job with few processes. Every tool leaves this much to a process: Valgrind
// about 60 GiB, the thread sanitizer less than 1 TiB.
constexpr std::uint64_t usual_regions = 16ull << 30;
// The smallest stride in larger jobs, if addresses permit.
constexpr std::uint64_t usual_stride = 32ull << 20;
// The part of a region that is mapped under tools, for which each page costs time even if it is not used.
constexpr std::uint64_t narrow_reach = 64ull << 20;
// The smallest stride that has space for a rank's queue, packets and a small arena.
constexpr std::uint64_t smallest_stride = 4ull << 20;
// 16 TiB of addresses cost nothing until they are written, and leave enough of a 47-bit address space. A
// process that cannot get a sixteenth of them needs its addresses for something else.
constexpr std::uint64_t most_far = 16ull << 40;
constexpr std::uint64_t least_far = 1ull << 40;

// The stride of regions with space for `needed` bytes of queue and packets, and for an arena of the same size.
std::uint64_t stride_for(std::uint64_t needed, std::uint64_t rows) {
  return std::min(std::bit_ceil(2 * needed), std::bit_floor(most_far / (rows + 1)));
}

// The stride to use if there are enough addresses.
std::uint64_t wanted_stride(std::uint64_t rows, std::uint64_t needed) {
  if (os::addresses_are_few()) return std::max(narrow_reach, stride_for(needed, rows));
  std::uint64_t usual = std::max<std::uint64_t>(std::bit_floor(usual_regions / (rows + 1)), usual_stride);
  return std::max(usual, stride_for(needed, rows));
}

std::uint64_t far_stride_of(std::uint64_t far_bytes, std::uint32_t rows) {
  return far_bytes < least_far ? 0 : std::bit_floor(far_bytes / rows);
}

/// Copies the facts from a header that no process is writing.
Segment::Facts facts_of(const Header& head) {
  Segment::Facts facts;
  facts.rows = head.rows;
  facts.job_size = head.job_size;
  facts.cores = head.cores;
  facts.launcher = static_cast<std::int32_t>(head.launcher);
  facts.started_ns = head.started_ns;
  facts.stride = head.stride;
  facts.far_stride = head.far_stride;
  facts.huge_page_bytes = head.huge_page_bytes;
  facts.huge_descriptor = head.huge_descriptor;
  facts.huge_file = head.huge_file;
  facts.name = base::printable({head.job, strnlen(head.job, sizeof head.job)});
  return facts;
}

/// Checks that the facts are consistent with a segment of `length` bytes: then every row of the rank table
/// and every region are within it.
Result check(const Segment::Facts& facts, std::uint64_t length) {
  if (facts.rows == 0 || facts.rows > most_rows || !base::is_power_of_two(facts.rows))
    return fail(Code::invalid, "the segment's rank table has {} rows", facts.rows);
  std::uint64_t regions = 0, far = 0;
  bool counted = base::checked_multiply(facts.stride, facts.rows + std::uint64_t{1}, regions) &&
                 base::checked_multiply(facts.far_stride, std::uint64_t{facts.rows}, far);
  if (!counted || facts.stride == 0 || regions > length || length - regions != far)
    return fail(Code::invalid, "the segment's header speaks of {} regions of {} bytes, its length is {}",
                facts.rows, facts.stride, length);
  if (!base::is_power_of_two(facts.stride) || facts.stride < table_bytes(facts.rows))
    return fail(Code::invalid, "the segment's header speaks of regions of {} bytes, which cannot be",
                facts.stride);
  if (facts.job_size == 0 || facts.job_size > facts.rows)
    return fail(Code::invalid, "the segment's header speaks of {} processes in {}", facts.job_size,
                base::counted(facts.rows, "row"));
  if (facts.launcher <= 0)
    return fail(Code::invalid, "the segment's header speaks of process {} as its launcher", facts.launcher);
  if (facts.far_stride != 0 && !base::is_power_of_two(facts.far_stride))
    return fail(Code::invalid, "the segment's header speaks of arenas of {} bytes", facts.far_stride);
  std::uint64_t huge = facts.huge_page_bytes, in = facts.far_stride != 0 ? facts.far_stride : facts.stride;
  if (huge != 0 && (!base::is_power_of_two(huge) || huge < os::page_size() || in % huge != 0))
    return fail(Code::invalid, "the segment's header speaks of huge pages of {} bytes in regions of {}", huge,
                in);
  return {};
}

} // namespace

std::uint64_t table_bytes(std::uint32_t rows) {
  return base::round_up(header_bytes + rows * sizeof(RankEntry), os::page_size());
}

const char* protocol_name(Protocol protocol) {
  switch (protocol) {
  case Protocol::direct: return "direct";
  case Protocol::pipelined: return "pipelined";
  case Protocol::cma: return "cma";
  case Protocol::count: break;
  }
  return "?";
}

Segment::~Segment() {
  unmap();
  close_descriptor();
}

void Segment::unmap() {
  if (base_ != nullptr) os::unmap(base_, bytes_);
  base_ = nullptr;
  bytes_ = 0;
}

void Segment::close_descriptor() {
  os::close_descriptor(descriptor_);
  os::close_descriptor(huge_descriptor_);
  descriptor_ = huge_descriptor_ = -1;
}

Result Segment::create(std::uint32_t rows, std::uint32_t job_size, std::uint32_t cores,
                       std::uint64_t needed) {
  rows = std::bit_ceil(std::max(rows, 1u));
  Sizes sizes;
  NEAR_TRY(create_file(rows, needed, sizes));
  NEAR_TRY(os::seal_length(descriptor_));
  NEAR_TRY(os::keep_from_children_and_dumps(base_, bytes_));
  NEAR_TRY(os::populate(base_, table_bytes(rows)));
  Header& head = write_header(rows, sizes);
  head.job_size = job_size;
  head.cores = cores;
  for (std::uint32_t row = 0; row < rows; ++row) new (&entry(row)) RankEntry{};
  facts_ = facts_of(head);
  // A process with few addresses needs them for something else.
  if (facts_.far_stride != 0) create_huge_part();
  header().magic = magic; // the header may have been mapped at another address
  return {};
}

// Makes the memfd and maps it. Takes as many addresses as it can get.
Result Segment::create_file(std::uint32_t rows, std::uint64_t needed, Sizes& sizes) {
  // There is one region more than rows: the launcher's, which must have space for the table.
  std::uint64_t stride = wanted_stride(rows, needed), far_bytes = most_far;
  std::uint64_t limit = os::address_space_limit();
  // The program needs addresses too, so take at most a quarter of the limit.
  if (limit != UINT64_MAX || os::addresses_are_few()) far_bytes = 0;
  while (limit != UINT64_MAX && stride * (rows + 1ull) > limit / 4 && stride > smallest_stride) stride /= 2;
  for (std::string refusal;;) {
    if (stride < smallest_stride || stride < table_bytes(rows))
      return fail(Code::limit, "no space for {} processes of {} MiB each{}{}", rows, smallest_stride >> 20,
                  refusal.empty() ? "" : ": ", refusal);
    sizes = {stride, far_stride_of(far_bytes, rows)};
    const std::uint64_t length = stride * (rows + 1ull) + sizes.far_stride * rows;
    int made = -1;
    Result file = os::make_shared_file("nearmpi", length, made);
    Result mapping;
    if (file.ok()) {
      mapping = os::map_shared(made, length, true, base_);
      if (mapping.ok()) {
        bytes_ = length;
        reach_ = everything;
        descriptor_ = made;
        return {};
      }
      os::close_descriptor(made);
    }
    if (!file.ok() && !file.is(Code::limit)) return file;
    if (!mapping.ok() && !mapping.is(Code::limit)) return mapping;
    refusal = base::failure_text(); // names the limit
    if (far_bytes >= least_far)
      far_bytes /= 2;
    else
      stride /= 2;
  }
}

// Writes all of the header except the size of the job and the magic number, which comes last.
Header& Segment::write_header(std::uint32_t rows, const Sizes& sizes) {
  auto* head = new (base_) Header{};
  head->version = layout_version;
  head->rows = rows;
  head->launcher = static_cast<std::uint32_t>(getpid());
  head->stride = sizes.stride;
  head->far_stride = sizes.far_stride;
  head->reach.store_relaxed(everything);
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  head->started_ns =
      static_cast<std::uint64_t>(now.tv_sec) * 1000000000u + static_cast<std::uint64_t>(now.tv_nsec);
  head->estimates = built_in_estimates();
  auto name = base::format("nearmpi-{}", getpid());
  name.copy(head->job, sizeof head->job - 1);
  return *head;
}

// Maps the first memfd again, with the second one after it. If anything fails, the job has no huge pages.
void Segment::create_huge_part() {
  std::uint64_t page = os::huge_page_size(), length = huge_stride() * facts_.rows;
  if (os::reserved_huge_pages() == 0 || huge_stride() % page != 0) return;
  int made = -1;
  if (!os::make_shared_file("nearmpi-huge", length, made, true).ok()) return;
  os::FileIdentity file;
  bool usable =
      os::seal_length(made).ok() && os::identify(made, file).ok() && map_both(descriptor_, made).ok();
  if (!usable) {
    os::close_descriptor(made);
    return;
  }
  huge_descriptor_ = made;
  facts_.huge_page_bytes = header().huge_page_bytes = page;
  facts_.huge_file = header().huge_file = file;
  facts_.huge_descriptor = header().huge_descriptor = made;
}

/// Maps both files side by side. If that fails, nothing has changed.
Result Segment::map_both(int first, int second) {
  std::uint64_t own = far_region(facts_.rows), length = huge_stride() * facts_.rows;
  std::byte* at = nullptr;
  NEAR_TRY(os::keep_addresses(own + length, at));
  Result mapped = os::map_shared_at(first, own, true, at);
  if (mapped.ok()) mapped = os::map_shared_at(second, length, true, at + own);
  if (mapped.ok()) mapped = os::keep_from_children_and_dumps(at, own + length);
  if (!mapped.ok()) {
    os::unmap(at, own + length);
    return mapped;
  }
  os::unmap(base_, bytes_);
  base_ = at;
  bytes_ = own + length;
  return {};
}

// The descriptor is inherited under the launcher's number, but a wrapper may have closed it or opened another
// file under that number.
Result Segment::attach_huge_part(int descriptor) {
  auto wanted = facts_.huge_file;
  int number = facts_.huge_descriptor, opened = number;
  os::FileIdentity found;
  bool inherited = os::identify(number, found).ok() && found == wanted;
  if (!inherited) {
    NEAR_TRY(os::open_descriptor_of(facts_.launcher, number, true, opened));
    if (!os::identify(opened, found).ok() || found != wanted) {
      os::close_descriptor(opened);
      return fail(Code::gone, "the job's memory of huge pages is out of reach: process {} is not its mpiexec",
                  facts_.launcher);
    }
  }
  Result mapped = map_both(descriptor, opened);
  if (mapped.ok())
    huge_descriptor_ = opened;
  else
    os::close_descriptor(opened);
  return mapped;
}

namespace {

void lower(Atomic<std::uint64_t>& word, std::uint64_t value) {
  std::uint64_t seen = word.load_relaxed();
  while (seen > value && !word.cas_relaxed(seen, value)) {}
}

/// Maps only the regions, all in one mapping, since an offset is the same in every process.
Result map_regions(int descriptor, const Segment::Facts& facts, bool writable, std::byte*& base,
                   std::uint64_t& reach) {
  std::uint64_t bytes = facts.stride * (facts.rows + 1ull);
  std::byte* at = nullptr;
  NEAR_TRY(os::map_shared(descriptor, bytes, writable, at));
  // Valgrind's leak check would read everything that is readable, and so allocate all pages.
  reach =
      os::addresses_are_few()
          ? std::min(wanted_stride(facts.rows, bytes_by_knobs({facts.job_size, facts.cores})), facts.stride)
          : facts.stride;
  if (reach < facts.stride)
    for (std::uint64_t region = 0; region <= facts.rows; ++region)
      if (Result closed = os::close_pages(at + region * facts.stride + reach, facts.stride - reach);
          !closed.ok()) {
        os::unmap(at, bytes);
        return closed;
      }
  base = at;
  return {};
}

} // namespace

Result Segment::attach(int descriptor, bool writable) {
  std::uint64_t length = 0;
  if (!os::is_sealed(descriptor, length))
    return fail(Code::invalid, "descriptor {} is not a NearMPI segment (no sealed memory file)", descriptor);
  if (length < header_bytes)
    return fail(Code::invalid, "a segment of {} bytes has no space for a header", length);
  // A copy, so that what is checked here cannot change any more.
  alignas(Header) std::byte copy[sizeof(Header)];
  if (pread(descriptor, copy, sizeof copy, 0) != static_cast<ssize_t>(sizeof copy))
    return fail(Code::invalid, "descriptor {} is not a NearMPI segment (it cannot be read)", descriptor);
  const auto& head = *reinterpret_cast<const Header*>(copy);
  if (head.magic != magic)
    return fail(Code::invalid, "descriptor {} is not a NearMPI segment (wrong first word)", descriptor);
  if (head.version != layout_version)
    return fail(
        Code::unsupported,
        "the job's segment has layout version {}, this library knows version {}: launcher and library must "
        "be of one installation",
        head.version, layout_version);
  Facts facts = facts_of(head);
  NEAR_TRY(check(facts, length));
  bool few = os::addresses_are_few();
  std::byte* at = nullptr;
  Result mapped = few ? Result() : os::map_shared(descriptor, length, writable, at);
  if (!few && !mapped.ok() && !mapped.is(Code::limit)) return mapped;
  std::uint64_t reach = everything;
  if (few || !mapped.ok()) {
    length = facts.stride * (facts.rows + 1ull);
    NEAR_TRY(map_regions(descriptor, facts, writable, at, reach));
  }
  facts_ = std::move(facts);
  base_ = at;
  bytes_ = length;
  reach_ = reach;
  if (!writable) return {};
  if (reach_ == everything && facts_.huge_page_bytes != 0) {
    Result attached = attach_huge_part(descriptor);
    if (!attached.is(Code::limit)) return attached;
    reach_ = facts_.stride;
  }
  return os::keep_from_children_and_dumps(base_, bytes_);
}

bool Segment::has_region(std::uint32_t row) const {
  Phase phase = phase_of(row);
  if (phase == Phase::dead) phase = static_cast<Phase>(entry(row).died_in.load_relaxed());
  return phase == Phase::ready || phase == Phase::finalized;
}

void Segment::publish_reach() { lower(header().reach, reach_); }

Result Segment::check_reach() const {
  const std::uint64_t agreed = header().reach.load_relaxed();
  if (reach_ >= agreed) return {};
  return fail(
      Code::limit,
      "the job's processes use more of its memory than this process can map: raise the limit on address "
      "space (ulimit -v)");
}

} // namespace near::segment
