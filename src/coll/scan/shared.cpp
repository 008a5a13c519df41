// Scans in the area: every rank publishes its vector, and reduces those of lower ranks. Cost: (r + 2) n beta + r n gamma
// at rank r, and one wait for each chunk; so for few ranks only.
#include "coll/shared/reduction.h"

namespace near::coll {
namespace {

/// The result at each rank is that of the ranks up to `last`; none below 0.
Result scan_up_to(CollectiveGroup& group, const Call& call, int last) {
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

} // namespace

Result scan_shared(CollectiveGroup& group, const Call& call) { return scan_up_to(group, call, group.rank()); }
Result exscan_shared(CollectiveGroup& group, const Call& call) {
  return scan_up_to(group, call, group.rank() - 1);
}

} // namespace near::coll
