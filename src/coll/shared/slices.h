// The slices of a process: shareable memory in which data of collectives lies until all ranks have read it.
#pragma once

#include "object/error.h"
#include "segment/reserve.h"
#include "segment/segment.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace near::coll {

class Area;

inline constexpr std::int64_t slice_bytes = segment::slice_bytes;
/// The number of slices that the communicators of a process share, and that a persistent call has at most. More are made
/// only for an area that would otherwise have none.
inline constexpr std::size_t most_slices = segment::region_slices;

/// Slices are made one by one, when all others are in use, and kept. Their pages are allocated as far as data needs them:
/// populating all of a slice takes the kernel some 30 us. Communicators take turns with those of the process. A persistent
/// call has slices of its own: which of several is started first, and so needs slices, may differ between ranks, and
/// neither could go on.
class Slices {
public:
  /// Where they come from: addresses that every process can read for slice number `index`, the first `had` bytes of
  /// which have pages, and pages for its first `bytes` bytes. Both fail with Code::no_memory or Code::limit.
  struct Source {
    base::Result (*reserve)(std::size_t index, void*& made, std::size_t& had);
    base::Result (*populate)(std::byte* slice, std::size_t had, std::size_t bytes);
    /// Short data rotates through this many slices at least, if there is memory for them, so that the next one is free
    /// and can be fetched ahead. At most segment::region_slices: reserve() may be called again for an index below it.
    std::size_t rotation = 0;
    /// If no slice is free, puts data behind what lies in one, so that more of it may be under way: for ranks that share
    /// processors, to which each wait costs a turn.
    bool packs = false;
    /// Further slices are made only for an area that holds none.
    std::size_t most = most_slices;
    /// Whether pages are made for data that is packed.
    bool grows = true;
  };
  /// Longer data does not rotate, and is not fetched: it is written chunk by chunk, without a wait in which the next slice
  /// could come. Bytes.
  static constexpr std::size_t most_rotating = 16u << 10;
  explicit Slices(Source source) : source_(source) {}

  /// See Source::packs.
  bool packs() const { return source_.packs; }
  /// Makes sure that there are `count` slices with `bytes` bytes each. False if there is no memory for them.
  bool make(std::size_t count, std::size_t bytes);
  /// Returns a slice with `bytes` bytes for this entry of the area, or nullptr if one has to be waited for, or if there
  /// is no memory. An area that holds none need not wait for the slices of others, which may wait for this process.
  std::byte* take(Area& area, std::uint64_t number, std::size_t bytes);
  /// Begins to fetch the slice that take() will probably return next, for writing: as many bytes as the last one was
  /// taken for.
  void fetch_next() const;
  /// Whether take() would return one.
  bool can_take(const Area& area, std::size_t bytes) {
    return looks_ ? may_take(area, bytes) : find(area, bytes).slice != nullptr;
  }
  /// While it exists, can_take() makes neither slices nor pages: it assumes that there is memory for them if there was at the
  /// last attempt. For questions before a sleep.
  class Look {
  public:
    explicit Look(Slices& slices) : slices_(slices) { slices_.looks_ = true; }
    ~Look() { slices_.looks_ = false; }
    Look(const Look&) = delete;
    Look& operator=(const Look&) = delete;

  private:
    Slices& slices_;
  };
  /// Whether take() is worth another try: a slice is free and has `bytes` bytes, or may get them. Changes nothing.
  bool any_free(std::size_t bytes) const;
  /// Whether no slice has `bytes` bytes, and there is no memory for one.
  bool exhausted(std::size_t bytes) const;
  /// The area goes: its slices are free.
  void give_back(const Area& area);
  /// Empties this, and calls keep(memory, bytes) for each slice, whose first `bytes` bytes have pages.
  template <class Keep>
  void dissolve(Keep&& keep) {
    for (const Slice& slice : slices_) keep(slice.memory, slice.bytes);
    slices_.clear();
  }

private:
  struct Slice {
    std::byte* memory = nullptr;
    std::size_t bytes = 0; ///< with pages
    std::size_t used = 0;  ///< by data of `number` and earlier entries
    Area* area = nullptr;  ///< that has used it last; null: none
    std::uint64_t number = 0;
  };
  struct Place {
    Slice* slice = nullptr; ///< null: there is none
    std::size_t offset = 0;
  };
  Place find(const Area& area, std::size_t bytes);
  Place find_behind(const Area& area, std::size_t bytes);
  bool may_take(const Area& area, std::size_t bytes) const;
  bool has_space_behind(const Slice& slice, const Area& area, std::size_t bytes) const {
    return slice.area == &area && slice.used + bytes <= (source_.grows ? slice_bytes : slice.bytes);
  }
  bool grow();
  bool add(const Slice& slice);
  bool reserve(Slice& made);
  bool populate(const Slice& slice, std::size_t bytes);
  void extend_rotation(std::size_t bytes);
  bool has_pages(Slice& slice, std::size_t bytes);

  Source source_;
  std::vector<Slice> slices_;
  std::size_t next_ = 0;  ///< the slice that was taken longest ago
  std::size_t taken_ = 0; ///< bytes of the slice that was taken last
  // After a failure the slices that exist are waited for; asking again would only cost time.
  bool no_more_slices_ = false, no_more_pages_ = false, no_rotation_ = false;
  bool looks_ = false;
};

} // namespace near::coll
