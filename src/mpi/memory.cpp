// Memory for messages, and addresses. Source: MPI 5.0, sections 9.2 and 5.1.5.
#include "os/memory.h"
#include "base/log.h"
#include "mpi/impl.h"
#include "object/memory_hints.h"
#include "transport/memory.h"
#include "transport/transport.h"

#include <algorithm>
#include <set>

namespace near::mpi::impl {

namespace {

/// A remark on an info object, once of each kind: programs allocate in loops.
void remark(const std::string& kind, const std::string& text) {
  static std::set<std::string> said;
  constexpr std::size_t most = 64;
  if (said.size() < most && said.insert(kind).second)
    base::log(base::Level::warning, "MPI_Alloc_mem: {}", text);
}

/// The node that the hints ask for; -1: none in particular.
int node_from(const object::MemoryHints& hints) {
  if (hints.node >= 0) {
    if (os::has_node(hints.node)) return hints.node;
    remark("no node", base::format("near_memory_node={}: this machine has no such node", hints.node));
  }
  if (hints.node >= 0 || hints.tier == segment::Tier::count) return -1;
  auto nearest = transport::nearest_nodes().of;
  int node = nearest[static_cast<std::size_t>(hints.tier)];
  bool any =
      std::any_of(nearest.begin(), nearest.end(), [](int its) { return its != segment::NearestNodes::none; });
  if (node == segment::NearestNodes::none)
    remark("no tier",
           base::format("near_memory_tier={}: {}; ordinary memory is used", object::tier_name(hints.tier),
                        any ? "mpiexec has found no such memory on this machine (`near info` shows what "
                              "there is)"
                            : "only mpiexec tells which memory is of which kind"));
  return node;
}

/// What the memory should be; what cannot be is remarked.
transport::MemoryWish wish_from(const object::MemoryHints& hints) {
  transport::MemoryWish wish;
  wish.alignment = hints.alignment;
  wish.node = node_from(hints);
  std::size_t small = os::page_size(), huge = os::huge_page_size();
  if (hints.page_bytes == 0 || hints.page_bytes == small || hints.page_bytes == huge)
    wish.page_bytes = hints.page_bytes;
  else
    remark("page size",
           base::format("near_page_size={}: pages have {} or {} bytes here", hints.page_bytes, small, huge));
  return wish;
}

} // namespace

Result Alloc_mem(MPI_Aint size, Info* info, void* baseptr) {
  object::MemoryHints hints;
  NEAR_TRY(object::read_memory_hints(info, hints));
  for (const auto& text : hints.remarks) remark(text, text);
  *static_cast<void**>(baseptr) = nullptr;
  if (size == 0) return {};
  auto bytes = static_cast<std::size_t>(size);
  transport::MemoryWish wish = wish_from(hints);
  void* made = transport::allocate_shareable(bytes, wish);
  if (made == nullptr)
    return base::fail(MPI_ERR_NO_MEM, "no {} bytes: {}", size, std::string(base::failure_text()));
  if (wish.node >= 0 || wish.page_bytes != 0)
    if (auto text = transport::shortfall(made, bytes, wish); !text.empty())
      remark(wish.node >= 0 ? "shortfall of a node" : "shortfall of pages", text);
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
