// What the collectives with a straight form do (straight.h): each publishes at most once, and then reads each rank at most once.
#pragma once

#include "coll/registry.h"
#include "coll/shared/exchange.h"
#include "coll/shared/straight_common.h"

namespace near::coll {

/// A rank's block of a buffer.
inline std::byte* block_of(const Buffer& one, int rank) {
  return one.contiguous_start() + rank * one.count * one.type->extent;
}

/// Of a reduce_scatter: a rank's block. Bytes.
inline MPI_Count block_bytes(const Call& call, int rank) {
  return call.collective == Collective::reduce_scatter
             ? call.receive_blocks.counts[rank] * call.send.type->size
             : call.send.bytes();
}

/// Where a rank publishes a part for each rank: the distance from one to the next. `bytes`: Facts::bytes.
inline MPI_Count stride_of(const Call& call, MPI_Count bytes, int size) {
  switch (call.collective) {
  case Collective::reduce_scatter: return part_stride(facts_of(call, size).longest, size);
  case Collective::reduce_scatter_block: return part_stride(call.send.bytes(), size);
  default: return part_stride(bytes, size);
  }
}

/// What this rank publishes if it publishes anything. `bytes`: Facts::bytes.
inline MPI_Count published_by_rank(const Call& call, MPI_Count bytes, int size) {
  switch (call.collective) {
    using enum Collective;
  case allgatherv: return call.send.bytes();
  case scatter:
  case alltoall:
  case reduce_scatter:
  case reduce_scatter_block: return stride_of(call, bytes, size) * size;
  default: return bytes;
  }
}

/// One rank's part in a call of one chunk, in two halves: publish() and read(). `Use` is what it does with
/// the area: SoleCall, or the same functions for a call in turn. `bytes`: Facts::bytes.
template <class Use>
class Straight {
public:
  Straight(const Call& call, Use& use, MPI_Count bytes) : call_(call), use_(use), bytes_(bytes) {}

  bool is_root() const { return use_.rank() == call_.root; }
  std::byte* sent() const { return call_.send.contiguous_start(); }
  std::byte* received() const { return call_.receive.contiguous_start(); }
  /// The rank that is `step` behind this one: no two ranks begin with the same one.
  int after(int step) const {
    const int rank = use_.rank() + step;
    return rank < use_.size() ? rank : rank - use_.size();
  }

  /// Walks the counts of a reduce_scatter.
  MPI_Count stride() const { return stride_of(call_, bytes_, use_.size()); }

  void combine(const std::byte* first, const std::byte* second, std::byte* to, MPI_Count bytes) const {
    Datatype& type = *call_.send.type;
    datatype::combine(*call_.operation, first, second, to, bytes / type.size, type);
  }

  Result publish_vector(const std::byte* from) {
    return use_.publish(bytes_, [&](std::byte* at) { put(at, from, bytes_); });
  }
  Result only_publish_vector(const std::byte* from) {
    return use_.only_publish(bytes_, [&](std::byte* at) { put(at, from, bytes_); });
  }

  /// A part for each other rank, as in scatter_shared() and alltoall_shared().
  void fill_parts(std::byte* at) const {
    const MPI_Count stride = this->stride();
    for (int to = 0; to < use_.size(); ++to)
      if (to != use_.rank()) put(at + to * stride, block_of(call_.send, to), bytes_);
  }
  /// A part for each rank, as in reduce_scatter_shared().
  void fill_blocks(std::byte* at) const {
    const MPI_Count stride = this->stride();
    const std::byte* from = sent();
    for (int to = 0; to < use_.size(); ++to) {
      const MPI_Count bytes = block_bytes(call_, to);
      put(at + to * stride, from, bytes);
      from += bytes;
    }
  }

  Result publish() {
    auto all = [this] { return published_by_rank(call_, bytes_, use_.size()); };
    auto fill = [this](std::byte* at) { fill_parts(at); };
    switch (call_.collective) {
      using enum Collective;
    case barrier: return use_.publish(0, [](std::byte*) {});
    case broadcast: return is_root() ? only_publish_vector(received()) : Result{};
    case reduce:
    case gather: return is_root() ? Result{} : only_publish_vector(sent());
    case scatter: return is_root() ? use_.only_publish(all(), fill) : Result{};
    case alltoall: return use_.publish(all(), fill);
    case allgatherv:
      return use_.publish(all(), [this](std::byte* at) {
        if (const MPI_Count bytes = call_.send.bytes(); bytes != 0) put(at, sent(), bytes);
      });
    case reduce_scatter:
    case reduce_scatter_block: return use_.publish(all(), [this](std::byte* at) { fill_blocks(at); });
    case scan:
    case exscan: return use_.rank() == 0 ? only_publish_vector(sent()) : publish_vector(sent());
    default: return publish_vector(sent()); // allreduce, allgather
    }
  }

