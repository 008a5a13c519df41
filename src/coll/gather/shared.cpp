// Gather through slices: every rank publishes its block chunk by chunk, and the root reads one rank after the other.
// Cost: 2 n beta at each rank, and at the root, p n beta; a rank waits for the root only if its block needs more
// slices than it has.
//
// Blocks of different sizes (gatherv) are published whole, or are messages if they are too long for a slice.
#include "coll/shared/parts.h"

namespace near::coll {
namespace {

/// As in gather/linear.cpp.
constexpr std::size_t root_receives = 8;

} // namespace

Result gather_shared(CollectiveGroup& group, const Call& call) {
  const Chunks chunks = chunks_of(call.send.bytes());
  Exchange exchange(group, call, chunks.count);
  const bool is_root = exchange.rank() == call.root;
  if (is_root) {
    exchange.only_read();
    NEAR_TRY(group.copy(call.send, block(call.receive, call.root)));
  }
  for (Number index = 0; index < chunks.count; ++index) {
    const MPI_Count bytes = chunks.bytes(index), offset = chunks.offset(index);
    if (!is_root)
      NEAR_TRY(exchange.publish(
          bytes, [=, own = call.send](const Room& room) { room.pack(0, own, offset, bytes); }));
    for (int step = 1; is_root && step < exchange.size(); ++step) {
      const int from = (call.root + step) % exchange.size();
      const Buffer to = block(call.receive, from);
      NEAR_TRY(exchange.read(from, index, bytes, [=](const std::byte* data) {
        datatype::unpack_arrived(to, offset, data, bytes);
      }));
    }
    exchange.finish(index);
  }
  return {};
}

Result gatherv_shared(CollectiveGroup& group, const Call& call) {
  Exchange exchange(group, call, 1);
  exchange.call().owe_more();
  const int size = exchange.size();
  if (exchange.rank() != call.root) {
    const PublishedParts own({call.send});
    NEAR_TRY(exchange.publish(own.bytes(), [own](const Room& room) { own.fill(room); }));
    exchange.finish(0);
    if (is_message(call.send.bytes(), 1)) NEAR_TRY(group.start_send(call.send, call.root));
    return group.finish_all();
  }
  exchange.only_read();
  ArrivingParts blocks(group, exchange);
  for (int step = 1; step < size; ++step) {
    const int from = (call.root + step) % size;
    NEAR_TRY(blocks.read_alone(from, 0, call.receive_blocks.at(from)));
  }
  exchange.finish(0);
  for (int step = 1; step < size; ++step) {
    const int from = (call.root + step) % size;
    NEAR_TRY(blocks.start_receive(from, call.receive_blocks.at(from)));
    blocks.finish_until(root_receives - 1);
  }
  NEAR_TRY(group.copy(call.send, call.receive_blocks.at(call.root)));
  return blocks.finish();
}

} // namespace near::coll
