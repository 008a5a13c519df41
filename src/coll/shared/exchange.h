// One call's use of an area: which numbers it takes, and how its data is cut into chunks.
#pragma once

#include "coll/algorithms.h"
#include "coll/registry.h"
#include "coll/shared/area.h"

#include <algorithm>

namespace near::coll {

/// Packed bytes in equal chunks, of which the last may be shorter. A pure function of facts that all ranks know.
struct Chunks {
  MPI_Count total = 0, chunk = 0;
  Number count = 0;

  MPI_Count offset(Number index) const { return chunk * index; }
  /// Bytes of a chunk of `whole`, which has at most `total` bytes: of one rank's part if the parts differ.
  MPI_Count bytes(Number index, MPI_Count whole) const {
    return std::clamp<MPI_Count>(whole - offset(index), 0, chunk);
  }
  MPI_Count bytes(Number index) const { return bytes(index, total); }
};

/// Chunks of `total` bytes, `parts` of which, each rounded up to cache lines, fit into a slice together. Each is a
/// multiple of `unit`, which is at most a cache line. Where every rank has its processor, longer data is cut so that
/// ranks read one chunk while the next is being written; where they share processors, each chunk costs them a turn.
Chunks chunks_of(MPI_Count total, MPI_Count unit = 1, int parts = 1);
/// The distance of parts of `bytes` bytes in an entry or slice.
inline MPI_Count part_stride(MPI_Count bytes, int parts) {
  return bytes * parts <= inline_bytes ? bytes : (bytes + 63) / 64 * 64;
}

class Exchange {
public:
  /// Takes a number for each chunk. `bytes` is what all ranks know of the call's size.
  Exchange(CollectiveGroup& group, const Call& call, Number chunks);
  /// Declares whatever was not read as finished, and what was not published, after an error, as failed.
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  int rank() const { return area_.rank(); }
  int size() const { return area_.size(); }

  /// Publishes the next chunk, after fill(address), which writes `bytes` bytes there.
  template <class Fill>
  Result publish(MPI_Count bytes, Fill&& fill) {
    std::byte* at = nullptr;
    NEAR_TRY(area_.prepare(number(published_), bytes, at));
    fill(at);
    area_.publish(number(published_++));
    return {};
  }
  /// Publishes chunks by publish_one(index) up to `index`, and further ones where that needs no wait: `bytes_of(index)`
  /// tells their sizes. All numbers before `index` must be finished, unless the next one can be published without a wait:
  /// this rank would wait for its own slices.
  template <class BytesOf, class PublishOne>
  Result publish_until(Number index, BytesOf&& bytes_of, PublishOne&& publish_one) {
    while (published_ < count_ &&
           (published_ <= index || (published_ <= index + ahead_ && can_publish(bytes_of(published_)))))
      NEAR_TRY(publish_one(published_));
    return {};
  }
  Number published() const { return published_; }
  /// Whether the next chunk, of so many bytes, can be published without a wait.
  bool can_publish(MPI_Count bytes) { return area_.can_prepare(number(published_), bytes); }

  Result wait(int rank, Number index, const std::byte*& data) {
    return area_.wait(rank, number(index), data);
  }
  /// What a rank has published; this rank, or one whose entry was waited for.
  std::byte* data(int rank, Number index) const { return area_.data(rank, number(index)); }
  void publish_result(Number index) { area_.publish_result(number(index)); }
  Result wait_for_result(int rank, Number index) { return area_.wait_for_result(rank, number(index)); }
  /// This rank has finished reading this chunk and all earlier ones.
  void finish(Number index) {
    area_.finish(number(index));
    finished_ = index + 1;
  }
  /// This rank publishes nothing in this call.
  void only_read() { published_ = count_; }

private:
  Number number(Number index) const { return first_ + index; }

  Area& area_;
  Number count_, first_, ahead_, published_ = 0, finished_ = 0;
};

/// All ranks publish all chunks, and read those of others: take(index) waits for them and reads.
template <class BytesOf, class Fill, class Take>
Result exchange_all(Exchange& exchange, Number chunks, BytesOf&& bytes_of, Fill&& fill, Take&& take) {
  for (Number index = 0; index < chunks; ++index) {
    NEAR_TRY(exchange.publish_until(index, bytes_of, [&](Number next) {
      return exchange.publish(bytes_of(next), [&](std::byte* at) { fill(next, at); });
    }));
    NEAR_TRY(take(index));
    exchange.finish(index);
  }
  return {};
}

} // namespace near::coll
