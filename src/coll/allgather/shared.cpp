// Allgather through slices: every rank publishes its block chunk by chunk and reads those of all others, beginning with
// its neighbour's, so that no two begin with the same one. Cost: (p + 1) n beta, and one wait for each chunk.
#include "coll/shared/exchange.h"

namespace near::coll {
namespace {

/// `block_of(rank)` is where a rank's block belongs; `longest` the bytes of the longest one.
template <class BlockOf>
Result exchange_blocks(CollectiveGroup& group, const Call& call, MPI_Count longest, BlockOf&& block_of) {
  const Chunks chunks = chunks_of(longest);
  const MPI_Count own = call.send.bytes();
  Exchange exchange(group, call, chunks.count);
  auto take = [&](Number index) -> Result {
    for (int step = 1; step < exchange.size(); ++step) {
      const int from = (exchange.rank() + step) % exchange.size();
      const Buffer to = block_of(from);
      const MPI_Count bytes = chunks.bytes(index, to.bytes()), offset = chunks.offset(index);
      NEAR_TRY(exchange.read(from, index, bytes, [=](const std::byte* data) {
        if (bytes != 0) datatype::unpack_arrived(to, offset, data, bytes);
      }));
    }
    return {};
  };
  NEAR_TRY(exchange_all(
      exchange, chunks.count, [&](Number index) { return chunks.bytes(index, own); },
      [=, from = call.send](Number index, const Room& room) {
        if (const MPI_Count bytes = chunks.bytes(index, own); bytes != 0)
          room.pack(0, from, chunks.offset(index), bytes);
      },
      take));
  return group.copy(call.send, block_of(exchange.rank()));
}

} // namespace

Result allgather_shared(CollectiveGroup& group, const Call& call) {
  return exchange_blocks(group, call, call.receive.bytes(),
                         [&](int rank) { return block(call.receive, rank); });
}

Result allgatherv_shared(CollectiveGroup& group, const Call& call) {
  MPI_Count longest = 0;
  for (int rank = 0; rank < group.size(); ++rank)
    longest = std::max(longest, call.receive_blocks.at(rank).bytes());
  return exchange_blocks(group, call, longest, [&](int rank) { return call.receive_blocks.at(rank); });
}

} // namespace near::coll
