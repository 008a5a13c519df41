// The blocking collectives, as the glue and communicator creation call them. Arguments are valid already;
// MPI_IN_PLACE arrives as it is (address MPI_IN_PLACE). Source: MPI 5.0, chapter 6.
#pragma once

#include "coll/team.h"

namespace near::coll {

Result barrier(Communicator& communicator);
Result broadcast(const View& buffer, int root, Communicator& communicator);
/// `send.address` or `receive` may be MPI_IN_PLACE as the standard allows; count and type are `send`'s.
Result reduce(const void* send, void* receive, MPI_Count count, Datatype& type, const Operation& operation,
              int root, Communicator& communicator);
Result all_reduce(const void* send, void* receive, MPI_Count count, Datatype& type,
                  const Operation& operation, Communicator& communicator);
Result reduce_scatter_block(const void* send, void* receive, MPI_Count count, Datatype& type,
                            const Operation& operation, Communicator& communicator);
Result reduce_scatter(const void* send, void* receive, Counts counts, Datatype& type,
                      const Operation& operation, Communicator& communicator);
Result scan(const void* send, void* receive, MPI_Count count, Datatype& type, const Operation& operation,
            Communicator& communicator);
Result exclusive_scan(const void* send, void* receive, MPI_Count count, Datatype& type,
                      const Operation& operation, Communicator& communicator);
Result gather(const View& send, const View& receive, int root, Communicator& communicator);
Result gather_varying(const View& send, void* receive, Counts counts, Counts displacements, Datatype* type,
                      int root, Communicator& communicator);
Result scatter(const View& send, const View& receive, int root, Communicator& communicator);
Result scatter_varying(const void* send, Counts counts, Counts displacements, Datatype* type,
                       const View& receive, int root, Communicator& communicator);
Result all_gather(const View& send, const View& receive, Communicator& communicator);
Result all_gather_varying(const View& send, void* receive, Counts counts, Counts displacements,
                          Datatype& type, Communicator& communicator);
Result all_to_all(const View& send, const View& receive, Communicator& communicator);
/// One side of an all-to-all with counts, displacements (elements; bytes for the w form) and a type or types.
struct VectorSide {
  const void* address = nullptr;
  Counts counts, displacements;
  Datatype* type = nullptr;         ///< the v form
  Datatype* const* types = nullptr; ///< the w form
};
Result all_to_all_varying(const VectorSide& send, const VectorSide& receive, Communicator& communicator);

} // namespace near::coll
