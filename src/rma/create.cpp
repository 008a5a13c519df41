// Creating and freeing windows: the steps common to all of them, and windows of the program's own memory.
// Source: MPI 5.0, sections 12.2 and 12.8.
#include "comm/exchange.h"
#include "memory/segments.h"
#include "rma/creation.h"
#include "rma/remote.h"
#include "transport/registry.h"
#include "transport/transport.h"

#include <algorithm>
#include <limits>
#include <new>

namespace near::rma {

namespace {

/// Frees what this process allocated for the window, without communication. Precondition: no process has
/// pages in its row any more.
void undo(Window& window) {
  State& state = state_of(window);
  state.remote.reset();
  state.server.reset();
  state.handed.reset();
  state.exposure.reset();
  state.attached.reset();
  if (state.allocated != nullptr) memory::free_shareable(state.allocated, segment::BlockUse::window);
  if (state.own != nullptr) memory::free_shareable(state.own);
  object::destroy(&window);
}

} // namespace

Offset shared_offset(const void* address) {
  memory::GlobalAddress found;
  return memory::find_global(address, found) && found.segment == 0 ? found.offset : 0;
}

Result make(Communicator& communicator, int flavor, Window*& made) {
  Communicator* own = nullptr;
  NEAR_TRY(comm::create(communicator, *communicator.group, own));
  made = object::make_window(own);
  if (made == nullptr) return base::fail(MPI_ERR_NO_MEM, "no memory or no handle for another window");
  made->flavor = flavor;
  made->extension = std::make_unique<State>(own->size);
  state_of(*made).rank = own->rank;
  return {};
}

Result leave_row(Window& window) {
  State& state = state_of(window);
  if (state.placed_bytes != 0) memory::decommit_shareable(state.placed, state.placed_bytes);
  state.placed_bytes = 0;
  return window.flavor == MPI_WIN_FLAVOR_SHARED ? coll::barrier(*window.communicator) : Result();
}

Result make_shared_part(Window& window, std::size_t rings) {
  State& state = state_of(window);
  void* page = memory::allocate_shareable(sizeof(SharedPart) + rings * sizeof(CallRing), {});
  if (page == nullptr)
    return base::fail(MPI_ERR_NO_MEM, "no page for a window's locks: {}", std::string(base::failure_text()));
  state.own = new (page) SharedPart;
  state.spare_rings = {reinterpret_cast<CallRing*>(state.own + 1), rings};
  return {};
}

namespace {

/// Finds where this process has mapped another one's part.
void find_mapped(const Window& window, int rank) {
  State& state = state_of(window);
  Member& member = state.members[static_cast<std::size_t>(rank)];
  const segment::Segment* segment =
      memory::find_segment_of(window.communicator->process_ids[static_cast<std::size_t>(rank)]);
  member.segment = segment;
  member.here = segment != nullptr && member.shared != 0 ? segment->at<std::byte>(member.shared) : nullptr;
  member.locks = segment != nullptr && member.part != 0 ? segment->at<SharedPart>(member.part) : nullptr;
  member.direct = member.here;
  if (rank == state.rank) member.direct = reinterpret_cast<std::byte*>(member.address);
  if (window.flavor == MPI_WIN_FLAVOR_DYNAMIC || member.locks == nullptr) // displacements are addresses
    member.direct = nullptr;
}

} // namespace

Result agree(Window& window, Member mine, Result result) {
  State& state = state_of(window);
  std::string text = result.ok() ? "" : std::string(base::failure_text());
  mine.failed = result.ok() ? 0 : object::error_class(result);
  if (state.own != nullptr) mine.part = shared_offset(state.own);
  Result told = coll::all_gather(comm::byte_buffer(&mine, sizeof mine),
                                 comm::byte_buffer(state.members.data(), sizeof mine), *window.communicator);
  if (!told.ok()) return told; // the parts may be in use, so nothing is undone
  for (std::size_t rank = 0; rank < state.members.size(); ++rank) find_mapped(window, static_cast<int>(rank));
  auto bad = std::find_if(state.members.begin(), state.members.end(),
                          [](const Member& member) { return member.failed != 0; });
  if (bad == state.members.end()) return {};
  auto failed = static_cast<int>(bad->failed);
  auto rank = static_cast<int>(bad - state.members.begin());
  // A process that has died cannot be read either. A process that reaches this barrier was alive after the attempt; if one does
  // not, the launcher ends the job.
  NEAR_TRY(coll::barrier(*window.communicator));
  NEAR_TRY(leave_row(window));
  undo(window);
  if (!result.ok()) return base::fail(mine.failed, "{}", text);
  return base::fail(failed, "rank {} of the window could not make its part of it", rank);
}

namespace {

/// Lets operations on private memory of this machine be handed to their targets (handed_calls.h).
Result begin_handing(Window& window) {
  State& state = state_of(window);
  const Member& own = state.members[static_cast<std::size_t>(state.rank)];
  bool others_reach_us = false, we_reach_others = false;
  for (int rank = 0; rank < window.communicator->size; ++rank) {
    const Member& member = state.members[static_cast<std::size_t>(rank)];
    if (rank == state.rank)
      others_reach_us = is_private(window, member);
    else if (member.segment == own.segment && is_private(window, member))
      we_reach_others = true;
  }
  if (we_reach_others) state.handed = std::make_unique<HandedCalls>(window);
  // Ranks that share processors never wait for a target (HandedCalls::is_answered).
  if (!others_reach_us || transport::wait_settings.oversubscribed || window.communicator->size == 1)
    return {};
  state.server = std::make_unique<RingServer>(window);
  return state.server->start();
}

} // namespace

Result finish(Window& window, const Info* info, void* base) {
  State& state = state_of(window);
  const Member& mine = state.members[static_cast<std::size_t>(state.rank)];
  window.base = base;
  window.size = mine.size;
  window.unit = mine.unit <= std::numeric_limits<int>::max() ? static_cast<int>(mine.unit) : 0;
  NEAR_TRY(reach_other_machines(window));
  NEAR_TRY(begin_handing(window));
  return info != nullptr ? apply_hints(window, *info) : Result();
}

Result check_unit(MPI_Aint size, MPI_Aint unit) {
  if (size < 0) return base::fail(MPI_ERR_SIZE, "size is {}, but must not be negative", size);
  if (unit <= 0) return base::fail(MPI_ERR_DISP, "disp_unit is {}, but must be positive", unit);
  return {};
}

bool is_on_one_machine(const Communicator& communicator) {
  const object::ProcessId* members = communicator.process_ids;
  return std::all_of(members, members + communicator.size, [](const object::ProcessId& member) {
    return memory::find_segment_of(member) != nullptr;
  });
}

Result check_intra(const Communicator& communicator) {
  if (!communicator.is_inter()) return {};
  return base::fail(MPI_ERR_COMM, "{} is an intercommunicator; windows are made on one group",
                    object::describe(communicator));
}

namespace {

/// Fails unless this process reaches every private part.
Result check_reach(const Window& window) {
  const State& state = state_of(window);
  for (int rank = 0; rank < window.communicator->size; ++rank) {
    const Member& member = state.members[static_cast<std::size_t>(rank)];
    const bool is_elsewhere = member.locks == nullptr;
    if (rank == state.rank || is_elsewhere || !is_private(window, member)) continue;
    if (transport::reaches_memory_of(peer_of(window, rank))) continue;
    return base::fail(MPI_ERR_UNSUPPORTED_OPERATION,
                      "the kernel does not let this process copy from the private memory of rank {}: use "
                      "MPI_Win_allocate, or memory of MPI_Alloc_mem",
                      rank);
  }
  return {};
}

Result create_any(Communicator& communicator, int flavor, Member mine, const Info* info, Window*& made) {
  Window* window = nullptr;
  NEAR_TRY(make(communicator, flavor, window));
  expose(*window, mine);
  // If this process's memory is private, the others' probably is too.
  constexpr std::size_t most_rings = 3;
  const bool wants_rings = is_private(*window, mine) && memory::has_ample_space();
  const std::size_t others = wants_rings ? static_cast<std::size_t>(window->communicator->size - 1) : 0;
  NEAR_TRY(agree(*window, mine, make_shared_part(*window, std::min(others, most_rings))));
  NEAR_TRY(agree(*window, mine, check_reach(*window)));
  NEAR_TRY(finish(*window, info, reinterpret_cast<void*>(mine.address)));
  made = window;
  return {};
}

} // namespace

Result create(Communicator& communicator, void* base, MPI_Aint size, MPI_Aint unit, const Info* info,
              Window*& made) {
  NEAR_TRY(check_intra(communicator));
  NEAR_TRY(check_unit(size, unit));
  if (base == nullptr && size != 0)
    return base::fail(MPI_ERR_BASE, "base is a null pointer and size is {}", size);
  Member mine{.address = reinterpret_cast<std::uint64_t>(base), .size = size, .unit = unit};
  mine.shared = shared_offset(base);
  return create_any(communicator, MPI_WIN_FLAVOR_CREATE, mine, info, made);
}

Result create_dynamic(Communicator& communicator, const Info* info, Window*& made) {
  NEAR_TRY(check_intra(communicator));
  return create_any(communicator, MPI_WIN_FLAVOR_DYNAMIC, {}, info, made);
}

Result free_window(Window& window) {
  State& state = state_of(window);
  if (state.started || state.posted || state.locked_all || !state.held.empty())
    return base::fail(MPI_ERR_RMA_SYNC, "{} is inside an epoch that {} begun: end it first",
                      object::describe(window),
                      state.started  ? "MPI_Win_start has"
                      : state.posted ? "MPI_Win_post has"
                                     : "MPI_Win_lock or MPI_Win_lock_all has");
  NEAR_TRY(window.attributes.remove_all(window));
  // A failure is returned last: the other processes wait for this one, and the window is gone in any case.
  FirstFailure failure;
  failure.note(settle_all(window, Where::target));
  // After the barrier the memory of other processes' rings may vanish. They carry out themselves whatever they still hand over.
  state.server.reset();
  // From here on no process accesses another's part.
  NEAR_TRY(coll::barrier(*window.communicator));
  // But messages that release locks may still be on their way.
  if (state.remote != nullptr) state.remote->stop();
  NEAR_TRY(leave_row(window));
  undo(window);
  return failure.tell();
}

Result find_part(const Window& window, int rank, Part& part) {
  if (window.flavor == MPI_WIN_FLAVOR_DYNAMIC)
    return base::fail(MPI_ERR_RMA_FLAVOR, "{} is dynamic: it has no parts", object::describe(window));
  const State& state = state_of(window);
  if (rank == MPI_PROC_NULL) {
    auto first = std::find_if(state.members.begin(), state.members.end(),
                              [](const Member& member) { return member.size != 0; });
    if (first == state.members.end()) {
      part = {};
      part.unit = state.members[0].unit;
      return {};
    }
    rank = static_cast<int>(first - state.members.begin());
  }
  NEAR_TRY(check_rank(rank, window));
  const Member& member = state.members[static_cast<std::size_t>(rank)];
  if (rank == state.rank)
    part = {window.base, member.size, member.unit};
  else if (member.here != nullptr)
    part = {member.here, member.size, member.unit};
  else
    part = {nullptr, 0, member.unit};
  return {};
}

} // namespace near::rma
