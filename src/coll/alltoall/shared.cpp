// All-to-all through slices: each chunk of a rank holds a part for every other one. Cost: 2 p n beta, and one wait for
// each chunk. In place too, since a chunk of the buffer is published before it is overwritten.
//
// Blocks of different sizes (alltoallv, alltoallw) are published together; those that are too long are messages, after
// that and in rounds, as in pairwise.cpp.
#include "coll/shared/parts.h"

namespace near::coll {

Result alltoall_shared(CollectiveGroup& group, const Call& call) {
  const int size = group.size(), rank = group.rank();
  const Chunks chunks = chunks_of(call.receive.bytes(), 1, size);
  Exchange exchange(group, call, chunks.count);
  auto stride = [=](Number index) { return part_stride(chunks.bytes(index), size); };
  auto fill = [=, all = call.send](Number index, const Room& room) {
    for (int to = 0; to < size; ++to)
      if (to != rank)
        room.pack(to * stride(index), block(all, to), chunks.offset(index), chunks.bytes(index));
  };
  auto take = [&](Number index) -> Result {
    for (int step = 1; step < size; ++step) {
      const int from = (rank + step) % size;
      const Buffer to = block(call.receive, from);
      NEAR_TRY(exchange.read(from, index, chunks.bytes(index), [=](const std::byte* data) {
        datatype::unpack_arrived(to, chunks.offset(index), data + rank * stride(index), chunks.bytes(index));
      }));
    }
    return {};
  };
  NEAR_TRY(
      exchange_all(exchange, chunks.count, [&](Number index) { return stride(index) * size; }, fill, take));
  return group.copy(block(call.send, rank), block(call.receive, rank));
}

Result alltoallv_shared(CollectiveGroup& group, const Call& call) {
  Exchange exchange(group, call, 1);
  exchange.call().owe_more();
  const int size = exchange.size(), rank = exchange.rank();
  const Buffer none{nullptr, 0, &byte_type()}; // for this rank itself
  std::vector<Buffer> parts;
  for (int to = 0; to < size; ++to) parts.push_back(to == rank ? none : call.send_blocks.at(to));
  const PublishedParts own(std::move(parts));
  NEAR_TRY(exchange.publish(own.bytes(), [own](const Room& room) { own.fill(room); }));
  NEAR_TRY(group.copy(call.send_blocks.at(rank), call.receive_blocks.at(rank)));
  ArrivingParts blocks(group, exchange);
  for (int step = 1; step < size; ++step) {
    const int from = (rank + step) % size;
    NEAR_TRY(blocks.read(from, rank, call.receive_blocks.at(from)));
  }
  exchange.finish(0);
  for (int round = 1; round < size; ++round) {
    const int to = (rank + round) % size, from = (rank - round + size) % size;
    NEAR_TRY(blocks.start_receive(from, call.receive_blocks.at(from)));
    const Buffer out = call.send_blocks.at(to);
    if (is_message(out.bytes(), size)) NEAR_TRY(group.start_send(out, to));
    blocks.finish_until(0);
  }
  return blocks.finish();
}

} // namespace near::coll
