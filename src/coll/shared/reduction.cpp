// See reduction.h.
#include "coll/shared/reduction.h"

namespace near::coll {

Result Vectors::fold(Exchange& exchange, Number index, MPI_Count at, std::byte* to, MPI_Count bytes,
                     int last) const {
  const AreaCall* const call = &exchange.call();
  const Vectors vectors = *this;
  if (last == 0)
    return exchange.read(0, index, bytes, [=](const std::byte* data) { vectors.copy(to, data + at, bytes); });
  if (last > 0) NEAR_TRY(exchange.read(0, index, bytes, [](const std::byte*) {}));
  for (int rank = 1; rank <= last; ++rank)
    NEAR_TRY(exchange.read(rank, index, bytes, [=](const std::byte* data) {
      vectors.combine(data + at, rank == 1 ? call->data(0, index) + at : to, to, bytes);
    }));
  return {};
}

Result Vectors::fold_at_root(Exchange& exchange, Number index, MPI_Count bytes, MPI_Count offset) const {
  const Vectors vectors = *this;
  for (int step = 1; step < exchange.size(); ++step)
    NEAR_TRY(
        exchange.read((exchange.rank() + step) % exchange.size(), index, bytes, [=](const std::byte* data) {
          const std::byte* own = step == 1 ? vectors.send(offset) : vectors.receive(offset);
          vectors.combine(data, own, vectors.receive(offset), bytes);
        }));
  return {};
}

Result Vectors::fold_shares(Exchange& exchange, Number index, MPI_Count bytes) const {
  const int own = exchange.rank(), size = exchange.size();
  const Share share = share_of(bytes, own, size);
  const AreaCall* const call = &exchange.call();
  const Vectors vectors = *this;
  for (int step = 1; step < size; ++step)
    NEAR_TRY(exchange.read((own + step) % size, index, share.bytes, [=](const std::byte* data) {
      std::byte* to = call->data(own, index) + share.begin;
      vectors.combine(data + share.begin, to, to, share.bytes);
    }));
  exchange.publish_result(index);
  return {};
}

Result Vectors::collect_shares(Exchange& exchange, Number index, MPI_Count bytes, std::byte* to) const {
  for (int step = 0; step < exchange.size(); ++step) {
    const int rank = (exchange.rank() + step) % exchange.size();
    const Share share = share_of(bytes, rank, exchange.size());
    NEAR_TRY(exchange.read_result(rank, index, share.bytes, [=, vectors = *this](const std::byte* data) {
      vectors.copy(to + share.begin, data + share.begin, share.bytes);
    }));
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
      [=](Number index, const Room& room) {
        room.put(0, vectors.send(chunks.offset(index)), chunks.bytes(index));
      },
      [&](Number index) {
        return vectors.fold(exchange, index, 0, vectors.receive(chunks.offset(index)), chunks.bytes(index),
                            last);
      });
}

} // namespace near::coll
