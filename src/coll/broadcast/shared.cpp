// Broadcast through the root's slices: the root copies chunk after chunk into them, and all others copy them out. Cost:
// 2 n beta, and one wait for each chunk that has not been written yet.
#include "coll/shared/exchange.h"

namespace near::coll {

Result broadcast_shared(CollectiveGroup& group, const Call& call) {
  const Chunks chunks = chunks_of(call.receive.bytes());
  Exchange exchange(group, call, chunks.count);
  const bool is_root = exchange.rank() == call.root;
  if (!is_root) exchange.only_read();
  for (Number index = 0; index < chunks.count; ++index) {
    const MPI_Count bytes = chunks.bytes(index), offset = chunks.offset(index);
    const Buffer buffer = call.receive;
    if (is_root)
      NEAR_TRY(exchange.publish(bytes, [=](std::byte* at) { datatype::pack(buffer, offset, at, bytes); }));
    else
      NEAR_TRY(exchange.read(call.root, index,
                             [=](const std::byte* data) { datatype::unpack(buffer, offset, data, bytes); }));
    exchange.finish(index);
  }
  return {};
}

} // namespace near::coll
