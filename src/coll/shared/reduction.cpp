// See reduction.h.
#include "coll/shared/reduction.h"

namespace near::coll {

Result Vectors::fold(Exchange& exchange, Number index, MPI_Count at, std::byte* to, MPI_Count bytes,
                     int last) const {
  const std::byte* first = nullptr;
  const std::byte* const own = exchange.data(exchange.rank(), index);
  for (int rank = 0; rank <= last; ++rank) {
    const std::byte* data = own;
    if (rank != exchange.rank()) NEAR_TRY(exchange.wait(rank, index, data));
    if (rank == 0)
      first = data + at;
    else
      combine(data + at, rank == 1 ? first : to, to, bytes);
  }
  if (last == 0) copy(to, first, bytes);
  return {};
}

Result Vectors::fold_shares(Exchange& exchange, Number index, MPI_Count bytes) const {
  const int own = exchange.rank(), size = exchange.size();
  const Share share = share_of(bytes, own, size);
  std::byte* to = exchange.data(own, index) + share.begin;
  for (int step = 1; step < size; ++step) {
    const std::byte* data;
    NEAR_TRY(exchange.wait((own + step) % size, index, data));
    combine(data + share.begin, to, to, share.bytes);
  }
  exchange.publish_result(index);
  return {};
}

Result Vectors::collect_shares(Exchange& exchange, Number index, MPI_Count bytes, std::byte* to) const {
  for (int step = 0; step < exchange.size(); ++step) {
    const int rank = (exchange.rank() + step) % exchange.size();
    const Share share = share_of(bytes, rank, exchange.size());
    if (rank != exchange.rank()) NEAR_TRY(exchange.wait_for_result(rank, index));
    copy(to + share.begin, exchange.data(rank, index) + share.begin, share.bytes);
  }
  return {};
}

Vectors::Share Vectors::share_of(MPI_Count bytes, int rank, int size) const {
  const MPI_Count elements = bytes / unit();
  // Whole lines, so that no two ranks write the same one.
  const MPI_Count in_line = std::max<MPI_Count>(64 / unit(), 1), lines = (elements + in_line - 1) / in_line;
  auto border = [&](int of) { return std::min(lines * of / size * in_line, elements) * unit(); };
  return {border(rank), border(rank + 1) - border(rank)};
}

Result fold_up_to(CollectiveGroup& group, const Call& call, int last) {
  const Vectors vectors(call);
  const Chunks chunks = chunks_of(call.send.bytes(), vectors.unit());
  Exchange exchange(group, call, chunks.count);
  return exchange_all(
      exchange, chunks.count, [&](Number index) { return chunks.bytes(index); },
      [&](Number index, std::byte* at) {
        vectors.copy(at, vectors.send(chunks.offset(index)), chunks.bytes(index));
      },
      [&](Number index) {
        return vectors.fold(exchange, index, 0, vectors.receive(chunks.offset(index)), chunks.bytes(index),
                            last);
      });
}

} // namespace near::coll
