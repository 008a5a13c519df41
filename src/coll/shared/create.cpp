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
#include <span>

namespace near::coll {
namespace {

/// The number of areas that a process has at a time; further communicators and persistent calls use messages.
constexpr std::size_t most_areas = 256;

/// Once a process has this many slices for persistent calls, further calls get two at most, as long as their data.
constexpr std::size_t many_own_slices = 64;

/// Where all ranks read each other's entries, a rank that publishes number n has heard in them that the others have
/// finished n - 2. So the slice that it takes next is known to be free, and can be fetched, if it last held n - 2 or an
/// earlier number: with three slices. A rank that runs ahead by one number needs a fourth (doc/adr/0020).
constexpr std::size_t slices_in_rotation = 4;

/// This process's own control page.
segment::ControlPage& own_control() { return memory::space().segment.control(memory::space().row); }

base::Result reserve_slice(std::size_t index, void*& made, std::size_t& had) {
  const segment::Segment& job = memory::space().segment;
  had = 0;
  if (index >= segment::region_slices)
    return memory::reserve_pages(static_cast<std::size_t>(slice_bytes) / os::page_size(), made);
  made = job.at<std::byte>(own_control().slices + index * segment::slice_bytes);
  if (index == 0) had = segment::first_slice_bytes(job.job_size());
  return {};
}
base::Result reserve_own_slice(std::size_t index, void*& made, std::size_t& had);
base::Result populate_slice(std::byte* slice, std::size_t had, std::size_t bytes) {
  const std::size_t page = os::page_size(), begin = base::round_up(had, page),
                    end = base::round_up(bytes, page);
  return begin < end ? memory::populate_pages(slice + begin, end - begin) : base::Result{};
}

/// Pages for this process's part of an area.
AreaPart* allocate_part() {
  void* made = nullptr;
  const std::size_t pages = base::round_up(sizeof(AreaPart), os::page_size()) / os::page_size();
  if (!memory::allocate_pages(pages, made).ok()) return nullptr;
  return new (made) AreaPart;
}

/// An area that this process has freed. First others may still read this process's slices, and this one
/// looks at their parts to learn when they have finished; then it leaves the area, and the others may use their parts
/// again; when all have left, so does it.
struct Retired {
  std::unique_ptr<Slices> slices; ///< of a persistent call
  std::unique_ptr<Area> area;     ///< null: left
  std::vector<AreaPart*> parts;
  std::size_t rank;
  AreaPart& own() const { return *parts[rank]; }
};

/// A slice of a persistent call that has been freed.
struct SpareSlice {
  std::byte* memory;
  std::size_t bytes; ///< with pages
};

struct Extension;

/// Never destroyed: communicators may be freed at exit.
struct Home {
  Slices slices{{reserve_slice, populate_slice, slices_in_rotation, ranks_share_processors()}};
  std::vector<SpareSlice> spare_slices;
  std::size_t own_slices = 0;    ///< of persistent calls, spare ones included
  std::vector<Extension*> used;  ///< not freed yet
  std::vector<Retired> retired;  ///< freed by this process; another one may still read
  std::vector<AreaPart*> unused; ///< parts for further areas
  std::size_t parts = 0;         ///< how many exist
};
Home& home() {
  static Home& only = *new Home;
  return only;
}

base::Result reserve_own_slice(std::size_t, void*& made, std::size_t& had) {
  had = 0;
  auto& spare = home().spare_slices;
  if (spare.empty()) {
    ++home().own_slices;
    return memory::reserve_pages(static_cast<std::size_t>(slice_bytes) / os::page_size(), made);
  }
  made = spare.back().memory;
  had = spare.back().bytes;
  spare.pop_back();
  return {};
}

void keep_spare(Slices& slices) {
  slices.dissolve(
      [](std::byte* memory, std::size_t bytes) { home().spare_slices.push_back({memory, bytes}); });
}

void leave(Retired& retired) {
  for (AreaPart* part : retired.parts)
    // SYNC: area-left. Release: our reads of the part come before its next use.
    if (part != &retired.own()) part->left.add_release(1);
  retired.area.reset(); // its slices are free
  if (retired.slices != nullptr) keep_spare(*retired.slices);
  transport::wake_waiting_threads();
}

/// Leaves the areas that are over, and takes back the parts that all other members have left.
void reap() {
  std::erase_if(home().retired, [](Retired& retired) {
    if (retired.area != nullptr && retired.area->is_over()) leave(retired);
    // SYNC: area-left. Acquire: the part is written again after the last reads of all others.
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

/// Destroying it retires the area.
struct Extension final : AreaExtension {
  std::unique_ptr<Slices> own_slices; ///< of a persistent call
  std::vector<AreaPart*> parts;
  int rank = 0;
  const Communicator* whole = nullptr; ///< whose machines these are

  Result make_another(Communicator& communicator, MPI_Count bytes,
                      std::unique_ptr<AreaExtension>& made) override;

  Extension() { home().used.push_back(this); }
  ~Extension() override {
    std::erase(home().used, this);
    if (area == nullptr) {
      if (own_slices != nullptr) keep_spare(*own_slices);
      return;
    }
    home().retired.push_back(
        Retired{std::move(own_slices), std::move(area), std::move(parts), static_cast<std::size_t>(rank)});
    reap();
  }
};

/// Ends what waits for this process. The part of an area with a failed member is not used again: whether that member
/// has left it is unknown.
void process_failed(const object::ProcessId& process) {
  for (Extension* extension : home().used) {
    if (extension->area == nullptr) continue;
    extension->area->process_failed(process);
    if (extension->machines == nullptr) continue;
    const std::span ids(extension->whole->process_ids, static_cast<std::size_t>(extension->whole->size));
    if (const auto found = std::find(ids.begin(), ids.end(), process); found != ids.end())
      extension->area->rank_failed(static_cast<int>(found - ids.begin()));
  }
  for (Retired& retired : home().retired)
    if (retired.area != nullptr) retired.area->process_failed(process);
}

/// Makes sure that communicators have a slice. False if there is no memory for one.
bool make_first_slice() { return home().slices.make(1, static_cast<std::size_t>(slice_bytes)); }

/// Whether all ranks have mapped this process's own segment: a fact that they know alike.
bool shares_segment(const Communicator& communicator) {
  const memory::Space& self = memory::space();
  if (!self.segment.mapped()) return false;
  for (int i = 0; i < communicator.size; ++i)
    if (memory::find_segment_of(communicator.process_ids[i]) != &self.segment) return false;
  return true;
}

/// Some ranks of a communicator, or all, which share an area.
struct Sharers {
  Communicator& communicator;
  RankList ranks;
  std::size_t size() const { return static_cast<std::size_t>(ranks.size()); }
  int rank_at(std::size_t i) const { return ranks[static_cast<int>(i)]; }
  object::ProcessId process_at(std::size_t i) const { return communicator.process_ids[rank_at(i)]; }
};

/// Whether the regions contain the parts of this communicator's area, so that nobody has to ask where they are.
bool is_prepared(const Sharers& sharers) {
  return &sharers.communicator == object::world() &&
         segment::job_has_area(memory::space().segment.job_size());
}

/// Tells every one of these ranks where the parts of all others lie, by messages.
Result exchange_offsets(const Sharers& sharers, segment::Offset own, std::vector<segment::Offset>& all) {
  Datatype& bytes = byte_type();
  const Call call = allgather_call(Buffer{&own, sizeof own, &bytes}, Buffer{all.data(), sizeof own, &bytes},
                                   sharers.communicator);
  CollectiveGroup whole(sharers.communicator), group(whole, sharers.ranks);
  return run(group, call);
}

std::vector<segment::Offset> prepared_parts(const Sharers& sharers) {
  std::vector<segment::Offset> offsets(sharers.size());
  for (std::size_t i = 0; i < offsets.size(); ++i)
    offsets[i] = memory::space().segment.control(memory::row_of(sharers.process_at(i))).area_part;
  return offsets;
}

/// Allocates this rank's part, if it `has_slices`, and finds those of the others. `offsets` contains a 0 if a rank has no
/// memory for one.
Result allocate_parts(const Sharers& sharers, bool has_slices, std::vector<segment::Offset>& offsets) {
  const memory::Space& self = memory::space();
  AreaPart* own = has_slices ? take_part() : nullptr;
  Result exchanged = exchange_offsets(sharers, own != nullptr ? self.segment.offset_of(own) : 0, offsets);
  if (own != nullptr && (!exchanged.ok() || std::find(offsets.begin(), offsets.end(), 0) != offsets.end()))
    home().unused.push_back(own);
  return exchanged;
}

/// Makes the area whose parts lie at these offsets, unless one is missing.
void make_area(const Sharers& sharers, const std::vector<segment::Offset>& offsets, Extension& made) {
  const memory::Space& self = memory::space();
  if (std::find(offsets.begin(), offsets.end(), 0) != offsets.end()) return;
  std::vector<AreaMember> members(offsets.size());
  made.rank = sharers.ranks.find(sharers.communicator.rank);
  made.parts.resize(offsets.size());
  for (std::size_t i = 0; i < members.size(); ++i) {
    made.parts[i] = members[i].part = self.segment.at<AreaPart>(offsets[i]);
    members[i].process = sharers.process_at(i);
    members[i].rank = sharers.rank_at(i);
    const std::uint32_t row = memory::row_of(sharers.process_at(i));
    members[i].node = self.segment.entry(row).location.numa;
    if (static_cast<int>(i) != made.rank) members[i].doorbell = &self.segment.control(row).doorbell;
  }
  Slices& slices = made.own_slices != nullptr ? *made.own_slices : home().slices;
  made.area = std::make_unique<Area>(std::move(members), made.rank, self.segment.base(), slices,
                                     &own_control().counters);
  if (sharers.ranks.size() == sharers.communicator.size) made.of_all = made.area.get();
  p2p::watch_failures(process_failed);
}

Result allocate_area(const Sharers& sharers, bool has_slices, Extension& made) {
  std::vector<segment::Offset> offsets(sharers.size());
  NEAR_TRY(allocate_parts(sharers, has_slices, offsets));
  make_area(sharers, offsets, made);
  return {};
}

/// How many slices a persistent call needs, of how many bytes, so that a start neither allocates nor, as a rule, waits: further
/// ones for the next starts while others still read, as many as short data rotates through, or, where ranks share processors,
/// as lets them be a few starts ahead.
struct OwnSlices {
  std::size_t count = 0, bytes = 0;
};
OwnSlices own_slices_for(MPI_Count bytes) {
  const bool many = home().own_slices >= many_own_slices, packs = ranks_share_processors() && !many;
  if (bytes <= (packs ? inline_bytes : piece_bytes)) return {};
  const std::size_t most = many ? 2 : most_slices;
  if (bytes <= piece_bytes) return {1, static_cast<std::size_t>(slice_bytes)};
  const auto needed = static_cast<std::size_t>((bytes + slice_bytes - 1) / slice_bytes);
  if (packs) return {std::min(slices_in_rotation * needed, most), static_cast<std::size_t>(slice_bytes)};
  const std::size_t least =
      bytes <= static_cast<MPI_Count>(Slices::most_rotating) ? std::min(slices_in_rotation, most) : 2;
  return {std::clamp(needed, least, most), static_cast<std::size_t>(std::min<MPI_Count>(bytes, slice_bytes))};
}

Result Extension::make_another(Communicator& communicator, MPI_Count bytes,
                               std::unique_ptr<AreaExtension>& made) {
  auto another = std::make_unique<Extension>();
  const OwnSlices needed = own_slices_for(bytes);
  another->own_slices =
      std::make_unique<Slices>(Slices::Source{.reserve = reserve_own_slice,
                                              .populate = populate_slice,
                                              .packs = ranks_share_processors() && needed.count != 0,
                                              .most = std::max<std::size_t>(needed.count, 1),
                                              .grows = false});
  Slices& slices = *another->own_slices;
  const bool has_slices =
      slices.make(needed.count, needed.bytes) || (needed.count > 2 && slices.make(2, needed.bytes));
  NEAR_TRY(allocate_area({communicator, RankList::all(communicator.size)}, has_slices, *another));
  made = std::move(another);
  return {};
}

/// The machines of the ranks; null if all are on one.
std::unique_ptr<const Machines> find_machines(const Communicator& communicator) {
  if (memory::space().machine_of.empty()) return nullptr;
  std::vector<std::uint32_t> machine_of(static_cast<std::size_t>(communicator.size));
  for (std::size_t i = 0; i < machine_of.size(); ++i)
    machine_of[i] = memory::machine_of(communicator.process_ids[i]);
  auto made = std::make_unique<const Machines>(machine_of, communicator.rank);
  return made->count() > 1 ? std::move(made) : nullptr;
}

/// The ranks that may share an area with this one: all, those on this machine, or none.
RankList sharers_of(const Communicator& communicator, const Machines* machines) {
  if (machines != nullptr) return machines->ranks_of(machines->own());
  return RankList::all(shares_segment(communicator) ? communicator.size : 0);
}

/// Makes what the communicator keeps for its collectives, unless that takes messages and this rank must not wait.
Result extend(Communicator& communicator, bool may_wait) {
  auto made = std::make_unique<Extension>();
  made->machines = find_machines(communicator);
  made->whole = &communicator;
  const Sharers sharers{communicator, sharers_of(communicator, made->machines.get())};
  // All ranks of the communicator know whether one of them may send messages. If so, all take a tag.
  const bool sends = &communicator != object::world();
  if (sends && !may_wait) return {};
  if (sharers.size() < 2 || sharers.ranks.size() > most_area_ranks) {
    if (sends) (void)TagSpace::next(communicator); // as exchange_offsets() does
  } else if (is_prepared(sharers)) {
    (void)make_first_slice();
    make_area(sharers, prepared_parts(sharers), *made);
  } else {
    NEAR_TRY(allocate_area(sharers, make_first_slice(), *made));
  }
  // Ranks of a group can read each other's memory if all of a communicator have agreed on that (single_copy.h).
  if (made->area != nullptr && made->of_all == nullptr) made->area->set_reading(Area::Reading::no);
  communicator.extension = std::move(made);
  return {};
}

} // namespace

Result find_area(Communicator& communicator, bool may_wait, Area*& area) {
  area = nullptr;
  if (communicator.size == 1) return {};
  if (communicator.extension == nullptr) {
    NEAR_TRY(extend(communicator, may_wait));
    if (communicator.extension == nullptr) return {};
  }
  area = static_cast<AreaExtension&>(*communicator.extension).of_all;
  return {};
}

} // namespace near::coll
