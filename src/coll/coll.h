// The collectives, as the bindings and communicator creation call them. The caller has checked the arguments.
// Source: MPI 5.0, chapters 6 and 8.
//
// A `..._call` function turns the standard's arguments into a Call (MPI_IN_PLACE is passed on as
// a buffer's address); run, start and prepare carry it out.
#pragma once

#include "coll/collective_group.h"

namespace near::coll {

/// Does the call, blocking.
Result run(const Call& call, Communicator& communicator);
/// Starts the call, nonblocking: `made` is active and completes by progress. The buffers stay in
/// use until then; the count, displacement and type arrays that the Call names are read before the
/// function returns.
Result start(const Call& call, Communicator& communicator, p2p::Request*& made);
/// Prepares the call, persistent: `made` is inactive.
Result prepare(const Call& call, Communicator& communicator, p2p::Request*& made);

Call barrier_call();
Call broadcast_call(const Buffer& buffer, int root);
/// `send` or `receive` may be MPI_IN_PLACE as the standard allows; count and type are common.
Call reduce_call(const void* send, void* receive, MPI_Count count, Datatype& type, const Operation& operation,
                 int root, const Communicator& communicator);
Call allreduce_call(const void* send, void* receive, MPI_Count count, Datatype& type,
                    const Operation& operation);
Call scan_call(const void* send, void* receive, MPI_Count count, Datatype& type, const Operation& operation);
Call exscan_call(const void* send, void* receive, MPI_Count count, Datatype& type,
                 const Operation& operation);
Call reduce_scatter_block_call(const void* send, void* receive, MPI_Count count, Datatype& type,
                               const Operation& operation);
Call reduce_scatter_call(const void* send, void* receive, Counts counts, Datatype& type,
                         const Operation& operation);
/// Arguments that are significant only at the root may have any value elsewhere; their types may be null.
Call gather_call(const Buffer& send, const Buffer& receive, int root, const Communicator& communicator);
Call gatherv_call(const Buffer& send, const Blocks& receive, int root, const Communicator& communicator);
Call scatter_call(const Buffer& send, const Buffer& receive, int root, const Communicator& communicator);
Call scatterv_call(const Blocks& send, const Buffer& receive, int root, const Communicator& communicator);
Call allgather_call(const Buffer& send, const Buffer& receive, const Communicator& communicator);
Call allgatherv_call(const Buffer& send, const Blocks& receive, const Communicator& communicator);
Call alltoall_call(const Buffer& send, const Buffer& receive);
/// The v form of alltoall; with `types` in the blocks, the w form.
Call alltoallv_call(const Blocks& send, const Blocks& receive);

/// Each rank exchanges blocks with its neighbours in `topology`, which is the communicator's and is used only while the
/// call is executed or recorded.
Call neighbor_allgather_call(const Buffer& send, const Buffer& receive, const Topology& topology);
Call neighbor_allgatherv_call(const Buffer& send, const Blocks& receive, const Topology& topology);
Call neighbor_alltoall_call(const Buffer& send, const Buffer& receive, const Topology& topology);
Call neighbor_alltoallv_call(const Blocks& send, const Blocks& receive, const Topology& topology);
/// The blocks have `types`.
Call neighbor_alltoallw_call(const Blocks& send, const Blocks& receive, const Topology& topology);

// The blocking forms that communicator creation uses, by name.
inline Result barrier(Communicator& communicator) { return run(barrier_call(), communicator); }
inline Result broadcast(const Buffer& buffer, int root, Communicator& communicator) {
  return run(broadcast_call(buffer, root), communicator);
}
inline Result gather(const Buffer& send, const Buffer& receive, int root, Communicator& communicator) {
  return run(gather_call(send, receive, root, communicator), communicator);
}
inline Result scatter(const Buffer& send, const Buffer& receive, int root, Communicator& communicator) {
  return run(scatter_call(send, receive, root, communicator), communicator);
}
inline Result all_gather(const Buffer& send, const Buffer& receive, Communicator& communicator) {
  return run(allgather_call(send, receive, communicator), communicator);
}
inline Result all_to_all(const Buffer& send, const Buffer& receive, Communicator& communicator) {
  return run(alltoall_call(send, receive), communicator);
}
using VectorSide = Blocks;
inline Result all_to_all_varying(const Blocks& send, const Blocks& receive, Communicator& communicator) {
  return run(alltoallv_call(send, receive), communicator);
}

} // namespace near::coll
