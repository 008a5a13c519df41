// How long copies of blocks take, by length, distance and location of their lines.
#include "calibrate/blocks.h"

#include "base/atomic.h"
#include "base/checked.h"
#include "copy/strided.h"
#include "datatype/datatype.h"
#include "os/clock.h"
#include "os/memory.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <new>
#include <numeric>
#include <random>
#include <vector>

namespace near::calibrate {

using base::Result;
using profile::BlockCosts;
using profile::Direction;
using profile::Level;
using profile::Spacing;

namespace {

constexpr std::size_t line = base::cache_line;
constexpr std::size_t arena_bytes = 32u << 20;
/// This many bytes of cold lines are enough, since each line costs the same.
constexpr std::size_t cold_bytes = 128u << 10;
/// Lines of this many bytes do not stay in the second-level cache, even if half of them would fit.
constexpr std::size_t enough_beyond_second = 4u << 20;
/// The addresses of this many pages fit in a cache (TLB). Data that fit into the second-level cache seldom occupy more.
constexpr std::size_t few_pages = 1024;
/// The assumed sizes in bytes of caches that the kernel does not know.
constexpr std::array<std::uint32_t, profile::levels - 1> usual_caches = {32u << 10, 1u << 20, 32u << 20};
/// In nanoseconds. A sample takes at least this long, so that reading the clock does not matter.
constexpr std::uint64_t least_sample = 5'000;
/// In nanoseconds. No copy takes less.
constexpr double smallest = 0.1;
constexpr int samples = 5, cold_samples = 6;
/// In nanoseconds. Long samples are repeated less often, since the clock's errors matter less: until this much time has passed,
/// but at least `few_samples` times.
constexpr std::uint64_t time_for_samples = 1'000'000;
constexpr int few_samples = 2;

void flush_line([[maybe_unused]] const char* at) {
#if defined(__x86_64__)
  asm volatile("clflush %0" ::"m"(*at) : "memory");
#elif defined(__aarch64__)
  asm volatile("dc civac, %0" ::"r"(at) : "memory");
#endif
}

void wait_for_flushes() {
#if defined(__x86_64__)
  asm volatile("mfence" ::: "memory");
#elif defined(__aarch64__)
  asm volatile("dsb ish" ::: "memory");
#endif
}

std::uint64_t time_of(const std::function<void()>& copy, std::uint64_t times) {
  const std::uint64_t began = os::monotonic_ns();
  for (std::uint64_t i = 0; i < times; ++i) copy();
  return os::monotonic_ns() - began;
}

/// Blocks in the arena whose lines have `touched` bytes.
struct Scattered {
  copy::Grid grid;
  std::vector<std::int32_t> offsets; ///< for listed blocks
};

Scattered scattered(Spacing spacing, std::size_t bytes, std::size_t step, std::size_t touched,
                    std::size_t most_pages = SIZE_MAX) {
  const std::size_t lines = base::round_up(bytes, line);
  std::size_t stride = bytes * step;
  // An odd number of lines, so that short blocks do not share a few sets of a cache.
  if (stride >= 8 * line && bytes <= 256 && stride / line % 2 == 0) stride += line;
  const std::size_t pages = stride < 4096 ? most_pages : most_pages / ((lines + 4095) / 4096);
  const std::size_t count =
      std::max<std::size_t>(1, std::min(pages, touched / (stride >= line ? lines : stride)));
  const std::size_t in_a_row = std::min(count, std::max<std::size_t>(1, arena_bytes / stride - 1));
  Scattered made;
  made.grid = {.bytes = bytes,
               .count = in_a_row,
               .stride = static_cast<std::ptrdiff_t>(stride),
               .rows = (count + in_a_row - 1) / in_a_row,
               .row_stride = static_cast<std::ptrdiff_t>(lines)};
  if (spacing == Spacing::equal) return made;
  // A list at irregular distances with the mean `step`.
  std::mt19937 random(1);
  for (std::size_t row = 0; row < made.grid.rows; ++row) {
    std::size_t at = row * lines;
    for (std::size_t i = 0; i < in_a_row; ++i) {
      made.offsets.push_back(static_cast<std::int32_t>(at));
      const std::size_t next = bytes * (1 + random() % (2 * step - 1));
      at = at + next + bytes > arena_bytes ? row * lines : at + next;
    }
  }
  return made;
}

class BlockMeasurement {
public:
  explicit BlockMeasurement(const std::array<std::uint32_t, profile::levels - 1>& caches) : caches_(caches) {}
  bool reserve() {
    arena_.reset(new (std::nothrow) std::byte[arena_bytes + 4096]);
    packed_.reset(new (std::nothrow) std::byte[arena_bytes]);
    if (arena_ == nullptr || packed_ == nullptr) return false;
    std::fill_n(arena_.get(), arena_bytes + 4096, std::byte{1});
    std::fill_n(packed_.get(), arena_bytes, std::byte{1});
    return true;
  }
  /// Picoseconds per block.
  std::uint32_t cost(Direction direction, Spacing spacing, std::size_t bytes, std::size_t step, Level level) {
    const bool cold = level == Level::memory;
    const std::size_t touched = cold                 ? cold_bytes
                                : level == Level::l1 ? caches_[0] / 4
                                : level == Level::l2 ? caches_[1] / 4
                                                     : in_last_cache();
    const std::size_t most_pages = level == Level::l2 ? few_pages : SIZE_MAX;
    return cost_of(direction, scattered(spacing, bytes, step, touched, most_pages), cold);
  }
  /// By how many picoseconds a few cold blocks take longer than the same number out of many. Not 0.
  std::int32_t first(Direction direction, const BlockCosts& costs) {
    constexpr std::size_t bytes = profile::block_lengths[profile::few_length],
                          step = profile::block_steps[profile::few_step];
    const Scattered blocks = scattered(Spacing::equal, bytes, step, profile::few_blocks * line);
    const auto one = static_cast<double>(cost_of(direction, blocks, true)),
               of_many = static_cast<double>(costs.block[static_cast<std::size_t>(direction)][0]
                                                        [profile::few_length][profile::few_step][3]);
    const double more = (one - of_many) * static_cast<double>(profile::few_blocks) - costs.call;
    return std::abs(more) < 1 ? 1 : static_cast<std::int32_t>(std::clamp(more, -2e9, 2e9));
  }

private:
  /// Lines of this many bytes are in the last-level cache but not in the second.
  std::size_t in_last_cache() const {
    const std::size_t second = caches_[1], last = caches_[2];
    return std::min({4 * second, std::max(2 * second, enough_beyond_second), last / 4});
  }
  /// Picoseconds per block.
  std::uint32_t cost_of(Direction direction, const Scattered& blocks, bool cold) {
    const auto copy = copying(direction, blocks);
    const double took = cold ? time_cold(copy, [&] { flush(blocks); }) : time_hot(copy);
    const auto count = static_cast<double>(blocks.grid.count * blocks.grid.rows);
    return static_cast<std::uint32_t>(std::clamp(took * 1000 / count, 1.0, 4e9));
  }

