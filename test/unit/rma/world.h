// A communicator for tests of windows, in processes that test::run_ranks starts.
#pragma once

#include "../shm/ranks.h"
#include "datatype/operation.h"
#include "p2p/p2p.h"

#include <cstdint>
#include <vector>

namespace near::test {

/// Returns MPI_COMM_WORLD of `size` such processes, in that of `rank`.
inline object::Communicator& world(std::uint32_t rank, std::uint32_t size) {
  p2p::attach();
  object::set_own_process({0, rank});
  require(datatype::make_predefined_operations().ok(), "operations");
  std::vector<object::ProcessId> members(size);
  for (std::uint32_t i = 0; i < size; ++i) members[i].rank = i;
  require(object::make_predefined_communicators(object::make_group(members)).ok(), "world");
  return *object::world();
}

} // namespace near::test
