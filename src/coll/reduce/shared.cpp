// Reduce in the area, in three forms, like those of allreduce with the same names (allreduce/shared.cpp).
//
// flat     The root reduces what all others publish. Cost: 2 n beta at each of them, p n (beta + gamma) at the root.
// grid     One rank of each row reduces what the others of the row publish, and publishes the result; the root reduces these. Cost:
//          2 sqrt(p) n (beta + gamma) at the root, and two waits.
// shares   Every rank but the root reduces its share, and the root copies the shares of all. Cost: 2 n beta at the root,
//          2 n beta + n gamma at all others.
#include "coll/shared/reduction.h"
#include "pattern/grid.h"

namespace near::coll {

Result reduce_shared_flat(CollectiveGroup& group, const Call& call) {
  const Vectors vectors(call);
  const Chunks chunks = chunks_of_vector(call.send.bytes(), vectors.unit());
  Exchange exchange(group, call, chunks.count);
  const bool is_root = exchange.rank() == call.root;
  if (is_root) exchange.only_read();
  for (Number index = 0; index < chunks.count; ++index) {
    const MPI_Count bytes = chunks.bytes(index), offset = chunks.offset(index);
    if (!is_root)
      NEAR_TRY(vectors.publish(exchange, chunks, index));
    else
      NEAR_TRY(vectors.fold_at_root(exchange, index, bytes, offset));
    exchange.finish(index);
  }
  return {};
}

Result reduce_shared_grid(CollectiveGroup& group, const Call& call) {
  const Vectors vectors(call);
  const Chunks chunks = chunks_of_vector(call.send.bytes(), vectors.unit());
  Exchange exchange(group, call, chunks.count);
  const pattern::Grid grid(exchange.size());
  const int rank = exchange.rank(), own_row = grid.row_of(rank), own_first = grid.first(own_row);
  auto head_of = [=](int row) { return row == grid.row_of(call.root) ? call.root : grid.first(row); };
  const int head = head_of(own_row);
  if (rank == call.root) exchange.only_read();
  for (Number index = 0; index < chunks.count; ++index) {
    const MPI_Count bytes = chunks.bytes(index), offset = chunks.offset(index);
    if (rank == call.root) {
      NEAR_TRY(vectors.fold_at_root(
          exchange, index, bytes, offset, grid.length(own_row) + grid.rows() - 2, [=](int step) {
            const int in_row = grid.length(own_row) - 1;
            if (step < in_row) return own_first + (rank - own_first + step + 1) % grid.length(own_row);
            return head_of((own_row + step - in_row + 1) % grid.rows());
          }));
    } else if (rank == head) {
      NEAR_TRY(vectors.publish_sum(exchange, index, bytes, offset, own_first, grid.length(own_row)));
    } else {
      NEAR_TRY(vectors.publish(exchange, chunks, index));
    }
    exchange.finish(index);
  }
  return {};
}

Result reduce_shared_shares(CollectiveGroup& group, const Call& call) {
  Vectors vectors(call);
  vectors.spare(call.root);
  const Chunks chunks = chunks_of_vector(call.send.bytes(), vectors.unit());
  Exchange exchange(group, call, chunks.count);
  exchange.call().owe_more();
  return exchange_all(
      exchange, chunks.count, [&](Number index) { return chunks.bytes(index); },
      [=](Number index, const Room& room) {
        room.put(0, vectors.send(chunks.offset(index)), chunks.bytes(index));
      },
      [&](Number index) -> Result {
        NEAR_TRY(vectors.fold_shares(exchange, index, chunks.bytes(index)));
        if (exchange.rank() == call.root)
          return vectors.collect_shares(exchange, index, chunks.bytes(index),
                                        vectors.receive(chunks.offset(index)));
        return {};
      });
}

} // namespace near::coll
