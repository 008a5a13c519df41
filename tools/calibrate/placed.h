// A buffer of any datatype in memory that contains its data and nothing else.
#pragma once

#include "datatype/datatype.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace near::calibrate {

/// From the beginning of the first element to that of the last, in bytes; may be negative.
inline MPI_Count distance_to_last(const datatype::Datatype& type, MPI_Count count) {
  return (count - 1) * type.extent;
}

/// The number of bytes from the first byte of the data of `count` elements to the end of their last.
inline std::uint64_t span_of(const datatype::Datatype& type, MPI_Count count) {
  return static_cast<std::uint64_t>(std::abs(distance_to_last(type, count))) +
         static_cast<std::uint64_t>(type.true_extent);
}

/// The buffer of `count` elements whose data fill span_of() bytes, beginning at `memory`.
inline datatype::Buffer placed_in(std::byte* memory, datatype::Datatype& type, MPI_Count count) {
  // Computed as integers, since the address of an element may lie far outside its data.
  const auto address = reinterpret_cast<std::intptr_t>(memory) -
                       std::min<MPI_Count>(distance_to_last(type, count), 0) - type.true_lb;
  return {reinterpret_cast<void*>(address), count, &type};
}

} // namespace near::calibrate
