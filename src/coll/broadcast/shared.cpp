// Broadcast through slices. Cost: 2 n beta, and one wait for each chunk that has not been written yet.
#include "coll/shared/exchange.h"

namespace near::coll {
namespace {

/// The root publishes chunk after chunk. Every other rank copies them from `source`, its own or another's slices, and
/// publishes what it has copied if it `relays` it.
Result broadcast_from(Exchange& exchange, const Chunks& chunks, const Call& call, int source, bool relays) {
  const bool is_root = exchange.rank() == call.root;
  if (!is_root && !relays) exchange.only_read();
  for (Number index = 0; index < chunks.count; ++index) {
    const MPI_Count bytes = chunks.bytes(index), offset = chunks.offset(index);
    const Buffer buffer = call.receive;
    auto fill = [=](const Room& room) { room.pack(0, buffer, offset, bytes); };
    if (is_root) {
      NEAR_TRY(exchange.publish(bytes, fill));
    } else {
      NEAR_TRY(exchange.read(source, index, bytes, [=](const std::byte* data) {
        datatype::unpack_arrived(buffer, offset, data, bytes);
      }));
      if (relays) NEAR_TRY(exchange.relay(bytes, fill));
    }
    exchange.finish(index);
  }
  return {};
}

} // namespace

/// All ranks copy from the root's slices.
Result broadcast_shared(CollectiveGroup& group, const Call& call) {
  const Chunks chunks = chunks_of_vector(call.receive.bytes());
  Exchange exchange(group, call, chunks.count);
  return broadcast_from(exchange, chunks, call, call.root, false);
}

/// One rank of each NUMA node copies from the root's slices into its own, from which the others of its node copy: the
/// data crosses to each other node once. Cost: another copy of one chunk.
Result broadcast_shared_by_node(CollectiveGroup& group, const Call& call) {
  const Chunks chunks = chunks_of(call.receive.bytes());
  Exchange exchange(group, call, chunks.count);
  const Area& area = exchange.area();
  const int leader = area.leader_of(area.node_of(exchange.rank()), call.root);
  const bool leads = leader == exchange.rank();
  return broadcast_from(exchange, chunks, call, leads ? call.root : leader, leads);
}

} // namespace near::coll
