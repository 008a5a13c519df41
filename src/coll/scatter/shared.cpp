// Scatter through the root's slices, each of which holds a chunk for every rank. Cost: p n beta at the root, 2 n beta at
// each other rank.
#include "coll/shared/exchange.h"

namespace near::coll {

Result scatter_shared(CollectiveGroup& group, const Call& call) {
  const int size = group.size();
  const Chunks chunks = chunks_of(call.receive.bytes(), 1, size);
  Exchange exchange(group, call, chunks.count);
  const bool is_root = exchange.rank() == call.root;
  if (!is_root) exchange.only_read();
  for (Number index = 0; index < chunks.count; ++index) {
    const MPI_Count bytes = chunks.bytes(index), offset = chunks.offset(index),
                    stride = part_stride(bytes, size);
    if (is_root) {
      NEAR_TRY(exchange.publish(stride * size, [&](std::byte* at) {
        for (int to = 0; to < size; ++to)
          if (to != call.root) datatype::pack(block(call.send, to), offset, at + to * stride, bytes);
      }));
    } else {
      const std::byte* data;
      NEAR_TRY(exchange.wait(call.root, index, data));
      datatype::unpack(call.receive, offset, data + exchange.rank() * stride, bytes);
    }
    exchange.finish(index);
  }
  return is_root ? group.copy(block(call.send, call.root), call.receive) : Result{};
}

} // namespace near::coll
