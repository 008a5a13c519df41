// Allreduce in the area, in four forms.
//
// flat     Every rank publishes its vector and reduces all of them. Cost: (p + 1) n beta + (p - 1) n gamma, and one wait
//          for each chunk: for short vectors, and for two ranks at any length, since both then read as many bytes of the
//          other as with shares.
// grid     Every rank publishes its vector and reduces those of its row, then publishes that and reduces those of its column.
//          Cost: 2 sqrt(p) n (beta + gamma) and two waits, for short vectors of many ranks.
// root     Every rank but rank 0 publishes its vector; rank 0 reduces them and publishes the result. Cost: p n (beta + gamma)
//          at rank 0, and one wait for each chunk at all ranks: for ranks that share processors.
// shares   Every rank publishes its vector, reduces its share of all vectors in its own piece or slice, and copies the
//          shares of all. Cost: 4 n beta + n gamma, and two waits for each chunk. While a rank would wait for the others' results
//          of one chunk, it publishes and reduces the next one.
#include "coll/shared/reduction.h"
#include "pattern/grid.h"

namespace near::coll {

Result allreduce_shared_flat(CollectiveGroup& group, const Call& call) {
  return fold_up_to(group, call, group.size() - 1);
}

/// Both vectors of a rank must find room without a wait for its own: its pieces hold several.
static_assert(choice::longest_along_grid <= piece_bytes);

Result allreduce_shared_grid(CollectiveGroup& group, const Call& call) {
  const Vectors vectors(call);
  const MPI_Count bytes = call.send.bytes();
  Exchange exchange(group, call, 2);
  const pattern::Grid grid(exchange.size());
  const int rank = exchange.rank(), row = grid.row_of(rank);
  exchange.call().tell_steps_apart();
  NEAR_TRY(exchange.publish(bytes, [=](const Room& room) { room.put(0, vectors.send(0), bytes); }));
  NEAR_TRY(vectors.fold(exchange, 0, 0, vectors.receive(0), bytes, grid.length(row),
                        [=](int index) { return grid.first(row) + index; }));
  NEAR_TRY(exchange.relay(bytes, [=](const Room& room) { room.put(0, vectors.receive(0), bytes); }));
  NEAR_TRY(vectors.fold(exchange, 1, 0, vectors.receive(0), bytes, grid.rows(),
                        [=](int index) { return grid.in_column(index, rank); }));
  exchange.finish(1);
  return {};
}

Result allreduce_shared_root(CollectiveGroup& group, const Call& call) {
  const Vectors vectors(call);
  const Chunks chunks = chunks_of(call.send.bytes(), vectors.unit());
  Exchange exchange(group, call, chunks.count);
  auto bytes_of = [&](Number index) { return chunks.bytes(index); };
  auto publish_one = [&](Number next) { return vectors.publish(exchange, chunks, next); };
  for (Number index = 0; index < chunks.count; ++index) {
    const MPI_Count bytes = bytes_of(index), offset = chunks.offset(index);
    if (exchange.rank() != 0) {
      NEAR_TRY(exchange.publish_until(index, bytes_of, publish_one));
      NEAR_TRY(exchange.read(0, index, bytes, [=](const std::byte* data) {
        vectors.copy(vectors.receive(offset), data, bytes);
      }));
    } else {
      NEAR_TRY(vectors.fold_at_root(exchange, index, bytes, offset));
      NEAR_TRY(exchange.relay(bytes, [=](const Room& room) { room.put(0, vectors.receive(offset), bytes); }));
    }
    exchange.finish(index);
  }
  return {};
}

Result allreduce_shared_shares(CollectiveGroup& group, const Call& call) {
  const Vectors vectors(call);
  const Chunks chunks = chunks_of_vector(call.send.bytes(), vectors.unit());
  Exchange exchange(group, call, chunks.count);
  exchange.call().owe_more();
  auto bytes_of = [&](Number index) { return chunks.bytes(index); };
  auto publish_one = [&](Number next) { return vectors.publish(exchange, chunks, next); };
  Number collected = 0;
  auto collect = [&]() -> Result {
    NEAR_TRY(vectors.collect_shares(exchange, collected, bytes_of(collected),
                                    vectors.receive(chunks.offset(collected))));
    exchange.finish(collected++);
    return {};
  };
  for (Number index = 0; index < chunks.count; ++index) {
    // There are few slices, and one of them is that of the chunk before. Recorded calls publish early anyway.
    if (collected < index && exchange.published() == index && !exchange.can_publish(bytes_of(index)))
      NEAR_TRY(collect());
    NEAR_TRY(exchange.publish_until(index, bytes_of, publish_one));
    for (int step = 1; step < exchange.size(); ++step) {
      const int from = (exchange.rank() + step) % exchange.size();
      // A rank without memory for another slice does not publish this chunk before all have finished the one before, whose results
      // do come without this chunk.
      if (collected < index && !exchange.call().wait_for_entry_or_results_before(from, index))
        NEAR_TRY(collect());
      NEAR_TRY(vectors.fold_share(exchange, index, bytes_of(index), from));
    }
    exchange.publish_result(index);
    if (collected < index) NEAR_TRY(collect());
  }
  return collected < chunks.count ? collect() : Result{};
}

} // namespace near::coll
