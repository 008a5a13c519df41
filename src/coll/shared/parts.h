// Parts of different sizes, one for each rank that reads them, which a rank publishes under one number (gatherv,
// scatterv, alltoallv, alltoallw): a table that says where each part is, then the parts.
//
// No rank knows all sizes, so data cannot be cut into chunks that all of them count alike. Parts that are too long to be
// published are messages, and the table says so.
#pragma once

#include "coll/shared/exchange.h"

#include <cstring>
#include <memory>
#include <vector>

namespace near::coll {

/// Where a part lies among the published ones: an entry of the table before them.
struct PartRange {
  std::uint16_t begin; ///< in units
  std::uint16_t bytes; ///< is_message: the part is not here
  static constexpr std::uint16_t is_message = 0xffff;
};

/// What parts are aligned to, and the table counts in. Bytes.
inline constexpr MPI_Count part_unit = 4;

/// The bytes of a table of so many parts.
constexpr MPI_Count table_bytes(int parts) { return static_cast<MPI_Count>(sizeof(PartRange)) * parts; }

/// Whether a part of `bytes` bytes, one of `parts`, is a message: if all had this size, a slice could not contain them.
bool is_message(MPI_Count bytes, int parts);

/// Calls `visit` for each part with its place in the table and its range. `bytes_of(i)`: of part i. Returns the bytes of all
/// together, with the table.
template <class BytesOf, class Visit>
MPI_Count lay_out_parts(int parts, BytesOf&& bytes_of, Visit&& visit) {
  MPI_Count end = table_bytes(parts);
  for (int i = 0; i < parts; ++i) {
    const MPI_Count bytes = bytes_of(i);
    const bool here = !is_message(bytes, parts);
    visit(i, PartRange{static_cast<std::uint16_t>(end / part_unit),
                       here ? static_cast<std::uint16_t>(bytes) : PartRange::is_message});
    if (here) end += (bytes + part_unit - 1) / part_unit * part_unit;
  }
  return end;
}

/// Reads an entry of a published table.
inline PartRange range_of_part(const std::byte* published, int part) {
  PartRange range;
  std::memcpy(&range, published + table_bytes(part), sizeof range);
  return range;
}

/// Fails with MPI_ERR_TRUNCATE if a part that is not a message is longer than the buffer of `room` bytes that it is for.
Result check_part(int from, PartRange range, MPI_Count room);

/// What one rank publishes. Copies share the list of parts, so functions can capture it.
class PublishedParts {
public:
  /// An empty buffer may have any address, but has a type.
  explicit PublishedParts(std::vector<Buffer> parts);
  /// Bytes of the table and of the parts that are not messages.
  MPI_Count bytes() const { return bytes_; }
  void fill(const Room& room) const;

private:
  template <class Visit>
  MPI_Count lay_out(Visit&& visit) const;
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
