// Broadcast in two levels: among the leaders, of which the root is one, and from each to the ranks of its machine.
//
// Long messages are cut into chunks, which travel along a chain of the leaders: while a leader receives a chunk, it passes the one
// before on, to the next leader and to its own ranks. Cost for m machines: n beta + (m - 2) chunk beta, and n beta on a machine.
#include "coll/levels.h"

#include <algorithm>

namespace near::coll {
namespace {

/// From so many bytes on, a broadcast has chunks, of so many. A leader then receives one while it passes another on.
constexpr MPI_Count least_in_chunks = 512 << 10, chunk_bytes = 256 << 10;
/// Whether a chain takes less time than a tree: the last leader waits for a chunk to pass all others. A recorded call would have some
/// ten steps for each chunk.
bool is_for_chain(const CollectiveGroup& group, MPI_Count bytes) {
  return bytes >= std::max(least_in_chunks, chunk_bytes * (group.machines()->count() - 2)) &&
         group.schedule() == nullptr;
}

/// The leaders in the order in which they receive: that of the root first, then by index.
class Chain {
public:
  Chain(const Levels& levels, int root)
      : count_(levels.machines().count()), root_(levels.machines().index_of(root)),
        own_(levels.machines().own()) {}
  bool is_first() const { return own_ == root_; }
  bool is_last() const { return next() == root_; }
  int previous() const { return (own_ + count_ - 1) % count_; }
  int next() const { return (own_ + 1) % count_; }

private:
  int count_, root_, own_;
};

Result pass_along(Levels& levels, const Buffer& packed, int root) {
  const Chain chain(levels, root);
  CollectiveGroup& across = levels.across();
  const auto count = static_cast<int>((packed.bytes() + chunk_bytes - 1) / chunk_bytes);
  auto chunk = [&](int index) {
    const MPI_Count begin = index * chunk_bytes;
    return byte_range(packed, begin, std::min(chunk_bytes, packed.bytes() - begin));
  };
  const bool receives = levels.leads() && !chain.is_first(), sends = levels.leads() && !chain.is_last();
  if (receives) NEAR_TRY(across.start_receive(chunk(0), chain.previous()));
  for (int index = 0; index < count; ++index) {
    const bool more = index + 1 < count;
    // Under way, oldest first: this chunk's receive, the last one's send, the next one's receive.
    if (receives && more) NEAR_TRY(across.start_receive(chunk(index + 1), chain.previous()));
    if (receives) NEAR_TRY(across.finish_until((sends && index > 0 ? 1 : 0) + (more ? 1 : 0)));
    if (sends) NEAR_TRY(across.start_send(chunk(index), chain.next()));
    if (sends && !receives) NEAR_TRY(across.finish_until(2));
    NEAR_TRY(levels.broadcast(chunk(index)));
  }
  return levels.leads() ? across.finish_all() : Result{};
}

} // namespace

Result broadcast_by_machine(CollectiveGroup& group, const Call& call) {
  Levels levels(group, call, call.root);
  const MPI_Count bytes = call.receive.bytes();
  if (!is_for_chain(group, bytes)) {
    if (levels.leads())
      NEAR_TRY(run(levels.across(), broadcast_call(call.receive, levels.machines().index_of(call.root))));
    return levels.broadcast(call.receive);
  }
  // Chunks are cut by packed bytes, because ranks may describe the same signature by unlike types.
  const bool contiguous = call.receive.is_contiguous();
  Buffer packed;
  if (contiguous)
    packed = Buffer{call.receive.contiguous_start(), bytes, &byte_type(), call.receive.kind};
  else
    NEAR_TRY(group.scratch_bytes(bytes, packed));
  const bool is_root = group.rank() == call.root;
  if (!contiguous && is_root) NEAR_TRY(group.copy(call.receive, packed));
  NEAR_TRY(pass_along(levels, packed, call.root));
  return contiguous || is_root ? Result{} : group.copy(packed, call.receive);
}

} // namespace near::coll
