// How a reduce-scatter cuts its vector: equal blocks, or a count for each rank.
#pragma once

#include "coll/collective_group.h"

namespace near::coll {

class Partition {
public:
  Partition(const Call& call, int size) : whole_(call.send) {
    starts_.resize(static_cast<std::size_t>(size) + 1);
    for (int i = 0; i < size; ++i)
      starts_[static_cast<std::size_t>(i) + 1] =
          starts_[static_cast<std::size_t>(i)] +
          (call.receive_blocks.counts.empty() ? call.send.count : call.receive_blocks.counts[i]);
    whole_.count = starts_.back();
  }
  /// The whole vector of this rank's contribution.
  const Buffer& whole() const { return whole_; }
  /// Rank `rank`'s part of a vector that is laid out like the whole.
  Buffer part(const Buffer& vector, int rank) const {
    auto at = static_cast<std::size_t>(rank);
    return slice(vector, starts_[at], starts_[at + 1] - starts_[at]);
  }
  Buffer part(int rank) const { return part(whole_, rank); }

private:
  Buffer whole_;
  std::vector<MPI_Count> starts_;
};

} // namespace near::coll
