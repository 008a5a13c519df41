// Gather through slices: every rank publishes its block chunk by chunk, and the root reads one rank after the other.
// Cost: 2 n beta at each rank, and at the root, p n beta; a rank waits for the root only if its block has more chunks
// than its ring has entries.
#include "coll/shared/exchange.h"

namespace near::coll {

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
          bytes, [=, own = call.send](std::byte* at) { datatype::pack(own, offset, at, bytes); }));
    for (int step = 1; is_root && step < exchange.size(); ++step) {
      const int from = (call.root + step) % exchange.size();
      const Buffer to = block(call.receive, from);
      NEAR_TRY(exchange.read(from, index,
                             [=](const std::byte* data) { datatype::unpack(to, offset, data, bytes); }));
    }
    exchange.finish(index);
  }
  return {};
}

} // namespace near::coll
