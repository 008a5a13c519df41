// Parts of different sizes, one for each rank that reads them, which a rank publishes under one number (gatherv,
// scatterv, alltoallv, alltoallw): a table that says where each part is, then the parts.
//
// No rank knows all sizes, so data cannot be cut into chunks that all of them count alike. But both ranks of a pair know
// the size of the part between them: they agree on whether it is published or, because it is too long, a message.
#pragma once

#include "coll/shared/exchange.h"

#include <memory>
#include <vector>

namespace near::coll {

/// Whether a part of `bytes` bytes, one of `parts`, is a message: if all had this size, a slice could not contain them.
bool is_message(MPI_Count bytes, int parts);

/// What one rank publishes. Copies share the list of parts, so functions can capture it.
class PublishedParts {
public:
  /// An empty buffer may have any address, but has a type.
  explicit PublishedParts(std::vector<Buffer> parts);
  /// Bytes of the table and of the parts that are not messages.
  MPI_Count bytes() const { return bytes_; }
  void fill(std::byte* at) const;

private:
  std::shared_ptr<const std::vector<Buffer>> parts_;
  MPI_Count bytes_ = 0;
};

/// Reads part number `part`, of `parts`, from what rank `from` has published, unless it is a message. Fails with
/// MPI_ERR_TRUNCATE if the two ranks do not agree on its size.
Result take_part(const std::byte* published, int part, int parts, const Buffer& into, int from);

/// What this rank publishes in such a call; nothing in other calls.
MPI_Count bytes_of_parts(const Call& call, int rank, int size);

} // namespace near::coll
