// Single copies: ranks read data where it lies, in the memory of the rank whose data it is, without a slice between. By plain
// loads if it lies in the segment, else by the kernel (process_vm_readv).
//
//   owner                                          reader
//   entry: where its data lies        --------->   reads its block there
//   may use its buffer again          <---------   result: it has
//
// The owner waits for all its readers, so this is for blocks whose second copy would take longer than that.
#pragma once

#include "coll/shared/exchange.h"
#include "coll/shared/kept_error.h"

#include <memory>

namespace near::coll {

/// The part of one rank in a call whose ranks read each other's data where it lies.
class SingleCopies {
public:
  SingleCopies(CollectiveGroup& group, const Call& call);

  int rank() const { return exchange_.rank(); }
  int size() const { return exchange_.size(); }
  /// Tells the others where this rank's data lies: blocks of `block` bytes. If it has gaps, or lies in memory that other
  /// processes cannot read (of a device, say), it is packed first. Fails with MPI_ERR_NO_MEM if that needs memory that does not
  /// exist.
  Result expose(const Buffer& data, MPI_Count block);
  /// Instead, for a rank that only reads.
  Result expose_nothing();
  /// Reads block number `index` of what `from` exposes. An error is kept until the end of the call, since others wait for this
  /// rank: MPI_ERR_TRUNCATE if the block has another size, MPI_ERR_BUFFER if it cannot be read.
  Result read(int from, int index, const Buffer& into);
  /// This rank has read everything.
  void end_reading();
  /// For a rank that does not read what `reader` exposes: waits until that one has.
  Result wait_for(int reader);
  /// The end of the call. Returns the first error of the reads.
  Result finish();
  /// The same in a call in which every rank reads what every other one exposes, after this rank's reads.
  Result finish_together();

private:
  CollectiveGroup& group_;
  Exchange exchange_;
  std::shared_ptr<KeptError> error_;
};

/// Before the first call of an area for which such an algorithm is chosen: lets its ranks find out whether they can read each
/// other's memory. Each tries, and they tell each other, in the name of the call, of `bytes` bytes. Blocking, at all ranks.
Result agree_on_reading(const Call& call, MPI_Count bytes, Communicator& communicator, Area& area);

} // namespace near::coll
