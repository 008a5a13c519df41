// Making the area of a communicator, and returning its memory.
#include "base/checked.h"
#include "coll/coll.h"
#include "coll/registry.h"
#include "coll/shared/area.h"
#include "memory/allocate.h"
#include "memory/segments.h"
#include "os/memory.h"
#include "transport/transport.h"

#include <algorithm>
#include <new>

namespace near::coll {
namespace {

/// The number of communicators for which a process has an area at a time; all others use messages.
constexpr std::size_t most_areas = 256;

/// This process's own control page.
segment::ControlPage& own_control() { return memory::space().segment.control(object::own_process().rank); }

base::Result reserve_slice(std::size_t index, void*& made, std::size_t& had) {
  const segment::Segment& job = memory::space().segment;
  had = 0;
  if (index >= segment::region_slices)
    return memory::reserve_pages(static_cast<std::size_t>(slice_bytes) / os::page_size(), made);
  made = job.at<std::byte>(own_control().slices + index * segment::slice_bytes);
  if (index == 0) had = segment::first_slice_bytes(job.job_size());
  return {};
}
base::Result populate_slice(std::byte* slice, std::size_t had, std::size_t bytes) {
  const std::size_t page = os::page_size(), begin = base::round_up(had, page),
                    end = base::round_up(bytes, page);
  return begin < end ? memory::populate_pages(slice + begin, end - begin) : base::Result{};
}

/// A page for this process's part of an area.
AreaPart* allocate_part() {
  void* made = nullptr;
  if (!memory::allocate_pages(1, made).ok()) return nullptr;
  return new (made) AreaPart;
}

/// An area whose communicator this process has freed. First others may still read this process's slices, and this one
/// looks at their pages to learn when they have finished; then it leaves the area, and the others may use their pages
/// again; when all have left, so does it.
struct Retired {
  std::unique_ptr<Area> area; ///< null: left
  std::vector<AreaPart*> parts;
  std::size_t rank;
  AreaPart& own() const { return *parts[rank]; }
};

/// Never destroyed: communicators may be freed at exit.
struct Home {
  Slices slices{{reserve_slice, populate_slice}};
  std::vector<Retired> retired;  ///< freed by this process; another one may still read
  std::vector<AreaPart*> unused; ///< pages for further areas
  std::size_t parts = 0;         ///< pages that exist
};
Home& home() {
  static Home& only = *new Home;
  return only;
}

void leave(Retired& retired) {
  for (AreaPart* part : retired.parts)
    // SYNC: area-left. Release: our reads of the part come before its next use.
    if (part != &retired.own()) part->left.add_release(1);
  retired.area.reset(); // its slices are free
  transport::wake_waiting_threads();
}

/// Leaves the areas that are over, and takes back the pages that all other members have left.
void reap() {
  std::erase_if(home().retired, [](Retired& retired) {
    if (retired.area != nullptr && retired.area->is_over()) leave(retired);
    // SYNC: area-left. Acquire: the page is written again after the last reads of all others.
    if (retired.area != nullptr || retired.own().left.load_acquire() != retired.parts.size() - 1)
      return false;
    home().unused.push_back(&retired.own());
    return true;
  });
}

AreaPart* take_part() {
  Home& self = home();
  reap();
  if (!self.unused.empty()) {
    AreaPart* part = self.unused.back();
    self.unused.pop_back();
    return new (part) AreaPart;
  }
  if (self.parts == most_areas) return nullptr;
  AreaPart* part = allocate_part();
  if (part != nullptr) ++self.parts;
  return part;
}

/// What a communicator keeps. Destroying it retires the area.
struct Extension final : AreaExtension {
  std::vector<AreaPart*> parts;
  int rank = 0;

  ~Extension() override {
    if (area == nullptr) return;
    home().retired.push_back(Retired{std::move(area), std::move(parts), static_cast<std::size_t>(rank)});
    reap();
  }
};

/// Whether all ranks have mapped this process's own segment: a fact that they know alike.
bool shares_segment(const Communicator& communicator) {
  const memory::Space& self = memory::space();
  if (!self.segment.mapped()) return false;
  for (int i = 0; i < communicator.size; ++i)
    if (memory::find_segment_of(communicator.process_ids[i]) != &self.segment) return false;
  return true;
}

/// Whether the regions contain the parts of this communicator's area, so that nobody has to ask where they are.
bool is_prepared(const Communicator& communicator) {
  return &communicator == object::world() &&
         segment::first_slice_bytes(memory::space().segment.job_size()) != 0;
}

/// Tells every rank where the parts of all others lie, by messages.
Result exchange_offsets(Communicator& communicator, segment::Offset own, std::vector<segment::Offset>& all) {
  Datatype& bytes = byte_type();
  const Call call =
      allgather_call(Buffer{&own, sizeof own, &bytes}, Buffer{all.data(), sizeof own, &bytes}, communicator);
  CollectiveGroup group(communicator);
  return run(group, call);
}

/// Allocates this rank's part and finds those of the others. `offsets` contains a 0 if a rank has no memory for one.
Result find_parts(Communicator& communicator, std::vector<segment::Offset>& offsets) {
  const memory::Space& self = memory::space();
  const bool has_slice = home().slices.make_first();
  if (is_prepared(communicator)) {
    for (std::size_t i = 0; i < offsets.size(); ++i)
      offsets[i] = self.segment.control(communicator.process_ids[i].rank).area_part;
    return {};
  }
  AreaPart* own = has_slice ? take_part() : nullptr;
  Result exchanged =
      exchange_offsets(communicator, own != nullptr ? self.segment.offset_of(own) : 0, offsets);
  if (own != nullptr && (!exchanged.ok() || std::find(offsets.begin(), offsets.end(), 0) != offsets.end()))
    home().unused.push_back(own);
  return exchanged;
}

Result make_area(Communicator& communicator, Extension& made) {
  const memory::Space& self = memory::space();
  std::vector<segment::Offset> offsets(static_cast<std::size_t>(communicator.size));
  NEAR_TRY(find_parts(communicator, offsets));
  if (std::find(offsets.begin(), offsets.end(), 0) != offsets.end()) return {};
  std::vector<AreaMember> members(offsets.size());
  made.rank = communicator.rank;
  made.parts.resize(offsets.size());
  for (std::size_t i = 0; i < members.size(); ++i) {
    made.parts[i] = members[i].part = self.segment.at<AreaPart>(offsets[i]);
    if (static_cast<int>(i) != communicator.rank)
      members[i].doorbell = &self.segment.control(communicator.process_ids[i].rank).doorbell;
  }
  made.area =
      std::make_unique<Area>(std::move(members), communicator.rank, self.segment.base(), home().slices);
  return {};
}

} // namespace

Result find_area(Communicator& communicator, bool may_wait, Area*& area) {
  area = nullptr;
  if (communicator.size == 1 || communicator.size > most_area_ranks) return {};
  if (communicator.extension == nullptr) {
    if (!may_wait && !is_prepared(communicator)) return {};
    auto made = std::make_unique<Extension>();
    if (shares_segment(communicator)) NEAR_TRY(make_area(communicator, *made));
    communicator.extension = std::move(made);
  }
  area = static_cast<AreaExtension&>(*communicator.extension).area.get();
  return {};
}

} // namespace near::coll
