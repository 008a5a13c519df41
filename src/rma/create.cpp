// Windows come into being, and go. Source: MPI 5.0, sections 12.2 and 12.8.
#include "base/checked.h"
#include "comm/exchange.h"
#include "os/memory.h"
#include "rma/state.h"

#include <algorithm>
#include <limits>
#include <new>

namespace near::rma {

namespace {

/// The kinds of hints, for apply_hints.
constexpr std::string_view truths[] = {"no_locks", "same_size", "same_disp_unit", "alloc_shared_noncontig"};
constexpr std::string_view ordering = "accumulate_ordering", operations = "accumulate_ops",
                           granularity = "mpi_accumulate_granularity",
                           noncontiguous = "alloc_shared_noncontig";

bool is_truth(std::string_view value) { return value == "true" || value == "false"; }

bool is_ordering(std::string_view value) {
  if (value == "none") return true;
  for (std::size_t at = 0; at <= value.size();) {
    std::size_t end = std::min(value.find(',', at), value.size());
    std::string_view word = value.substr(at, end - at);
    if (word != "rar" && word != "raw" && word != "war" && word != "waw") return false;
    at = end + 1;
  }
  return true;
}

bool says(const Info* info, std::string_view key) {
  const std::string* value = info != nullptr ? info->find(key) : nullptr;
  return value != nullptr && *value == "true";
}

Offset shared_offset(const void* address) {
  const auto& segment = transport::job_segment();
  return segment.contains(address) ? segment.offset_of(address) : 0;
}

/// A window on a communicator of its own.
Result make(Communicator& communicator, int flavor, Window*& made) {
  Communicator* own = nullptr;
  NEAR_TRY(comm::create(communicator, *communicator.group, own));
  made = object::make_window(own);
  if (made == nullptr) return base::fail(MPI_ERR_NO_MEM, "no memory or no handle for another window");
  made->flavor = flavor;
  made->extension = std::make_unique<State>();
  State& state = state_of(*made);
  state.rank = own->rank;
  state.members.resize(static_cast<std::size_t>(own->size));
  return {};
}

/// Gives this process's pages of a row back. The addresses may end when all have done so.
Result leave_row(Window& window) {
  State& state = state_of(window);
  if (state.placed_bytes != 0) transport::unplace_shareable(state.placed, state.placed_bytes);
  state.placed_bytes = 0;
  return window.flavor == MPI_WIN_FLAVOR_SHARED ? coll::barrier(*window.communicator) : Result();
}

/// What this process did alone; nothing is told any more, and nobody has pages of its row.
void undo(Window& window) {
  State& state = state_of(window);
  state.attached.reset();
  if (state.allocated != nullptr) transport::free_shareable(state.allocated, segment::BlockUse::window);
  if (state.own != nullptr) transport::free_shareable(state.own);
  object::destroy(&window);
}

Result make_shared_part(Window& window) {
  void* page = transport::allocate_shareable(sizeof(SharedPart), {});
  if (page == nullptr)
    return base::fail(MPI_ERR_NO_MEM, "no page for a window's locks: {}", std::string(base::failure_text()));
  state_of(window).own = new (page) SharedPart;
  return {};
}

/// Tells every process of this one's part, or that it failed; on failure of any all undo what they did.
/// `result` is this process's own so far.
Result agree(Window& window, Member mine, Result result) {
  State& state = state_of(window);
  std::string text = result.ok() ? "" : std::string(base::failure_text());
  mine.failed = result.ok() ? 0 : object::error_class(result);
  if (state.own != nullptr) mine.part = transport::job_segment().offset_of(state.own);
  Result told = coll::all_gather(comm::byte_buffer(&mine, sizeof mine),
                                 comm::byte_buffer(state.members.data(), sizeof mine), *window.communicator);
  if (!told.ok()) return told; // the parts may be in use: what was made stays
  auto bad = std::find_if(state.members.begin(), state.members.end(),
                          [](const Member& member) { return member.failed != 0; });
  if (bad == state.members.end()) return {};
  auto failed = static_cast<int>(bad->failed);
  auto rank = static_cast<int>(bad - state.members.begin());
  NEAR_TRY(leave_row(window));
  undo(window);
  if (!result.ok()) return base::fail(mine.failed, "{}", text);
  return base::fail(failed, "rank {} of the window could not make its part of it", rank);
}

/// The last step of every window: hints, and what the attributes tell.
Result finish(Window& window, const Info* info, void* base) {
  State& state = state_of(window);
  const Member& mine = state.members[static_cast<std::size_t>(state.rank)];
  window.base = base;
  window.size = mine.size;
  window.unit = mine.unit <= std::numeric_limits<int>::max() ? static_cast<int>(mine.unit) : 0;
  return info != nullptr ? apply_hints(window, *info) : Result();
}

Result check_unit(MPI_Aint size, MPI_Aint unit) {
  if (size < 0) return base::fail(MPI_ERR_SIZE, "size is {}, but must not be negative", size);
  if (unit <= 0) return base::fail(MPI_ERR_DISP, "disp_unit is {}, but must be positive", unit);
  return {};
}

Result check_intra(const Communicator& communicator) {
  if (!communicator.is_inter()) return {};
  return base::fail(MPI_ERR_COMM, "{} is an intercommunicator; windows are made on one group",
                    object::describe(communicator));
}

/// Every private part must be within reach of every process.
Result check_reach(const Window& window) {
  const State& state = state_of(window);
  for (int rank = 0; rank < window.communicator->size; ++rank) {
    const Member& member = state.members[static_cast<std::size_t>(rank)];
    bool is_private = window.flavor == MPI_WIN_FLAVOR_DYNAMIC || (member.size != 0 && member.shared == 0);
    if (rank == state.rank || !is_private || transport::reaches_memory_of(peer_of(window, rank))) continue;
    return base::fail(MPI_ERR_UNSUPPORTED_OPERATION,
                      "the kernel does not let this process copy from the private memory of rank {}: use "
                      "MPI_Win_allocate, or memory of MPI_Alloc_mem",
                      rank);
  }
  return {};
}

Result create_any(Communicator& communicator, int flavor, const Member& mine, const Info* info,
                  Window*& made) {
  Window* window = nullptr;
  NEAR_TRY(make(communicator, flavor, window));
  NEAR_TRY(agree(*window, mine, make_shared_part(*window)));
  NEAR_TRY(agree(*window, mine, check_reach(*window)));
  NEAR_TRY(finish(*window, info, reinterpret_cast<void*>(mine.address)));
  made = window;
  return {};
}

/// Whole pages of this process's own.
Result make_own_memory(Window& window, std::size_t bytes, const transport::MemoryWish& wish) {
  NEAR_TRY(make_shared_part(window));
  if (bytes == 0) return {};
  void* at = transport::allocate_shareable(bytes, wish, segment::BlockUse::window);
  if (at == nullptr)
    return base::fail(MPI_ERR_NO_MEM, "no {} bytes for the window: {}", bytes,
                      std::string(base::failure_text()));
  state_of(window).allocated = at;
  return {};
}

Result allocate_apart(Communicator& communicator, int flavor, Member mine, const Info* info,
                      const transport::MemoryWish& wish, void*& base, Window*& made) {
  Window* window = nullptr;
  NEAR_TRY(make(communicator, flavor, window));
  Result result = make_own_memory(*window, static_cast<std::size_t>(mine.size), wish);
  void* at = state_of(*window).allocated;
  mine.address = reinterpret_cast<std::uint64_t>(at);
  mine.shared = at != nullptr ? shared_offset(at) : 0;
  NEAR_TRY(agree(*window, mine, result));
  NEAR_TRY(finish(*window, info, at));
  base = at;
  made = window;
  return {};
}

/// One part behind the other, in the arena of rank 0. Each page is placed by the process whose byte is its
/// first.
Result allocate_in_a_row(Communicator& communicator, Member mine, const Info* info,
                         const transport::MemoryWish& wish, void*& base, Window*& made) {
  Window* window = nullptr;
  NEAR_TRY(make(communicator, MPI_WIN_FLAVOR_SHARED, window));
  State& state = state_of(*window);
  NEAR_TRY(agree(*window, mine, make_shared_part(*window))); // now all know all sizes
  std::uint64_t before = 0, all = 0;
  bool fits = true;
  for (std::size_t rank = 0; rank < state.members.size(); ++rank) {
    if (static_cast<int>(rank) == state.rank) before = all;
    fits = fits && base::checked_add(all, static_cast<std::uint64_t>(state.members[rank].size), all);
  }
  Result result =
      fits ? Result()
           : base::fail(MPI_ERR_SIZE, "the parts of the window together have more bytes than 64 bits count");
  Offset begin = 0;
  if (result.ok() && state.rank == 0 && all != 0) {
    state.allocated = transport::reserve_shareable(all, wish);
    if (state.allocated != nullptr)
      begin = shared_offset(state.allocated);
    else
      result = base::fail(MPI_ERR_NO_MEM, "no {} bytes in a row for the window: {}", all,
                          std::string(base::failure_text()));
  }
  // The others need its offset: the first member's, until the parts are told.
  Member told = mine;
  told.shared = begin;
  NEAR_TRY(agree(*window, told, result));
  begin = state.members[0].shared;

  const std::uint64_t page = os::page_size(), bytes = static_cast<std::uint64_t>(mine.size);
  Offset first = base::round_up(begin + before, page), behind = base::round_up(begin + before + bytes, page);
  result = bytes == 0 || first >= behind
               ? Result()
               : transport::place_shareable(first, behind - first, wish, segment::BlockUse::window);
  if (!result.ok()) {
    result = base::fail(MPI_ERR_NO_MEM, "no {} bytes for the window: {}", bytes,
                        std::string(base::failure_text()));
  } else if (bytes != 0 && first < behind) {
    state.placed = first;
    state.placed_bytes = behind - first;
  }
  if (all != 0) {
    mine.shared = begin + before;
    mine.address = reinterpret_cast<std::uint64_t>(transport::job_segment().at<std::byte>(mine.shared));
  }
  NEAR_TRY(agree(*window, mine, result));
  base = reinterpret_cast<void*>(mine.address);
  NEAR_TRY(finish(*window, info, base));
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

Result allocate(Communicator& communicator, MPI_Aint size, MPI_Aint unit, const Info* info,
                const transport::MemoryWish& wish, void*& base, Window*& made) {
  NEAR_TRY(check_intra(communicator));
  NEAR_TRY(check_unit(size, unit));
  return allocate_apart(communicator, MPI_WIN_FLAVOR_ALLOCATE, {.size = size, .unit = unit}, info, wish, base,
                        made);
}

Result allocate_shared(Communicator& communicator, MPI_Aint size, MPI_Aint unit, const Info* info,
                       const transport::MemoryWish& wish, void*& base, Window*& made) {
  NEAR_TRY(check_intra(communicator));
  NEAR_TRY(check_unit(size, unit));
  const object::Address* addresses = communicator.addresses;
  bool together = std::all_of(addresses, addresses + communicator.size, [&](const object::Address& address) {
    return address.segment == addresses[0].segment;
  });
  if (!together)
    return base::fail(MPI_ERR_RMA_SHARED,
                      "the processes of {} are on several machines; "
                      "MPI_Comm_split_type(MPI_COMM_TYPE_SHARED) gives those of each",
                      object::describe(communicator));
  Member mine{.size = size, .unit = unit};
  // Each process may say it or not; the answer of one counts.
  std::uint64_t apart = says(info, noncontiguous) ? 1 : 0;
  NEAR_TRY(coll::broadcast(comm::byte_buffer(&apart, sizeof apart), 0, communicator));
  if (apart != 0) return allocate_apart(communicator, MPI_WIN_FLAVOR_SHARED, mine, info, wish, base, made);
  return allocate_in_a_row(communicator, mine, info, wish, base, made);
}

Result attach(Window& window, void* base, MPI_Aint size) {
  State& state = state_of(window);
  if (window.flavor != MPI_WIN_FLAVOR_DYNAMIC)
    return base::fail(MPI_ERR_RMA_FLAVOR, "{} was not made by MPI_Win_create_dynamic",
                      object::describe(window));
  if (size < 0) return base::fail(MPI_ERR_SIZE, "size is {}, but must not be negative", size);
  auto begin = reinterpret_cast<std::uint64_t>(base);
  auto bytes = static_cast<std::uint64_t>(size);
  if (bytes != 0 && base == nullptr)
    return base::fail(MPI_ERR_BASE, "base is a null pointer and size is {}", size);
  if (begin + bytes < begin)
    return base::fail(MPI_ERR_SIZE, "{} bytes at {} go beyond the last address", size, base);
  if (bytes == 0) return {};
  if (state.attached == nullptr) state.attached = std::make_unique<AttachedList>(state.own->attached);
  if (std::uint64_t other = state.attached->overlapping(begin, bytes); other != 0)
    return base::fail(MPI_ERR_RMA_ATTACH, "the memory at {} overlaps what is attached at {:#x}", base, other);
  return state.attached->add(begin, bytes, shared_offset(base));
}

Result detach(Window& window, const void* base) {
  if (window.flavor != MPI_WIN_FLAVOR_DYNAMIC)
    return base::fail(MPI_ERR_RMA_FLAVOR, "{} was not made by MPI_Win_create_dynamic",
                      object::describe(window));
  const auto& attached = state_of(window).attached;
  if (attached != nullptr && attached->remove(reinterpret_cast<std::uint64_t>(base))) return {};
  return base::fail(MPI_ERR_RMA_ATTACH, "nothing is attached at {}", base);
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
  // Nobody comes to another's part any more.
  NEAR_TRY(coll::barrier(*window.communicator));
  NEAR_TRY(leave_row(window));
  undo(window);
  return {};
}

Result find_part(const Window& window, int rank, Part& part) {
  if (window.flavor == MPI_WIN_FLAVOR_DYNAMIC)
    return base::fail(MPI_ERR_RMA_FLAVOR, "{} is dynamic: it has no parts", object::describe(window));
  const State& state = state_of(window);
  if (rank == MPI_PROC_NULL) {
    auto first = std::find_if(state.members.begin(), state.members.end(),
                              [](const Member& member) { return member.size != 0 && member.shared != 0; });
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
  else if (member.shared != 0)
    part = {transport::job_segment().at<std::byte>(member.shared), member.size, member.unit};
  else
    part = {nullptr, 0, member.unit};
  return {};
}

Result apply_hints(Window& window, const Info& info) {
  auto keep = [&](std::string_view name, bool valid, const std::string* value) -> Result {
    if (value == nullptr || !valid) return {};
    if (window.info == nullptr) window.info = object::make_info();
    if (window.info == nullptr) return base::fail(MPI_ERR_NO_MEM, "no memory for a window's hints");
    window.info->set(name, *value);
    return {};
  };
  for (std::string_view name : truths) {
    const std::string* value = info.find(name);
    NEAR_TRY(keep(name, value != nullptr && is_truth(*value), value));
  }
  const std::string* value = info.find(ordering);
  NEAR_TRY(keep(ordering, value != nullptr && is_ordering(*value), value));
  value = info.find(operations);
  return keep(operations, value != nullptr && (*value == "same_op" || *value == "same_op_no_op"), value);
}

Info* hints_in_force(const Window& window) {
  Info* made = object::make_info();
  if (made == nullptr) return nullptr;
  for (std::string_view name : truths) made->set(name, "false");
  made->set(ordering, "rar,raw,war,waw");
  made->set(operations, "same_op_no_op");
  made->set(granularity, "0");
  if (window.info != nullptr)
    for (const auto& [key, value] : window.info->entries) made->set(key, value);
  return made;
}

} // namespace near::rma
