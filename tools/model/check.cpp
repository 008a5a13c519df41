#include "model/check.h"

#include "calibrate/blocks.h"
#include "calibrate/placed.h"
#include "datatype/walk.h"
#include "model/shape.h"
#include "os/limits.h"

#include <algorithm>
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

/// The interval between comparisons that are measured again at the end.
constexpr std::size_t measured_again = 5;

constexpr std::uint64_t message_lengths[] = {8, 96, 1000};
constexpr std::uint64_t message_steps[] = {2, 16}; // in blocks
constexpr std::uint64_t message_sizes[] = {512, 6000, 128u << 10, 1u << 20};
/// For each of them, in nanoseconds.
constexpr std::uint64_t message_budget = 50'000'000;

/// A buffer's memory, from its first byte of data to its last, and that of its packed bytes.
struct Memory {
  std::unique_ptr<std::byte[]> strided, packed;
  Result reserve(std::uint64_t span, std::uint64_t bytes) {
    if (span > INT64_MAX - bytes)
      return base::fail(base::Code::no_memory, "there is no memory for buffers of 2^63 bytes");
    NEAR_TRY(os::check_memory(span + bytes));
    strided.reset(new (std::nothrow) std::byte[span]);
    packed.reset(new (std::nothrow) std::byte[bytes]);
    if (strided == nullptr || packed == nullptr)
      return base::fail(base::Code::no_memory, "there is no memory for buffers of {} bytes", span + bytes);
    std::fill_n(strided.get(), span, std::byte{1});
    std::fill_n(packed.get(), bytes, std::byte{1});
    return {};
  }
};

/// Removes what a walk visits from the caches.
struct FlushSink : datatype::BlockByBlock<FlushSink> {
  bool block(std::intptr_t address, MPI_Count bytes) {
    calibrate::flush_lines(reinterpret_cast<const std::byte*>(address), static_cast<std::size_t>(bytes));
    return true;
  }
};

void flush(const datatype::Buffer& buffer) {
  FlushSink sink;
  const Datatype& type = *buffer.type;
  const auto address = reinterpret_cast<std::intptr_t>(buffer.address);
  if (type.contiguous)
    sink.block(address + type.true_lb, buffer.bytes());
  else
    datatype::walk_copies(*type.form.form, type.extent, address + type.form.at, 0, buffer.bytes(), sink);
}

/// Makes `count` blocks of `length` bytes, `step` bytes apart or, if listed, at this mean distance.
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
  const MPI_Count bytes = count * type.size;
  if (bytes == 0) return base::fail(base::Code::invalid, "there are no bytes to copy");
  NEAR_TRY(memory.reserve(calibrate::span_of(type, count), static_cast<std::uint64_t>(bytes)));
  const datatype::Buffer buffer = calibrate::placed_in(memory.strided.get(), type, count);
  auto copy = [&] {
    if (direction == Direction::gather)
      datatype::pack(buffer, 0, memory.packed.get(), bytes);
    else
      datatype::unpack(buffer, 0, memory.packed.get(), bytes);
  };
  const calibrate::Pinned here;
  took =
      before == Before::hot ? calibrate::time_hot(copy) : calibrate::time_cold(copy, [&] { flush(buffer); });
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
  const auto compare = [&](Point& point, double& took) -> Result {
    Datatype* type = nullptr;
    NEAR_TRY(make_blocks(point.bytes / point.length, point.length, point.step, point.spacing, type));
    point.predicted = predict_copy(costs, point.direction, blocks_of(*type, 1), point.before).total();
    const Result timed = time_copy(1, *type, point.direction, point.before, took);
    datatype::release(type);
    return timed;
  };
  for (Point& point : wanted) {
    NEAR_TRY(compare(point, point.measured));
    points.push_back(point);
    report(points.size(), wanted.size());
  }
  for (std::size_t i = 0; i < points.size(); i += measured_again)
    NEAR_TRY(compare(points[i], points[i].again));
  return {};
}

Result check_messages(const profile::Profile& known, std::span<const calibrate::Pair> pairs,
                      const std::function<void(std::size_t, std::size_t)>& report,
                      std::vector<MessagePoint>& points) {
  struct Wanted {
    MessagePoint point;
    const calibrate::Pair* pair;
  };
  std::vector<Wanted> wanted;
  for (const calibrate::Pair& pair : pairs)
    for (std::uint64_t bytes : message_sizes)
      for (std::uint64_t length : message_lengths)
        for (std::uint64_t step : message_steps)
          for (Spacing spacing : {Spacing::equal, Spacing::listed})
            if (bytes >= 2 * length && knows_messages(known, pair.distance, bytes / length * length))
              wanted.push_back(
                  {{bytes / length * length, length, length * step, spacing, pair.distance}, &pair});
  NEAR_TRY(datatype::make_predefined_types());
  const auto compare = [&](MessagePoint& point, const calibrate::Pair& pair, double& took) -> Result {
    Datatype* type = nullptr;
    NEAR_TRY(make_blocks(point.bytes / point.length, point.length, point.step, point.spacing, type));
    const auto terms = predict_message(known, point.distance, blocks_of(*type, 1), point.bytes);
    point.predicted = terms.total();
    const Result timed = calibrate::time_message(pair, terms.kind, *type, 1, message_budget, took);
    datatype::release(type);
    return timed;
  };
  // On a busy machine a message may arrive too late to be timed.
  Result failed;
  std::size_t done = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    auto& [point, pair] = wanted[i];
    if (const Result compared = compare(point, *pair, point.measured); !compared.ok()) {
      failed = compared;
      point.measured = 0;
    }
    report(++done, wanted.size());
  }
  for (std::size_t i = 0; i < wanted.size(); i += measured_again)
    if (auto& [point, pair] = wanted[i]; point.measured != 0 && !compare(point, *pair, point.again).ok())
      point.again = 0;
  for (const Wanted& one : wanted)
    if (one.point.measured != 0) points.push_back(one.point);
  return points.empty() ? failed : Result{};
}

} // namespace near::model
