// All-to-all through slices: each chunk of a rank holds a part for every other one. Cost: 2 p n beta, and one wait for
// each chunk. In place too, since a chunk of the buffer is published before it is overwritten.
#include "coll/shared/exchange.h"

namespace near::coll {

Result alltoall_shared(CollectiveGroup& group, const Call& call) {
  const int size = group.size(), rank = group.rank();
  const Chunks chunks = chunks_of(call.receive.bytes(), 1, size);
  Exchange exchange(group, call, chunks.count);
  auto stride = [=](Number index) { return part_stride(chunks.bytes(index), size); };
  auto fill = [=, all = call.send](Number index, std::byte* at) {
    for (int to = 0; to < size; ++to)
      if (to != rank)
        datatype::pack(block(all, to), chunks.offset(index), at + to * stride(index), chunks.bytes(index));
  };
  auto take = [&](Number index) -> Result {
    for (int step = 1; step < size; ++step) {
      const int from = (rank + step) % size;
      const Buffer to = block(call.receive, from);
      NEAR_TRY(exchange.read(from, index, [=](const std::byte* data) {
        datatype::unpack(to, chunks.offset(index), data + rank * stride(index), chunks.bytes(index));
      }));
    }
    return {};
  };
  NEAR_TRY(
      exchange_all(exchange, chunks.count, [&](Number index) { return stride(index) * size; }, fill, take));
  return group.copy(block(call.send, rank), block(call.receive, rank));
}

} // namespace near::coll
