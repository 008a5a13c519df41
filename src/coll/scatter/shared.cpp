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
      NEAR_TRY(exchange.publish(stride * size, [=, all = call.send, root = call.root](std::byte* at) {
        for (int to = 0; to < size; ++to)
          if (to != root) datatype::pack(block(all, to), offset, at + to * stride, bytes);
      }));
    } else {
      const MPI_Count mine = exchange.rank() * stride;
      NEAR_TRY(exchange.read(call.root, index, [=, to = call.receive](const std::byte* data) {
        datatype::unpack(to, offset, data + mine, bytes);
      }));
    }
    exchange.finish(index);
  }
  return is_root ? group.copy(block(call.send, call.root), call.receive) : Result{};
}

} // namespace near::coll
