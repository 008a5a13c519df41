// See reduction.h.
#include "coll/shared/reduction.h"

namespace near::coll {
namespace {

/// Of what is read next, this many bytes are fetched ahead: whoever has written them is another one each time, and the
/// processor fetches by itself only what follows. Bytes.
constexpr MPI_Count fetched_ahead = 1024;

/// Begins to fetch `bytes` bytes from `data + at` on, if the data is there.
void fetch_ahead(const std::byte* data, MPI_Count at, MPI_Count bytes) {
  if (data == nullptr) return;
  for (MPI_Count within = 0; within < std::min(bytes, fetched_ahead); within += 64)
    __builtin_prefetch(data + at + within);
}

} // namespace

Result Vectors::publish_sum(Exchange& exchange, Number index, MPI_Count bytes, MPI_Count offset, int first,
                            int length) const {
  const int own = exchange.rank();
  for (int step = 1; step < length; ++step)
    NEAR_TRY(exchange.read(first + (own - first + step) % length, index, bytes, [](const std::byte*) {}));
  const AreaCall* const call = &exchange.call();
  const Vectors vectors = *this;
  return exchange.relay(bytes, [=](const Room& room) {
    if (length == 1) return room.put(0, vectors.send(offset), bytes);
    std::byte* const sum = room;
    for (int step = 1; step < length; ++step)
      vectors.combine(call->data(first + (own - first + step) % length, index),
                      step == 1 ? vectors.send(offset) : sum, sum, bytes);
  });
}

Result Vectors::fold_shares(Exchange& exchange, Number index, MPI_Count bytes) const {
  const int own = exchange.rank(), size = exchange.size();
  if (own == spared_) {
    // It meets the errors that the others meet, who then raise no results.
    for (int step = 1; step < size; ++step) NEAR_TRY(exchange.wait((own + step) % size, index));
    return {};
  }
  for (int step = 1; step < size; ++step) NEAR_TRY(fold_share(exchange, index, bytes, (own + step) % size));
  exchange.publish_result(index);
  return {};
}

Result Vectors::fold_share(Exchange& exchange, Number index, MPI_Count bytes, int from) const {
  const int own = exchange.rank(), next = (from + 1) % exchange.size();
  const Share share = share_of(bytes, own, exchange.size());
  const AreaCall* const call = &exchange.call();
  return exchange.read(from, index, share.bytes, [=, vectors = *this](const std::byte* data) {
    if (next != own) fetch_ahead(call->find_data(next, index), share.begin, share.bytes);
    std::byte* to = call->data(own, index) + share.begin;
    vectors.combine(data + share.begin, to, to, share.bytes);
  });
}

Result Vectors::collect_shares(Exchange& exchange, Number index, MPI_Count bytes, std::byte* to) const {
  const int own = exchange.rank(), size = exchange.size();
  const AreaCall* const call = &exchange.call();
  for (int step = 0; step < size; ++step) {
    const int rank = (own + step) % size, next = (rank + 1) % size;
    if (rank == spared_) continue;
    const Share share = share_of(bytes, rank, size), next_share = share_of(bytes, next, size);
    NEAR_TRY(exchange.read_result(rank, index, share.bytes, [=, vectors = *this](const std::byte* data) {
      if (next != own && next != vectors.spared_)
        fetch_ahead(call->find_result(next, index), next_share.begin, next_share.bytes);
      vectors.copy(to + share.begin, data + share.begin, share.bytes);
    }));
  }
  return {};
}

Vectors::Share Vectors::share_of(MPI_Count bytes, int rank, int size) const {
  const MPI_Count elements = bytes / unit();
  // Whole lines, so that no two ranks write the same one.
  const MPI_Count in_line = std::max<MPI_Count>(64 / unit(), 1), lines = (elements + in_line - 1) / in_line;
  if (rank == spared_) return {};
  const bool none_spared = spared_ < 0;
  const int sharers = none_spared ? size : size - 1, place = none_spared || rank < spared_ ? rank : rank - 1;
  auto border = [&](int of) { return std::min(lines * of / sharers * in_line, elements) * unit(); };
  return {border(place), border(place + 1) - border(place)};
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
