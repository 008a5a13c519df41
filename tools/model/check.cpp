#include "model/check.h"

#include "calibrate/blocks.h"
#include "model/shape.h"
#include "os/memory.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>
#include <random>

namespace near::model {

using datatype::Datatype;
using profile::Spacing;

namespace {

constexpr std::uint64_t lengths[] = {8, 24, 40, 96, 400, 3000};
constexpr std::uint64_t steps[] = {2, 3, 8, 32, 100}; // in blocks
constexpr std::uint64_t sizes[] = {512, 8u << 10, 100'000, 2u << 20};
constexpr std::uint64_t most_memory = 256u << 20;

/// A buffer's memory, from its first byte of data to its last.
struct Memory {
  std::unique_ptr<std::byte[]> strided, packed;
  Result reserve(std::uint64_t span, std::uint64_t bytes) {
    const std::uint64_t most = os::physical_memory() / 4;
    if (most != 0 && (span > most || bytes > most - span))
      return base::fail(
          base::Code::limit,
          "the buffers would take {} MiB, more than a quarter of this machine's memory: take a smaller "
          "datatype, or fewer bytes",
          (span >> 20) + (bytes >> 20));
    strided.reset(new (std::nothrow) std::byte[span]);
    packed.reset(new (std::nothrow) std::byte[bytes]);
    if (strided == nullptr || packed == nullptr)
      return base::fail(base::Code::no_memory, "there is no memory for a buffer of {} bytes", span + bytes);
    std::fill_n(strided.get(), span, std::byte{1});
    std::fill_n(packed.get(), bytes, std::byte{1});
    return {};
  }
};

/// Makes `count` blocks of `length` bytes, `step` bytes apart, or so far in the mean.
Result make_blocks(std::uint64_t count, std::uint64_t length, std::uint64_t step, Spacing spacing,
                   Datatype*& made) {
  Datatype& byte = *datatype::find_datatype(MPI_BYTE);
  const auto bytes = static_cast<MPI_Count>(length);
  if (spacing == Spacing::equal)
    return datatype::make_vector(static_cast<MPI_Count>(count), bytes, static_cast<MPI_Count>(step), true,
                                 byte, made);
  std::mt19937 random(1);
  std::vector<MPI_Count> at;
  MPI_Count next = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    at.push_back(next);
    next += bytes * static_cast<MPI_Count>(1 + random() % (2 * (step / length) - 1));
  }
  return datatype::make_indexed_block(bytes, at, true, byte, made);
}

} // namespace

Result time_copy(MPI_Count count, Datatype& type, Direction direction, Before before, double& took) {
  Memory memory;
  const datatype::Buffer probe{nullptr, count, &type};
  if (probe.bytes() == 0) return base::fail(base::Code::invalid, "there are no bytes to copy");
  const MPI_Count rest = (count - 1) * type.extent; // from the first element to the last; may be negative
  const auto span = static_cast<std::uint64_t>(std::abs(rest)) + static_cast<std::uint64_t>(type.true_extent);
  NEAR_TRY(memory.reserve(span, static_cast<std::uint64_t>(probe.bytes())));
  const datatype::Buffer buffer{memory.strided.get() - std::min<MPI_Count>(rest, 0) - type.true_lb, count,
                                &type};
  std::vector<datatype::Piece> pieces;
  datatype::pieces(buffer, 0, buffer.bytes(), pieces, SIZE_MAX);
  auto copy = [&] {
    if (direction == Direction::gather)
      datatype::pack(buffer, 0, memory.packed.get(), buffer.bytes());
    else
      datatype::unpack(buffer, 0, memory.packed.get(), buffer.bytes());
  };
  auto flush = [&] {
    for (const datatype::Piece& piece : pieces) calibrate::flush_lines(piece.address, piece.bytes);
  };
  took = before == Before::hot ? calibrate::time_hot(copy) : calibrate::time_cold(copy, flush);
  return {};
}

Result check_grid(const profile::BlockCosts& costs,
                  const std::function<void(std::size_t, std::size_t)>& report, std::vector<Point>& points) {
  std::vector<Point> wanted;
  for (std::uint64_t bytes : sizes)
    for (std::uint64_t length : lengths)
      for (std::uint64_t step : steps)
        for (Spacing spacing : {Spacing::equal, Spacing::listed})
          for (Direction direction : {Direction::gather, Direction::scatter})
            for (Before before : {Before::hot, Before::cold})
              if (bytes >= 2 * length && bytes * step <= most_memory)
                wanted.push_back(
                    {bytes / length * length, length, length * step, spacing, direction, before});
  NEAR_TRY(datatype::make_predefined_types());
  for (Point& point : wanted) {
    Datatype* type = nullptr;
    NEAR_TRY(make_blocks(point.bytes / point.length, point.length, point.step, point.spacing, type));
    const datatype::Buffer one{nullptr, 1, type};
    point.predicted = predict_copy(costs, point.direction, blocks_of(one), point.before).total();
    const Result timed = time_copy(1, *type, point.direction, point.before, point.measured);
    datatype::release(type);
    NEAR_TRY(timed);
    points.push_back(point);
    report(points.size(), wanted.size());
  }
  return {};
}

} // namespace near::model
