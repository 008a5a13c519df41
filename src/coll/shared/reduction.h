// Elements of reductions in an area: without gaps, so a run of bytes of a whole number of elements.
#pragma once

#include "coll/shared/exchange.h"
#include "copy/copy.h"

namespace near::coll {

/// The vectors of one call, by chunks of packed bytes.
class Vectors {
public:
  explicit Vectors(const Call& call)
      : operation_(*call.operation), type_(*call.send.type), send_(call.send.contiguous_start()),
        receive_(call.receive.address != nullptr ? call.receive.contiguous_start() : nullptr) {}

  const std::byte* send(MPI_Count offset) const { return send_ + offset; }
  std::byte* receive(MPI_Count offset) const { return receive_ + offset; }
  MPI_Count unit() const { return type_.size; }

  /// Does nothing if both are the same memory.
  void copy(std::byte* to, const std::byte* from, MPI_Count bytes) const {
    if (to != from && bytes != 0) copy::copy(to, from, static_cast<std::size_t>(bytes), copy::Store::cached);
  }
  /// to = first op second; `to` may be `second`.
  void combine(const std::byte* first, const std::byte* second, std::byte* to, MPI_Count bytes) const {
    datatype::combine(operation_, first, second, to, bytes / type_.size, type_);
  }

  /// Publishes a chunk of what this rank contributes: the next one.
  Result publish(Exchange& exchange, const Chunks& chunks, Number next) const {
    const std::byte* const from = send(chunks.offset(next));
    const MPI_Count bytes = chunks.bytes(next);
    return exchange.publish(bytes, [=](const Room& room) { room.put(0, from, bytes); });
  }

  // The following wait for what they read.

  /// to = what `count` ranks have published of a chunk, `bytes` bytes from `at` on: rank_of(0), rank_of(1) and so on, in the
  /// order of ranks, so that all that compute it get the same bits.
  template <class RankOf>
  Result fold(Exchange& exchange, Number index, MPI_Count at, std::byte* to, MPI_Count bytes, int count,
              RankOf rank_of) const {
    const AreaCall* const call = &exchange.call();
    const Vectors vectors = *this;
    const int first = rank_of(0);
    if (count == 1)
      return exchange.read(first, index, bytes,
                           [=](const std::byte* data) { vectors.copy(to, data + at, bytes); });
    NEAR_TRY(exchange.read(first, index, bytes, [](const std::byte*) {}));
    for (int i = 1; i < count; ++i)
      NEAR_TRY(exchange.read(rank_of(i), index, bytes, [=](const std::byte* data) {
        vectors.combine(data + at, i == 1 ? call->data(first, index) + at : to, to, bytes);
      }));
    return {};
  }
  /// to = what ranks [0, last] have published of a chunk, in their order; does nothing if `last` is negative.
  Result fold(Exchange& exchange, Number index, MPI_Count at, std::byte* to, MPI_Count bytes,
              int last) const {
    return last < 0 ? Result{}
                    : fold(exchange, index, at, to, bytes, last + 1, [](int rank) { return rank; });
  }

  /// At the rank that reduces a chunk, of `bytes` bytes from `offset` on: its receive buffer gets what it contributes and
  /// what `count` others, rank_of(0) and so on, have published.
  template <class RankOf>
  Result fold_at_root(Exchange& exchange, Number index, MPI_Count bytes, MPI_Count offset, int count,
                      RankOf rank_of) const {
    const Vectors vectors = *this;
    for (int i = 0; i < count; ++i)
      NEAR_TRY(exchange.read(rank_of(i), index, bytes, [=](const std::byte* data) {
        const std::byte* own = i == 0 ? vectors.send(offset) : vectors.receive(offset);
        vectors.combine(data, own, vectors.receive(offset), bytes);
      }));
    return {};
  }
  /// At the rank that reduces a chunk alone: its receive buffer gets what it contributes and what all others have published.
  Result fold_at_root(Exchange& exchange, Number index, MPI_Count bytes, MPI_Count offset) const {
    return fold_at_root(exchange, index, bytes, offset, exchange.size() - 1,
                        [&](int i) { return (exchange.rank() + i + 1) % exchange.size(); });
  }
  /// Publishes a chunk, of `bytes` bytes from `offset` on, of what this rank and the others of `length` ranks from `first` on
  /// contribute. The others have published theirs.
  Result publish_sum(Exchange& exchange, Number index, MPI_Count bytes, MPI_Count offset, int first,
                     int length) const;

  // A chunk of `bytes` bytes that all ranks have published, of which each reduces its share.

  /// The others reduce the share of this rank, too: it has enough to do as the only one that collects the shares.
  void spare(int rank) { spared_ = rank; }

  /// Reduces this rank's share in place, in its own piece or slice, and tells the others. Each share is reduced by one rank, in
  /// an order that depends on the rank alone.
  Result fold_shares(Exchange& exchange, Number index, MPI_Count bytes) const;
  /// A step of that: adds what `from` contributes to this rank's share. The ranks behind this one come first.
  Result fold_share(Exchange& exchange, Number index, MPI_Count bytes, int from) const;
  /// Copies all reduced shares.
  Result collect_shares(Exchange& exchange, Number index, MPI_Count bytes, std::byte* to) const;

private:
  struct Share {
    MPI_Count begin = 0, bytes = 0;
  };
  Share share_of(MPI_Count bytes, int rank, int size) const;

  const Operation& operation_;
  Datatype& type_;
  const std::byte* send_;
  std::byte* receive_;
  int spared_ = -1; ///< reduces no share; negative: there is none such
};

/// Every rank publishes its vector and gets the result of ranks [0, last]; none if `last` is negative.
Result fold_up_to(CollectiveGroup& group, const Call& call, int last);

} // namespace near::coll
