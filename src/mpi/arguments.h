// Argument handling for the entry points for groups, communicators and topologies.
#pragma once

#include "base/result.h"
#include "object/communicator.h"

#include <cstddef>
#include <span>

namespace near::mpi::impl {

/// The `n` numbers at `values`. The caller has checked that `n` is not negative.
inline std::span<const int> as_span(int n, const int* values) {
  return {values, static_cast<std::size_t>(n)};
}

/// Fails with MPI_ERR_COMM on intercommunicators.
inline base::Result check_is_intra(const object::Communicator& communicator) {
  if (!communicator.is_inter()) return {};
  return base::fail(MPI_ERR_COMM, "{} is an intercommunicator", object::describe(communicator));
}

} // namespace near::mpi::impl
