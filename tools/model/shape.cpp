#include "model/shape.h"

#include "datatype/walk.h"

#include <cmath>
#include <cstdlib>
#include <map>
#include <utility>

namespace near::model {

using profile::Blocks;
using profile::Spacing;

namespace {

/// Adds up the blocks that a walk meets.
class BlockSink {
public:
  bool block(std::intptr_t address, MPI_Count bytes) {
    add(address, static_cast<std::uint64_t>(bytes), Spacing::listed);
    return true;
  }
  bool grid(std::intptr_t address, const copy::Grid& grid) {
    const std::uint64_t count = grid.count * grid.rows;
    const std::ptrdiff_t stride = grid.count > 1 ? grid.stride : grid.row_stride;
    if (count == 1)
      add(address, grid.bytes, Spacing::equal);
    else
      add_many(grid.bytes, Spacing::equal, count,
               static_cast<double>(count) * static_cast<double>(std::abs(stride)));
    last_ = address + static_cast<std::ptrdiff_t>(grid.rows - 1) * grid.row_stride +
            static_cast<std::ptrdiff_t>(grid.count - 1) * grid.stride;
    any_ = true;
    return true;
  }
  bool listed(std::intptr_t address, MPI_Count bytes, const datatype::CompactNumbers& offsets,
              std::size_t first, std::size_t count) {
    double distance = 0;
    for (std::size_t i = first + 1; i < first + count; ++i)
      distance += static_cast<double>(std::abs(offsets[i] - offsets[i - 1]));
    const double mean = count > 1 ? distance / static_cast<double>(count - 1) : 0;
    add_many(static_cast<std::uint64_t>(bytes), Spacing::listed, count, mean * static_cast<double>(count));
    last_ = address + offsets[first + count - 1];
    any_ = true;
    return true;
  }
  std::vector<Blocks> all() const {
    std::vector<Blocks> made;
    for (const auto& [key, sum] : sums_) {
      const auto count = static_cast<double>(sum.count);
      made.push_back({sum.count, key.first, sum.distance / count, static_cast<Spacing>(key.second)});
    }
    return made;
  }

private:
  struct Sum {
    std::uint64_t count = 0;
    double distance = 0; ///< of all to the one before
  };
  /// A block by itself; the distance counts from the one before it, whatever its length.
  void add(std::intptr_t address, std::uint64_t bytes, Spacing spacing) {
    const double distance = any_ ? static_cast<double>(std::abs(address - last_)) : 0;
    add_many(bytes, spacing, 1, distance);
    last_ = address;
    any_ = true;
  }
  void add_many(std::uint64_t bytes, Spacing spacing, std::uint64_t count, double distance) {
    Sum& sum = sums_[{bytes, static_cast<int>(spacing)}];
    sum.count += count;
    sum.distance += distance;
  }

  std::map<std::pair<std::uint64_t, int>, Sum> sums_;
  std::intptr_t last_ = 0;
  bool any_ = false;
};

} // namespace

std::vector<Blocks> blocks_of(const datatype::Buffer& buffer) {
  BlockSink sink;
  const datatype::Datatype& type = *buffer.type;
  if (buffer.bytes() == 0) return {};
  if (type.contiguous)
    sink.block(0, buffer.bytes());
  else
    datatype::walk_copies(*type.form.form, type.extent, 0, 0, buffer.bytes(), sink);
  return sink.all();
}

} // namespace near::model
