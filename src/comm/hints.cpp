// Hints of communicators. Source: MPI 5.0, section 7.4.4. They are stored and returned; they do not make
// anything faster yet.
#include "comm/comm.h"
#include "object/memory_hints.h"

namespace near::comm {

namespace {

constexpr std::string_view assertions[] = {
    "mpi_assert_no_any_tag",
    "mpi_assert_no_any_source",
    "mpi_assert_exact_length",
    "mpi_assert_allow_overtaking",
    "mpi_assert_strict_persistent_collective_ordering",
};

/// The program's promise to use only buffers of these kinds. It has no effect, since all kinds are treated
/// alike.
constexpr std::string_view asserted_kinds = "mpi_assert_memory_alloc_kinds";

/// Stores a hint, which is in force from now on.
Result keep(Communicator& communicator, std::string_view name, const std::string& value) {
  if (communicator.info == nullptr) communicator.info = object::make_info();
  if (communicator.info == nullptr) return base::fail(MPI_ERR_NO_MEM, "no memory for a communicator's hints");
  communicator.info->set(name, value);
  return {};
}

} // namespace

Result apply_hints(Communicator& communicator, const Info& info) {
  for (std::string_view name : assertions) {
    const std::string* value = info.find(name);
    if (value == nullptr || (*value != "true" && *value != "false")) continue;
    NEAR_TRY(keep(communicator, name, *value));
  }
  const std::string* kinds = info.find(asserted_kinds);
  return kinds != nullptr && object::are_memory_kinds(*kinds) ? keep(communicator, asserted_kinds, *kinds)
                                                              : Result();
}

Info* hints_in_force(const Communicator& communicator) {
  Info* made = object::make_info();
  if (made == nullptr) return nullptr;
  for (std::string_view name : assertions) {
    const std::string* value = communicator.info != nullptr ? communicator.info->find(name) : nullptr;
    made->set(name, value != nullptr ? std::string_view(*value) : "false");
  }
  made->set("mpi_memory_alloc_kinds", object::memory_kinds);
  if (communicator.info != nullptr)
    if (const std::string* kinds = communicator.info->find(asserted_kinds)) made->set(asserted_kinds, *kinds);
  return made;
}

} // namespace near::comm
