// The model of packing: interpolates the measurements for a few lengths and distances of blocks.
//
// Between the measured points costs are straight lines on logarithmic axes. Beyond the last point the cost remains constant;
// for longer blocks, the cost per byte does.
#include "profile/blocks.h"

#include "base/atomic.h"

#include <algorithm>
#include <cmath>

namespace near::profile {

namespace {

constexpr double line = base::cache_line;

/// The position of a value on an axis: between which two points, and how far from the first one (0 to 1).
struct Position {
  std::size_t low = 0, high = 0;
  double part = 0;
};
template <class Axis>
Position position_of(const Axis& axis, double value) {
  if (value <= axis.front()) return {};
  if (value >= axis.back()) return {axis.size() - 1, axis.size() - 1, 0};
  const auto next = std::upper_bound(axis.begin(), axis.end(), value);
  const auto high = static_cast<std::size_t>(next - axis.begin());
  return {high - 1, high, std::log(value / axis[high - 1]) / std::log(1.0 * axis[high] / axis[high - 1])};
}

double between(double low, double high, double part) { return low * std::pow(high / low, part); }

/// The share of `bytes` bytes, used again and again, that a cache of `cache` bytes no longer holds: none if they fit, all if
/// there are four times as many.
double missing(double bytes, double cache) { return std::clamp(std::log2(bytes / cache) / 2, 0.0, 1.0); }

/// The levels between which the lines of this many bytes lie.
Position level_of(const BlockCosts& costs, double touched, unsigned sharers) {
  // Other processors use the last-level cache too. If it is the second level, there are only two levels.
  const double sizes[] = {1.0 * costs.caches[0], 1.0 * costs.caches[1],
                          std::max(0.25 * costs.caches[2] / sharers, 1.0 * costs.caches[1])};
  for (std::size_t level = levels - 1; level > 0; --level)
    if (const double part = missing(touched, sizes[level - 1]); part > 0) return {level - 1, level, part};
  return {};
}

/// Nanoseconds for one block of this length at this distance, if all lines are at this level.
double block_cost(const BlockCosts::Table& table, const Blocks& blocks, std::size_t level) {
  const auto bytes = static_cast<double>(blocks.bytes);
  const Position length = position_of(block_lengths, bytes),
                 step = position_of(block_steps, blocks.step / bytes);
  auto at = [&](std::size_t row) {
    return between(table[row][step.low][level], table[row][step.high][level], step.part);
  };
  const double longer = std::max(1.0, bytes / block_lengths.back());
  return longer * between(at(length.low), at(length.high), length.part) / 1000;
}

/// The least time in nanoseconds for stores into lines in memory. A processor holds some stores without waiting for their lines;
/// from the next one on it waits about as long as for `few_blocks` blocks. 0 if stores wait as loads do.
double least_of_stores(const BlockCosts& costs, double lines) {
  constexpr double kept = 10, all = 14; // measured on an AMD EPYC
  const auto way = static_cast<std::size_t>(Direction::scatter);
  if (costs.first[way] >= 0) return 0;
  const auto memory = static_cast<std::size_t>(Level::memory);
  const double few = 1.0 * few_blocks * costs.block[way][0][few_length][few_step][memory] + costs.first[way];
  return std::max(0.0, few) / 1000 * std::clamp((lines - kept) / (all - kept), 0.0, 1.0);
}

} // namespace

const char* direction_name(Direction direction) {
  return direction == Direction::gather ? "gather" : "scatter";
}
const char* spacing_name(Spacing spacing) { return spacing == Spacing::equal ? "equal" : "listed"; }

bool BlockCosts::complete() const {
  auto has_zero = [](const auto& row) { return std::find(row.begin(), row.end(), 0) != row.end(); };
  bool found = call != 0 && !has_zero(first) && !has_zero(caches);
  for (const auto& direction : block)
    for (const auto& table : direction)
      for (const auto& length : table)
        for (const Row& row : length) found = found && !has_zero(row);
  return found;
}

double touched_bytes(const Blocks& blocks) {
  const auto count = static_cast<double>(blocks.count), bytes = static_cast<double>(blocks.bytes);
  const double lines = std::ceil(bytes / line) * line;
  if (blocks.count <= 1 || blocks.step >= std::max(bytes, line)) return count * lines;
  return std::max(lines, (count - 1) * blocks.step + bytes); // several in each line, or in every other
}

CopyTerms predict_copy(const BlockCosts& costs, Direction direction, std::span<const Blocks> all,
                       Before before, unsigned sharers) {
  const auto way = static_cast<std::size_t>(direction);
  CopyTerms terms;
  terms.start = costs.call / 1000.0;
  const bool cold = before == Before::cold;
  double touched = 0;
  for (const Blocks& blocks : all) touched += touched_bytes(blocks);
  const Position level = cold ? Position{levels - 1, levels - 1, 0} : level_of(costs, touched, sharers);
  for (const Blocks& blocks : all) {
    if (blocks.count == 0 || blocks.bytes == 0) continue;
    const auto& table = costs.block[way][static_cast<std::size_t>(blocks.spacing)];
    const double nearest = block_cost(table, blocks, 0);
    const double here =
        between(block_cost(table, blocks, level.low), block_cost(table, blocks, level.high), level.part);
    const auto count = static_cast<double>(blocks.count);
    terms.addresses += count * std::min(nearest, here);
    terms.memory += count * std::max(0.0, here - nearest);
  }
  if (!cold || terms.addresses == 0) return terms;
  terms.memory = std::max(0.0, terms.memory + costs.first[way] / 1000.0);
  if (direction == Direction::scatter)
    terms.memory = std::max(terms.memory, least_of_stores(costs, touched / line) - terms.addresses);
  return terms;
}

} // namespace near::profile