  std::function<void()> copying(Direction direction, const Scattered& blocks) {
    const bool gathers = direction == Direction::gather;
    if (blocks.offsets.empty()) {
      const copy::CopyGrid grid = gathers ? copy::gathering(blocks.grid) : copy::scattering(blocks.grid);
      return [this, grid, &blocks] { grid(packed_.get(), arena_.get(), blocks.grid); };
    }
    return [this, gathers, &blocks] {
      const copy::Offsets list{blocks.offsets.data(), blocks.offsets.size()};
      if (gathers)
        copy::gather(packed_.get(), arena_.get(), blocks.grid.bytes, list);
      else
        copy::scatter(arena_.get(), packed_.get(), blocks.grid.bytes, list);
    };
  }
  void flush(const Scattered& blocks) const {
    const copy::Grid& grid = blocks.grid;
    for (std::int32_t at : blocks.offsets) flush_lines(arena_.get() + at, grid.bytes);
    if (!blocks.offsets.empty()) return;
    for (std::size_t row = 0; row < grid.rows; ++row)
      for (std::size_t i = 0; i < grid.count; ++i)
        flush_lines(arena_.get() + static_cast<std::ptrdiff_t>(row) * grid.row_stride +
                        static_cast<std::ptrdiff_t>(i) * grid.stride,
                    grid.bytes);
  }
  std::array<std::uint32_t, profile::levels - 1> caches_;
  std::unique_ptr<std::byte[]> arena_, packed_;
};

/// The cost of a call with next to nothing to copy.
Result measure_call(std::uint32_t& cost) {
  datatype::Datatype* type = nullptr;
  NEAR_TRY(datatype::make_predefined_types());
  NEAR_TRY(datatype::make_vector(2, 1, 2, false, *datatype::find_datatype(MPI_DOUBLE), type));
  (void)datatype::commit(*type);
  double from[4] = {}, packed[2] = {};
  const datatype::Buffer buffer{from, 1, type};
  const double took = time_hot([&] { datatype::pack(buffer, 0, packed, buffer.bytes()); });
  cost = static_cast<std::uint32_t>(std::clamp(took * 1000, 1.0, 4e9));
  datatype::release(type);
  return {};
}

} // namespace

Pinned::Pinned() {
  os::CpuSet allowed, one;
  if (!os::affinity_of(0, allowed).ok() || allowed.empty()) return;
  one.add(allowed.members().front());
  if (os::bind_this_thread(one).ok()) before_ = allowed;
}

Pinned::~Pinned() {
  if (!before_.empty()) (void)os::bind_this_thread(before_);
}

void flush_lines(const std::byte* from, std::size_t bytes) {
  const auto first = reinterpret_cast<std::uintptr_t>(from) / line * line,
             end = reinterpret_cast<std::uintptr_t>(from) + bytes;
  for (auto at = first; at < end; at += line) flush_line(reinterpret_cast<const char*>(at));
}

double time_hot(const std::function<void()>& copy) {
  copy();
  std::uint64_t times = 1, took = time_of(copy, times);
  while (took < least_sample) took = time_of(copy, times *= 2);
  auto least = static_cast<double>(took);
  const int more = std::clamp(static_cast<int>(time_for_samples / took), few_samples, samples);
  for (int i = 0; i < more; ++i) least = std::min(least, static_cast<double>(time_of(copy, times)));
  return std::max(least / static_cast<double>(times), smallest);
}

double time_cold(const std::function<void()>& copy, const std::function<void()>& flush) {
  static const std::uint64_t clock = [] { // the time for reading it
    std::uint64_t least = UINT64_MAX;
    for (int i = 0; i < 100; ++i) least = std::min(least, time_of([] {}, 1));
    return least;
  }();
  copy(); // the packed bytes stay hot
  std::array<std::uint64_t, cold_samples> took;
  for (std::uint64_t& each : took) {
    flush();
    wait_for_flushes();
    each = time_of(copy, 1);
  }
  std::sort(took.begin(), took.end());
  // The mean, since the clock may tick in steps of 10 ns.
  constexpr std::ptrdiff_t half = cold_samples / 2;
  const auto mean =
      static_cast<double>(std::accumulate(took.begin(), took.begin() + half, std::uint64_t{0})) / half;
  return std::max(mean - static_cast<double>(clock), smallest);
}

Result measure_blocks(std::uint64_t budget_ns, BlockCosts& costs) {
  const std::uint64_t end = os::monotonic_ns() + budget_ns;
  const Pinned here;
  for (std::size_t level = 0; level < costs.caches.size(); ++level) {
    const std::uint64_t known =
        level + 1 < costs.caches.size() ? os::data_cache(static_cast<int>(level) + 1) : os::largest_cache();
    costs.caches[level] =
        known != 0 && known <= UINT32_MAX ? static_cast<std::uint32_t>(known) : usual_caches[level];
  }
  BlockMeasurement measurement(costs.caches);
  if (!measurement.reserve())
    return base::fail(base::Code::no_memory, "there is no memory for the blocks to copy ({} MiB)",
                      2 * arena_bytes >> 20);
  NEAR_TRY(measure_call(costs.call));
  for (auto direction : {Direction::gather, Direction::scatter})
    for (auto spacing : {Spacing::equal, Spacing::listed})
      for (std::size_t length = 0; length < profile::block_lengths.size(); ++length)
        for (std::size_t step = 0; step < profile::block_steps.size(); ++step) {
          if (os::monotonic_ns() > end) return {};
          auto& row = costs.block[static_cast<std::size_t>(direction)][static_cast<std::size_t>(spacing)]
                                 [length][step];
          for (auto level : {Level::l1, Level::l2, Level::l3, Level::memory})
            row[static_cast<std::size_t>(level)] = measurement.cost(
                direction, spacing, profile::block_lengths[length], profile::block_steps[step], level);
        }
  for (auto direction : {Direction::gather, Direction::scatter})
    costs.first[static_cast<std::size_t>(direction)] = measurement.first(direction, costs);
  return {};
}

} // namespace near::calibrate
