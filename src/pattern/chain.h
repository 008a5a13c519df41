// A chain of the leaders of machines, along which a long broadcast travels in chunks: while a leader receives one chunk, it passes
// the previous one on to the next leader and to its own ranks.
#pragma once

#include "abi/types.h"
#include "base/result.h"

#include <algorithm>

namespace near::pattern {

/// From this many bytes on, a broadcast between machines may be cut into chunks of this size.
inline constexpr MPI_Count least_in_chunks = 512 << 10, chunk_bytes = 256 << 10;
/// Whether a chain is faster than a tree: the last leader waits until a chunk has passed all others. A recorded call would have
/// about ten steps for each chunk.
inline bool is_for_chain(MPI_Count bytes, int machines, bool recorded) {
  return bytes >= std::max(least_in_chunks, chunk_bytes * (machines - 2)) && !recorded;
}
inline int chunks_of_chain(MPI_Count bytes) {
  return static_cast<int>((bytes + chunk_bytes - 1) / chunk_bytes);
}
inline MPI_Count bytes_of_chunk(MPI_Count bytes, int index) {
  return std::min(chunk_bytes, bytes - index * chunk_bytes);
}

/// The leaders in the order in which they receive: the root's leader first, then by index.
class Chain {
public:
  /// For `count` machines, from the point of view of machine `own`.
  Chain(int count, int root, int own) : count_(count), root_(root), own_(own) {}
  bool is_first() const { return own_ == root_; }
  bool is_last() const { return next() == root_; }
  int previous() const { return (own_ + count_ - 1) % count_; }
  int next() const { return (own_ + 1) % count_; }

private:
  int count_, root_, own_;
};

/// The part of a rank in such a broadcast; `leads`: it is a leader.
///   start_receive(chunk, from), start_send(chunk, to), finish_until(remaining)    between leaders
///   here(chunk)                                                                   among the ranks of the machine
template <class Verbs>
base::Result pass_along(const Chain& chain, int chunks, bool leads, Verbs&& verbs) {
  const bool receives = leads && !chain.is_first(), sends = leads && !chain.is_last();
  if (receives) NEAR_TRY(verbs.start_receive(0, chain.previous()));
  for (int index = 0; index < chunks; ++index) {
    const bool more = index + 1 < chunks;
    // Under way, oldest first: this chunk's receive, the previous one's send, the next one's receive.
    if (receives && more) NEAR_TRY(verbs.start_receive(index + 1, chain.previous()));
    if (receives) NEAR_TRY(verbs.finish_until((sends && index > 0 ? 1 : 0) + (more ? 1 : 0)));
    if (sends) NEAR_TRY(verbs.start_send(index, chain.next()));
    if (sends && !receives) NEAR_TRY(verbs.finish_until(2));
    NEAR_TRY(verbs.here(index));
  }
  return leads ? verbs.finish_until(0) : base::Result{};
}

} // namespace near::pattern
