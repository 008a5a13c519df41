// Memory for messages, and addresses. Source: MPI 5.0, sections 9.2 and 5.1.5.
#include "mpi/memory.h"

#include "base/log.h"
#include "mpi/impl.h"
#include "os/memory.h"
#include "transport/transport.h"

#include <algorithm>
#include <set>

namespace near::mpi {

namespace {

/// A warning about an info object, at most once for each kind, because programs allocate in loops.
void remark(const char* function, const std::string& kind, const std::string& text) {
  static std::set<std::string> said;
  constexpr std::size_t most = 64;
  if (said.size() < most && said.insert(kind).second)
    base::log(base::Level::warning, "{}: {}", function, text);
}

/// The node requested by the hints; -1 if none.
int node_from(const char* function, const object::MemoryHints& hints) {
  if (hints.node >= 0) {
    if (os::has_node(hints.node)) return hints.node;
    remark(function, "no node",
           base::format("near_memory_node={}: this machine has no such node", hints.node));
  }
  if (hints.node >= 0 || hints.tier == segment::Tier::count) return -1;
  auto nearest = transport::nearest_nodes().of;
  int node = nearest[static_cast<std::size_t>(hints.tier)];
  bool any =
      std::any_of(nearest.begin(), nearest.end(), [](int its) { return its != segment::NearestNodes::none; });
  if (node == segment::NearestNodes::none)
    remark(function, "no tier",
           base::format("near_memory_tier={}: {}; ordinary memory is used", object::tier_name(hints.tier),
                        any ? "mpiexec has found no such memory on this machine (`near info` shows what "
                              "there is)"
                            : "only mpiexec tells which memory is of which kind"));
  return node;
}

} // namespace

object::Result read_allocation_hints(const char* function, const object::Info* info,
                                     memory::AllocationHints& allocation) {
  object::MemoryHints hints;
  NEAR_TRY(object::read_memory_hints(info, hints));
  for (const auto& text : hints.remarks) remark(function, text, text);
  allocation = {};
  allocation.alignment = hints.alignment;
  allocation.node = node_from(function, hints);
  std::size_t small = os::page_size(), huge = os::huge_page_size();
  if (hints.page_bytes == 0 || hints.page_bytes == small || hints.page_bytes == huge)
    allocation.page_bytes = hints.page_bytes;
  else
    remark(function, "page size",
           base::format("near_page_size={}: pages have {} or {} bytes here", hints.page_bytes, small, huge));
  return {};
}

void remark_shortfall(const char* function, const void* made, std::size_t bytes,
                      const memory::AllocationHints& allocation) {
  if (allocation.node < 0 && allocation.page_bytes == 0) return;
  if (auto text = memory::shortfall(made, bytes, allocation); !text.empty())
    remark(function, allocation.node >= 0 ? "shortfall of a node" : "shortfall of pages", text);
}

namespace impl {

Result Alloc_mem(MPI_Aint size, Info* info, void* baseptr) {
  memory::AllocationHints allocation;
  NEAR_TRY(read_allocation_hints("MPI_Alloc_mem", info, allocation));
  *static_cast<void**>(baseptr) = nullptr;
  if (size == 0) return {};
  auto bytes = static_cast<std::size_t>(size);
  void* made = memory::allocate_shareable(bytes, allocation);
  if (made == nullptr)
    return base::fail(MPI_ERR_NO_MEM, "cannot allocate {} bytes: {}", size,
                      std::string(base::failure_text()));
  remark_shortfall("MPI_Alloc_mem", made, bytes, allocation);
  *static_cast<void**>(baseptr) = made;
  return {};
}

Result Free_mem(void* base) {
  if (base == nullptr || memory::free_shareable(base)) return {};
  return base::fail(MPI_ERR_BASE, "base is {}, which MPI_Alloc_mem did not return (or is freed already)",
                    base);
}

Result Get_address(const void* location, MPI_Aint* address) {
  *address = reinterpret_cast<MPI_Aint>(location);
  return {};
}

// Unsigned arithmetic, since signed overflow is undefined.
MPI_Aint Aint_add(MPI_Aint base, MPI_Aint disp) {
  return static_cast<MPI_Aint>(static_cast<std::uintptr_t>(base) + static_cast<std::uintptr_t>(disp));
}

MPI_Aint Aint_diff(MPI_Aint addr1, MPI_Aint addr2) {
  return static_cast<MPI_Aint>(static_cast<std::uintptr_t>(addr1) - static_cast<std::uintptr_t>(addr2));
}

} // namespace impl
} // namespace near::mpi
