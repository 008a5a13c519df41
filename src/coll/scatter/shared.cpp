// Scatter through the root's slices, each of which holds a chunk for every rank. Cost: p n beta at the root, 2 n beta at
// each other rank.
//
// Blocks of different sizes (scatterv) are published together, but those that are too long are messages.
#include "coll/shared/parts.h"

namespace near::coll {
namespace {

/// As in scatter/linear.cpp.
constexpr std::size_t root_sends = 4;

} // namespace

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
      NEAR_TRY(exchange.publish(stride * size, [=, all = call.send, root = call.root](const Room& room) {
        for (int to = 0; to < size; ++to)
          if (to != root) room.pack(to * stride, block(all, to), offset, bytes);
      }));
    } else {
      const MPI_Count mine = exchange.rank() * stride;
      NEAR_TRY(exchange.read(call.root, index, bytes, [=, to = call.receive](const std::byte* data) {
        datatype::unpack_arrived(to, offset, data + mine, bytes);
      }));
    }
    exchange.finish(index);
  }
  return is_root ? group.copy(block(call.send, call.root), call.receive) : Result{};
}

Result scatterv_shared(CollectiveGroup& group, const Call& call) {
  Exchange exchange(group, call, 1);
  exchange.call().owe_more();
  const int size = exchange.size(), rank = exchange.rank();
  if (rank != call.root) {
    exchange.only_read();
    ArrivingParts blocks(group, exchange);
    NEAR_TRY(blocks.read(call.root, rank, call.receive));
    exchange.finish(0);
    NEAR_TRY(blocks.start_receive(call.root, call.receive));
    return blocks.finish();
  }
  const Buffer none{nullptr, 0, &byte_type()}; // for this rank itself
  std::vector<Buffer> parts;
  for (int to = 0; to < size; ++to) parts.push_back(to == rank ? none : call.send_blocks.at(to));
  const PublishedParts all(parts);
  NEAR_TRY(exchange.publish(all.bytes(), [all](const Room& room) { all.fill(room); }));
  exchange.finish(0);
  for (int step = 1; step < size; ++step) {
    const int to = (rank + step) % size;
    const Buffer& part = parts[static_cast<std::size_t>(to)];
    if (!is_message(part.bytes(), size)) continue;
    NEAR_TRY(group.start_send(part, to));
    NEAR_TRY(group.finish_until(root_sends - 1));
  }
  NEAR_TRY(group.copy(call.send_blocks.at(rank), call.receive));
  return group.finish_all();
}

} // namespace near::coll
