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
    if (is_root) {
      NEAR_TRY(
          exchange.publish(bytes, [&](std::byte* at) { datatype::pack(call.receive, offset, at, bytes); }));
    } else {
      const std::byte* data;
      NEAR_TRY(exchange.wait(call.root, index, data));
      datatype::unpack(call.receive, offset, data, bytes);
    }
    exchange.finish(index);
  }
  return {};
}

} // namespace near::coll
