// Memory for messages, and addresses. Source: MPI 5.0, sections 9.2 and 5.1.5.
#include "base/checked.h"
#include "mpi/impl.h"
#include "transport/transport.h"

#include <charconv>

namespace near::mpi::impl {

namespace {

/// The info key mpi_minimum_memory_alignment; a cache line without it.
Result alignment_from(const Info* info, std::size_t& alignment) {
  alignment = 64;
  const std::string* wanted = info != nullptr ? info->find("mpi_minimum_memory_alignment") : nullptr;
  if (wanted == nullptr) return {};
  std::size_t value = 0;
  auto [end, error] = std::from_chars(wanted->data(), wanted->data() + wanted->size(), value);
  if (error != std::errc() || end != wanted->data() + wanted->size() || !base::is_power_of_two(value))
    return base::fail(MPI_ERR_INFO_VALUE,
                      "mpi_minimum_memory_alignment is \"{}\", but must be a power of two", *wanted);
  alignment = std::max(alignment, value);
  return {};
}

} // namespace

Result Alloc_mem(MPI_Aint size, Info* info, void* baseptr) {
  std::size_t alignment = 0;
  NEAR_TRY(alignment_from(info, alignment));
  void* made = nullptr;
  if (size > 0) {
    made = transport::allocate_shareable(static_cast<std::size_t>(size), alignment);
    if (made == nullptr)
      return base::fail(MPI_ERR_NO_MEM, "no {} bytes: {}", size, std::string(base::failure_text()));
  }
  *static_cast<void**>(baseptr) = made;
  return {};
}

Result Free_mem(void* base) {
  if (base == nullptr || transport::free_shareable(base)) return {};
  return base::fail(MPI_ERR_BASE, "base is {}, which MPI_Alloc_mem did not return (or is freed already)",
                    base);
}

Result Get_address(const void* location, MPI_Aint* address) {
  *address = reinterpret_cast<MPI_Aint>(location);
  return {};
}

// Through unsigned numbers, where overflow is defined.
MPI_Aint Aint_add(MPI_Aint base, MPI_Aint disp) {
  return static_cast<MPI_Aint>(static_cast<std::uintptr_t>(base) + static_cast<std::uintptr_t>(disp));
}

MPI_Aint Aint_diff(MPI_Aint addr1, MPI_Aint addr2) {
  return static_cast<MPI_Aint>(static_cast<std::uintptr_t>(addr1) - static_cast<std::uintptr_t>(addr2));
}

} // namespace near::mpi::impl
