// Reduce-scatter through slices: each chunk of a rank holds a part for every rank, which reduces its own parts. Cost:
// 2 p n beta + p n gamma for blocks of n bytes, and one wait for each chunk.
#include "coll/shared/reduction.h"

namespace near::coll {

Result reduce_scatter_shared(CollectiveGroup& group, const Call& call) {
  const Vectors vectors(call);
  const int size = group.size(), rank = group.rank();
  const bool varying = call.collective == Collective::reduce_scatter;
  // Where each rank's block begins in the vector, in bytes. Shared with what is recorded.
  auto begins = std::make_shared<std::vector<MPI_Count>>(static_cast<std::size_t>(size) + 1);
  MPI_Count longest = 0;
  for (int of = 0; of < size; ++of) {
    const MPI_Count bytes = (varying ? call.receive_blocks.counts[of] : call.send.count) * vectors.unit();
    (*begins)[static_cast<std::size_t>(of) + 1] = (*begins)[static_cast<std::size_t>(of)] + bytes;
    longest = std::max(longest, bytes);
  }
  const Chunks chunks = chunks_of(longest, vectors.unit(), size);
  Exchange exchange(group, call, chunks.count);
  auto stride = [=](Number index) { return part_stride(chunks.bytes(index), size); };
  auto begin_of = [=](int of) { return (*begins)[static_cast<std::size_t>(of)]; };
  auto bytes_of = [=](Number index, int of) { return chunks.bytes(index, begin_of(of + 1) - begin_of(of)); };
  return exchange_all(
      exchange, chunks.count, [&](Number index) { return stride(index) * size; },
      [=](Number index, const Room& room) {
        for (int to = 0; to < size; ++to)
          room.put(to * stride(index), vectors.send(begin_of(to) + chunks.offset(index)),
                   bytes_of(index, to));
      },
      [&](Number index) {
        return vectors.fold(exchange, index, rank * stride(index), vectors.receive(chunks.offset(index)),
                            bytes_of(index, rank), size - 1);
      });
}

} // namespace near::coll