  /// Each other rank's block, which lies `offset` behind the beginning of what it has published.
  Result read_others(MPI_Count offset) {
    for (int step = 1; step < use_.size(); ++step) {
      std::byte* const to = block_of(call_.receive, after(step));
      NEAR_TRY(
          use_.read(after(step), bytes_, [&](const std::byte* data) { put(to, data + offset, bytes_); }));
    }
    return {};
  }

  /// Blocks of different sizes: each other rank's.
  Result read_blocks() {
    for (int step = 1; step < use_.size(); ++step) {
      const Buffer to = call_.receive_blocks.at(after(step));
      const MPI_Count bytes = to.bytes();
      NEAR_TRY(use_.read(after(step), bytes, [&](const std::byte* data) {
        if (bytes != 0) put(to.contiguous_start(), data, bytes); // else the address may be null
      }));
    }
    return {};
  }

  /// The others' vectors into the root's, as in reduce_shared_flat().
  Result reduce_others() {
    for (int step = 1; step < use_.size(); ++step)
      NEAR_TRY(use_.read(after(step), bytes_, [&](const std::byte* data) {
        combine(data, step == 1 ? sent() : received(), received(), bytes_);
      }));
    return {};
  }

  /// What ranks [0, last] have published, in their order, as Vectors::fold(): `bytes` bytes from `offset` on.
  Result reduce_up_to(int last, MPI_Count bytes, MPI_Count offset = 0) {
    const std::byte* first = nullptr;
    NEAR_TRY(use_.read(0, bytes, [&](const std::byte* data) { first = data + offset; }));
    if (last == 0) put(received(), first, bytes);
    for (int rank = 1; rank <= last; ++rank)
      NEAR_TRY(use_.read(rank, bytes, [&](const std::byte* data) {
        combine(data + offset, rank == 1 ? first : received(), received(), bytes);
      }));
    return {};
  }
  /// What the ranks contribute to this rank's block, as in reduce_scatter_shared().
  Result reduce_own_parts() {
    const int rank = use_.rank();
    return reduce_up_to(use_.size() - 1, block_bytes(call_, rank), rank * stride());
  }

  Result await_others() {
    for (int step = 1; step < use_.size(); ++step)
      NEAR_TRY(use_.read(after(step), 0, [](const std::byte*) {}));
    return {};
  }

  Result read() {
    const int rank = use_.rank();
    switch (call_.collective) {
      using enum Collective;
    case barrier: NEAR_TRY(await_others()); break;
    case broadcast:
      if (!is_root())
        NEAR_TRY(
            use_.read(call_.root, bytes_, [&](const std::byte* data) { put(received(), data, bytes_); }));
      break;
    case reduce:
      if (is_root()) NEAR_TRY(reduce_others());
      break;
    case allreduce: NEAR_TRY(reduce_up_to(use_.size() - 1, bytes_)); break;
    case scan:
      if (rank == 0)
        put(received(), sent(), bytes_);
      else
        NEAR_TRY(reduce_up_to(rank, bytes_));
      break;
    case exscan:
      if (rank != 0) NEAR_TRY(reduce_up_to(rank - 1, bytes_));
      break;
    case reduce_scatter:
    case reduce_scatter_block: NEAR_TRY(reduce_own_parts()); break;
    case allgatherv: {
      NEAR_TRY(read_blocks());
      const Buffer own = call_.receive_blocks.at(rank);
      if (own.count != 0) put(own.contiguous_start(), sent(), own.bytes());
      break;
    }
    case gather:
      if (!is_root()) break;
      put(block_of(call_.receive, rank), sent(), bytes_);
      NEAR_TRY(read_others(0));
      break;
    case scatter:
      if (is_root())
        put(received(), block_of(call_.send, rank), bytes_);
      else
        NEAR_TRY(use_.read(call_.root, bytes_,
                           [&](const std::byte* data) { put(received(), data + rank * stride(), bytes_); }));
      break;
    case allgather:
      NEAR_TRY(read_others(0));
      put(block_of(call_.receive, rank), sent(), bytes_);
      break;
    default: // alltoall
      NEAR_TRY(read_others(rank * stride()));
      put(block_of(call_.receive, rank), block_of(call_.send, rank), bytes_);
    }
    if (!use_.finished()) use_.finish();
    return {};
  }

private:
  const Call& call_;
  Use& use_;
  const MPI_Count bytes_;
};

} // namespace near::coll
