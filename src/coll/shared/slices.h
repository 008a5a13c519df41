// The slices of a process: shareable memory in which data of collectives lies until all ranks have read it.
#pragma once

#include "object/error.h"
#include "segment/segment.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace near::coll {

class Area;

inline constexpr std::int64_t slice_bytes = 64 << 10;
inline constexpr std::size_t most_slices = 8;

/// Slices are made one by one, when all others are in use, and kept. They are the process's own: communicators take
/// turns with them.
class Slices {
public:
  /// Allocates whole pages that every process can read; fails with Code::no_memory or Code::limit.
  using Allocate = base::Result (*)(std::size_t bytes, void*& made);
  explicit Slices(Allocate allocate) : allocate_(allocate) {}

  /// Returns a slice for this entry of the area, or nullptr if one has to be waited for, or if there is no memory (then
  /// none exists).
  std::byte* take(Area& area, std::uint32_t number);
  /// Whether take() would return one.
  bool can_take();
  /// Whether there is no slice at all, and no memory for the first one.
  bool exhausted() const { return slices_.empty(); }
  /// The area goes: its slices are free.
  void give_back(const Area& area);

private:
  struct Slice {
    std::byte* memory;
    Area* area; ///< null: free
    std::uint32_t number;
  };
  Slice* find();
  bool grow();

  Allocate allocate_;
  std::vector<Slice> slices_;
  std::size_t next_ = 0; ///< the slice that was taken longest ago
  bool full_ = false;    ///< no memory for another one
};

} // namespace near::coll
