// Windows: creation, synchronisation and queries. Source: MPI 5.0, sections 12.2, 12.5 and 12.8.
#include "base/checked.h"
#include "mpi/impl.h"
#include "mpi/memory.h"
#include "mpi/name.h"
#include "os/memory.h"
#include "rma/rma.h"

namespace near::mpi::impl {

namespace {

using Allocate = decltype(rma::allocate);

Result allocate_by(Allocate* allocate, const char* function, MPI_Aint size, MPI_Count disp_unit, Info* info,
                   Communicator& comm, void* baseptr, Window*& win) {
  memory::AllocationHints allocation;
  NEAR_TRY(read_allocation_hints(function, info, allocation));
  void* base = nullptr;
  NEAR_TRY(allocate(comm, size, disp_unit, info, allocation, base, win));
  // If parts are adjacent, a page belongs to the process that owns its first byte.
  auto begin = reinterpret_cast<std::uintptr_t>(base), end = begin + static_cast<std::uintptr_t>(size);
  if (auto first = base::round_up(begin, os::page_size()); first < end)
    remark_shortfall(function, reinterpret_cast<void*>(first), end - first, allocation);
  *static_cast<void**>(baseptr) = base;
  return {};
}

} // namespace

Result Win_create(void* base, MPI_Aint size, MPI_Count disp_unit, Info* info, Communicator& comm,
                  Window*& win) {
  return rma::create(comm, base, size, disp_unit, info, win);
}

Result Win_allocate(MPI_Aint size, MPI_Count disp_unit, Info* info, Communicator& comm, void* baseptr,
                    Window*& win) {
  return allocate_by(rma::allocate, "MPI_Win_allocate", size, disp_unit, info, comm, baseptr, win);
}

Result Win_allocate_shared(MPI_Aint size, MPI_Count disp_unit, Info* info, Communicator& comm, void* baseptr,
                           Window*& win) {
  return allocate_by(rma::allocate_shared, "MPI_Win_allocate_shared", size, disp_unit, info, comm, baseptr,
                     win);
}

Result Win_create_dynamic(Info* info, Communicator& comm, Window*& win) {
  return rma::create_dynamic(comm, info, win);
}

Result Win_attach(Window& win, void* base, MPI_Aint size) { return rma::attach(win, base, size); }

Result Win_detach(Window& win, const void* base) { return rma::detach(win, base); }

Result Win_free(Window& win) { return rma::free_window(win); }

Result Win_shared_query(Window& win, int rank, MPI_Aint* size, MPI_Count& disp_unit, void* baseptr) {
  rma::Part part;
  NEAR_TRY(rma::find_part(win, rank, part));
  *size = part.size;
  disp_unit = part.unit;
  *static_cast<void**>(baseptr) = part.base;
  return {};
}

Result Win_get_group(Window& win, Group*& group) {
  group = object::make_group(win.communicator->group->members);
  if (group == nullptr) return base::fail(MPI_ERR_NO_MEM, "no memory or no handle for another group");
  return {};
}

Result Win_get_name(Window* win, char* win_name, int* resultlen) {
  give_name(win != nullptr ? win->name : "MPI_WIN_NULL", win_name, resultlen);
  return {};
}

Result Win_set_name(Window& win, const char* win_name) {
  keep_name(win.name, win_name);
  return {};
}

Result Win_get_info(Window& win, Info*& info_used) {
  info_used = rma::hints_in_force(win);
  if (info_used == nullptr) return base::fail(MPI_ERR_NO_MEM, "no memory or no handle for another info");
  return {};
}

Result Win_set_info(Window& win, Info* info) {
  return info != nullptr ? rma::apply_hints(win, *info) : Result();
}

Result Win_fence(int assertion, Window& win) { return rma::fence(assertion, win); }

Result Win_start(Group& group, int assertion, Window& win) { return rma::start(group, assertion, win); }

Result Win_complete(Window& win) { return rma::complete(win); }

Result Win_post(Group& group, int assertion, Window& win) { return rma::post(group, assertion, win); }

Result Win_wait(Window& win) { return rma::wait(win); }

Result Win_test(Window& win, int* flag) {
  bool over = false;
  NEAR_TRY(rma::test(win, over));
  *flag = over ? 1 : 0;
  return {};
}

Result Win_lock(int lock_type, int rank, int assertion, Window& win) {
  return rma::lock(lock_type, rank, assertion, win);
}

Result Win_unlock(int rank, Window& win) { return rma::unlock(rank, win); }

Result Win_lock_all(int assertion, Window& win) { return rma::lock_all(assertion, win); }

Result Win_unlock_all(Window& win) { return rma::unlock_all(win); }

Result Win_flush(int rank, Window& win) { return rma::flush(rank, rma::Where::target, win); }

Result Win_flush_local(int rank, Window& win) { return rma::flush(rank, rma::Where::origin, win); }

Result Win_flush_all(Window& win) { return rma::flush_all(rma::Where::target, win); }

Result Win_flush_local_all(Window& win) { return rma::flush_all(rma::Where::origin, win); }

Result Win_sync(Window& win) { return rma::synchronize(win); }

} // namespace near::mpi::impl
