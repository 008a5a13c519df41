// Windows that allocate their memory: a separate part for each process, or all parts one after another.
// Source: MPI 5.0, sections 12.2.2 and 12.2.3.
#include "base/checked.h"
#include "comm/exchange.h"
#include "os/memory.h"
#include "rma/creation.h"
#include "rma/direct.h"

#include <algorithm>

namespace near::rma {

namespace {

bool wants_own_pages(const Info* info) {
  const std::string* value = info != nullptr ? info->find("alloc_shared_noncontig") : nullptr;
  return value != nullptr && *value == "true";
}

/// Allocates whole pages for this process's part.
Result make_own_memory(Window& window, std::size_t bytes, const memory::AllocationHints& hints) {
  NEAR_TRY(make_shared_part(window));
  if (bytes == 0) return {};
  void* at = memory::allocate_shareable(bytes, hints, segment::BlockUse::window);
  if (at == nullptr)
    return base::fail(MPI_ERR_NO_MEM, "no {} bytes for the window: {}", bytes,
                      std::string(base::failure_text()));
  state_of(window).allocated = at;
  return {};
}

Result allocate_apart(Communicator& communicator, int flavor, Member mine, const Info* info,
                      const memory::AllocationHints& hints, void*& base, Window*& made) {
  Window* window = nullptr;
  NEAR_TRY(make(communicator, flavor, window));
  Result result = make_own_memory(*window, static_cast<std::size_t>(mine.size), hints);
  void* at = state_of(*window).allocated;
  mine.address = reinterpret_cast<std::uint64_t>(at);
  mine.shared = at != nullptr ? shared_offset(at) : 0;
  if (result.ok()) expose(*window, mine);
  NEAR_TRY(agree(*window, mine, result));
  NEAR_TRY(finish(*window, info, at));
  base = at;
  made = window;
  return {};
}

/// Allocates all parts one after another, in the arena of rank 0. Each page is placed by the process that
/// owns its first byte.
Result allocate_in_a_row(Communicator& communicator, Member mine, const Info* info,
                         const memory::AllocationHints& hints, void*& base, Window*& made) {
  Window* window = nullptr;
  NEAR_TRY(make(communicator, MPI_WIN_FLAVOR_SHARED, window));
  State& state = state_of(*window);
  NEAR_TRY(agree(*window, mine, make_shared_part(*window))); // now every process knows all sizes
  std::uint64_t before = 0, all = 0;
  bool fits = true;
  for (std::size_t rank = 0; rank < state.members.size(); ++rank) {
    if (static_cast<int>(rank) == state.rank) before = all;
    fits = fits && base::checked_add(all, static_cast<std::uint64_t>(state.members[rank].size), all);
  }
  Result result =
      fits ? Result()
           : base::fail(MPI_ERR_SIZE, "the parts of the window together have more bytes than 64 bits count");
  if (result.ok() && state.rank == 0 && all != 0) {
    state.allocated = memory::reserve_shareable(all, hints);
    if (state.allocated == nullptr)
      result = base::fail(MPI_ERR_NO_MEM, "no {} bytes in a row for the window: {}", all,
                          std::string(base::failure_text()));
  }
  // The others need the row's address. The first member holds it until all parts are known.
  Member told = mine;
  told.shared = state.allocated != nullptr ? shared_offset(state.allocated) : 0;
  NEAR_TRY(agree(*window, told, result));
  std::byte* row = state.members[0].here;

  // The row begins on a page.
  const std::uint64_t page = os::page_size(), bytes = static_cast<std::uint64_t>(mine.size);
  const std::uint64_t first = base::round_up(before, page), behind = base::round_up(before + bytes, page);
  result = bytes == 0 || first >= behind
               ? Result()
               : memory::place_shareable(row + first, behind - first, hints, segment::BlockUse::window);
  if (!result.ok()) {
    result = base::fail(MPI_ERR_NO_MEM, "no {} bytes for the window: {}", bytes,
                        std::string(base::failure_text()));
  } else if (bytes != 0 && first < behind) {
    state.placed = row + first;
    state.placed_bytes = behind - first;
  }
  if (all != 0) {
    mine.shared = state.members[0].shared + before;
    mine.address = reinterpret_cast<std::uint64_t>(row + before);
  }
  NEAR_TRY(agree(*window, mine, result));
  base = reinterpret_cast<void*>(mine.address);
  NEAR_TRY(finish(*window, info, base));
  made = window;
  return {};
}

} // namespace

Result allocate(Communicator& communicator, MPI_Aint size, MPI_Aint unit, const Info* info,
                const memory::AllocationHints& hints, void*& base, Window*& made) {
  NEAR_TRY(check_intra(communicator));
  NEAR_TRY(check_unit(size, unit));
  return allocate_apart(communicator, MPI_WIN_FLAVOR_ALLOCATE, {.size = size, .unit = unit}, info, hints,
                        base, made);
}

Result allocate_shared(Communicator& communicator, MPI_Aint size, MPI_Aint unit, const Info* info,
                       const memory::AllocationHints& hints, void*& base, Window*& made) {
  NEAR_TRY(check_intra(communicator));
  NEAR_TRY(check_unit(size, unit));
  if (!is_on_one_machine(communicator))
    return base::fail(MPI_ERR_RMA_SHARED,
                      "the processes of {} are on several machines; "
                      "MPI_Comm_split_type(MPI_COMM_TYPE_SHARED) gives those of each",
                      object::describe(communicator));
  Member mine{.size = size, .unit = unit};
  // Processes may give the hint differently; rank 0's counts.
  std::uint64_t apart = wants_own_pages(info) ? 1 : 0;
  NEAR_TRY(coll::broadcast(comm::byte_buffer(&apart, sizeof apart), 0, communicator));
  if (apart != 0) return allocate_apart(communicator, MPI_WIN_FLAVOR_SHARED, mine, info, hints, base, made);
  return allocate_in_a_row(communicator, mine, info, hints, base, made);
}

} // namespace near::rma
