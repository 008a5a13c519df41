// The neighbourhood collectives: a rank starts to receive from all its sources, then to send to all its destinations,
// and waits for all of that. MPI 5.0, section 8.6. Cost: (s + d) alpha + (bytes in and out) beta, for s sources and d
// destinations.
//
// Two ranks may have several edges between them, and messages between two ranks match in program order. So of the
// messages from one rank to another, the k-th is sent on the k-th of these edges in the sender's list of
// destinations, and received into the k-th in the receiver's list of sources. In a grid, however, what a rank sends
// towards -1 arrives from +1, and the two are the same rank in a periodic dimension of 1 or 2 processes: there a rank
// receives from +1 first, then from -1.
#include "coll/algorithms.h"

namespace near::coll {
namespace {

template <class SendBlock, class ReceiveBlock>
Result exchange(CollectiveGroup& group, const Topology& topology, SendBlock send_block,
                ReceiveBlock receive_block) {
  const int swap = topology.kind == MPI_CART ? 1 : 0;
  const int sources = static_cast<int>(topology.sources.size());
  const int destinations = static_cast<int>(topology.destinations.size());
  // No message is sent for an empty block; the other side knows that it is empty, as the signatures are equal.
  for (int i = 0; i < sources; ++i) {
    const int edge = i ^ swap, from = topology.sources[static_cast<std::size_t>(edge)];
    if (from == MPI_PROC_NULL) continue;
    const Buffer in = receive_block(edge);
    if (in.bytes() != 0) NEAR_TRY(group.start_receive(in, from));
  }
  for (int i = 0; i < destinations; ++i) {
    const int to = topology.destinations[static_cast<std::size_t>(i)];
    if (to == MPI_PROC_NULL) continue;
    const Buffer out = send_block(i);
    if (out.bytes() != 0) NEAR_TRY(group.start_send(out, to));
  }
  return group.finish_all();
}

} // namespace

Result neighbor_allgather_linear(CollectiveGroup& group, const Call& call) {
  return exchange(
      group, *call.topology, [&](int) { return call.send; }, [&](int i) { return block(call.receive, i); });
}

Result neighbor_allgatherv_linear(CollectiveGroup& group, const Call& call) {
  return exchange(
      group, *call.topology, [&](int) { return call.send; },
      [&](int i) { return call.receive_blocks.at(i); });
}

Result neighbor_alltoall_linear(CollectiveGroup& group, const Call& call) {
  return exchange(
      group, *call.topology, [&](int i) { return block(call.send, i); },
      [&](int i) { return block(call.receive, i); });
}

Result neighbor_alltoallv_linear(CollectiveGroup& group, const Call& call) {
  return exchange(
      group, *call.topology, [&](int i) { return call.send_blocks.at(i); },
      [&](int i) { return call.receive_blocks.at(i); });
}

} // namespace near::coll
