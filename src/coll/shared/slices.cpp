// See slices.h.
#include "coll/shared/slices.h"

#include "coll/shared/area.h"

namespace near::coll {

bool Slices::grow() {
  if (full_ || slices_.size() == most_slices) return false;
  void* made = nullptr;
  if (!allocate_(static_cast<std::size_t>(slice_bytes), made).ok()) {
    full_ = true; // others are waited for; asking again would only cost time
    return false;
  }
  slices_.push_back(Slice{static_cast<std::byte*>(made), nullptr, 0});
  next_ = slices_.size() - 1;
  return true;
}

/// The free slice whose turn it is, if all before it in the turn are in use.
Slices::Slice* Slices::find() {
  for (std::size_t tried = 0; tried < slices_.size(); ++tried) {
    Slice& slice = slices_[(next_ + tried) % slices_.size()];
    if (slice.area == nullptr || slice.area->all_finished(slice.number)) {
      next_ = (next_ + tried) % slices_.size();
      slice.area = nullptr;
      return &slice;
    }
  }
  return grow() ? &slices_[next_] : nullptr;
}

std::byte* Slices::take(Area& area, std::uint32_t number) {
  Slice* slice = find();
  if (slice == nullptr) return nullptr;
  next_ = (next_ + 1) % slices_.size();
  slice->area = &area;
  slice->number = number;
  return slice->memory;
}

bool Slices::can_take() { return find() != nullptr; }

void Slices::give_back(const Area& area) {
  for (Slice& slice : slices_)
    if (slice.area == &area) slice.area = nullptr;
}

} // namespace near::coll
