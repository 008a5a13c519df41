// See slices.h.
#include "coll/shared/slices.h"

#include "base/checked.h"
#include "coll/shared/area.h"

#include <algorithm>
#include <new>

namespace near::coll {
namespace {

/// Whether `act` succeeds. Whoever waits for a slice must learn that there is none, so that is no exception.
template <class Act>
bool succeeds(Act act) {
  try {
    return act().ok();
  } catch (const std::bad_alloc&) { return false; }
}

} // namespace

bool Slices::add(const Slice& slice) {
  return succeeds([&] { return slices_.push_back(slice), base::Result{}; });
}

bool Slices::reserve(Slice& made) {
  return succeeds([&] {
    void* memory = nullptr;
    const base::Result result = source_.reserve(slices_.size(), memory, made.bytes);
    made.memory = static_cast<std::byte*>(memory);
    return result;
  });
}

bool Slices::populate(const Slice& slice, std::size_t bytes) {
  return succeeds([&] { return source_.populate(slice.memory, slice.bytes, bytes); });
}

bool Slices::grow() {
  if (no_more_slices_ || no_more_pages_) return false;
  Slice slice;
  if (!reserve(slice) || !add(slice)) {
    no_more_slices_ = true;
    return false;
  }
  next_ = slices_.size() - 1;
  return true;
}

/// Whether the slice has pages for `bytes` bytes; allocates them if there is memory.
bool Slices::has_pages(Slice& slice, std::size_t bytes) {
  if (slice.bytes >= bytes) [[likely]]
    return true;
  if (no_more_pages_) return false;
  // At least twice as many as before: a sweep through all sizes asks seldom.
  const std::size_t more = std::min<std::size_t>(std::max(bytes, 2 * slice.bytes), slice_bytes);
  if (!populate(slice, more)) {
    no_more_pages_ = true;
    return false;
  }
  slice.bytes = more;
  return true;
}

bool Slices::make(std::size_t count, std::size_t bytes) {
  no_more_slices_ = no_more_pages_ = no_rotation_ = false; // there may be memory again
  while (slices_.size() < count)
    if (!grow()) return false;
  return std::all_of(slices_.begin(), slices_.begin() + static_cast<std::ptrdiff_t>(count),
                     [&](Slice& slice) { return has_pages(slice, bytes); });
}

/// Adds a slice if the one whose turn it is has been used before, and there are too few for a rotation. Nothing is lost
/// if there is no memory for it.
void Slices::extend_rotation(std::size_t bytes) {
  if (slices_.size() >= source_.rotation || bytes > most_rotating || no_rotation_) return;
  if (slices_.empty() || slices_[next_].area == nullptr) return;
  Slice slice;
  no_rotation_ = !reserve(slice);
  if (no_rotation_) return;
  if (slice.bytes < bytes) {
    no_rotation_ = !populate(slice, bytes);
    if (no_rotation_) return;
    slice.bytes = bytes;
  }
  no_rotation_ = !add(slice);
  if (!no_rotation_) next_ = slices_.size() - 1;
}

/// Room behind what one of this area's slices holds, for Source::packs. Free slices go first, so that ranks which exchange
/// data, and are never far ahead, keep to little memory.
Slices::Place Slices::find_behind(const Area& area, std::size_t bytes) {
  for (Slice& slice : slices_)
    if (has_space_behind(slice, area, bytes) && has_pages(slice, slice.used + bytes))
      return {&slice, slice.used};
  return {};
}

/// The first free slice whose turn it is; a new one if all others are in use.
Slices::Place Slices::find(const Area& area, std::size_t bytes) {
  bool holds_one = false;
  for (std::size_t tried = 0; tried < slices_.size(); ++tried) {
    const std::size_t index = (next_ + tried) % slices_.size();
    Slice& slice = slices_[index];
    if (slice.area != nullptr && !slice.area->is_over(slice.number)) {
      holds_one = holds_one || slice.area == &area;
      continue;
    }
    if (!has_pages(slice, bytes)) continue;
    next_ = index;
    return {&slice, 0};
  }
  if (source_.packs)
    if (const Place place = find_behind(area, bytes); place.slice != nullptr) return place;
  if (holds_one && slices_.size() >= source_.most) return {};
  return grow() && has_pages(slices_.back(), bytes) ? Place{&slices_.back(), 0} : Place{};
}

/// As find(), but changes nothing.
bool Slices::may_take(const Area& area, std::size_t bytes) const {
  if (any_free(bytes)) return true;
  auto is_behind = [&](const Slice& slice) {
    return has_space_behind(slice, area, bytes) && (slice.bytes >= slice.used + bytes || !no_more_pages_);
  };
  if (source_.packs && std::any_of(slices_.begin(), slices_.end(), is_behind)) return true;
  const bool holds_one = std::any_of(slices_.begin(), slices_.end(), [&](const Slice& slice) {
    return slice.area == &area && !slice.area->is_over(slice.number);
  });
  return !(holds_one && slices_.size() >= source_.most) && !no_more_slices_ && !no_more_pages_;
}

std::byte* Slices::take(Area& area, std::uint64_t number, std::size_t bytes) {
  extend_rotation(bytes);
  const Place place = find(area, bytes);
  if (place.slice == nullptr) return nullptr;
  if (place.offset == 0) next_ = (next_ + 1) % slices_.size();
  place.slice->used = base::round_up(place.offset + bytes, 2 * base::cache_line);
  place.slice->area = &area;
  place.slice->number = number;
  taken_ = bytes;
  return place.slice->memory + place.offset;
}

void Slices::fetch_next() const {
  if (source_.packs) return; // another rank has the processor before this one uses it
  const Slice& next = slices_[next_];
  if (next.area != nullptr && !next.area->is_over(next.number)) return; // somebody still reads it
  if (taken_ <= most_rotating) base::fetch_for_writing(next.memory, std::min(taken_, next.bytes));
}

bool Slices::any_free(std::size_t bytes) const {
  return std::any_of(slices_.begin(), slices_.end(), [&](const Slice& slice) {
    return (slice.bytes >= bytes || !no_more_pages_) &&
           (slice.area == nullptr || slice.area->is_over(slice.number));
  });
}

bool Slices::exhausted(std::size_t bytes) const {
  return (no_more_pages_ || (no_more_slices_ && slices_.empty())) &&
         std::none_of(slices_.begin(), slices_.end(),
                      [&](const Slice& slice) { return slice.bytes >= bytes; });
}

void Slices::give_back(const Area& area) {
  for (Slice& slice : slices_)
    if (slice.area == &area) slice.area = nullptr;
}

} // namespace near::coll
