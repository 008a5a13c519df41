// Attaching memory to dynamic windows, and detaching it. Source: MPI 5.0, section 12.2.4.
#include "rma/creation.h"

namespace near::rma {

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

} // namespace near::rma
