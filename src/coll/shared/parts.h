// Parts of different sizes, one for each rank that reads them, which a rank publishes under one number (gatherv,
// scatterv, alltoallv, alltoallw): a table that says where each part is, then the parts.
//
// No rank knows all sizes, so data cannot be cut into chunks that all of them count alike. Parts that are too long to be
// published are messages, and the table says so.
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
  void fill(const Room& room) const;

private:
  std::shared_ptr<const std::vector<Buffer>> parts_;
  MPI_Count bytes_ = 0;
};

/// What a rank reads of that. Whether a part is a message is the sender's decision, which its table tells. Errors are kept
/// until the end of the call: other ranks send their messages to this one whatever it has found, and wait for them.
class ArrivingParts {
public:
  ArrivingParts(CollectiveGroup& group, Exchange& exchange);
  /// Reads part number `part` of what rank `from` has published, unless it is a message.
  Result read(int from, int part, const Buffer& into);
  /// Like read(), where this rank is the only reader of `from`. If `from` had no memory to publish, keeps that error and reads on:
  /// the others do not learn of it, and wait until this rank has received their messages.
  Result read_alone(int from, int part, const Buffer& into);
  /// After read(): starts to receive it if it is one.
  Result start_receive(int from, const Buffer& into);
  /// Waits as CollectiveGroup::finish_until() does.
  void finish_until(std::size_t remaining);
  /// Waits for all messages. Returns the first error: MPI_ERR_TRUNCATE if a part was longer than its buffer.
  Result finish();

private:
  struct State;
  CollectiveGroup& group_;
  Exchange& exchange_;
  std::shared_ptr<State> state_;
};

/// What this rank publishes in such a call; nothing in other calls.
MPI_Count bytes_of_parts(const Call& call, int rank, int size);

} // namespace near::coll
