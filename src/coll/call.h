// What a collective was asked to do, in one form for every collective, so that algorithms, schedules, the
// registry and the tests treat all of them alike. Source: MPI 5.0, chapters 6 and 8.
#pragma once

#include "choice/choice.h"
#include "datatype/counts.h"
#include "datatype/operation.h"
#include "object/communicator.h"

namespace near::coll {

using choice::Collective;
using choice::collective_count;
using datatype::Buffer;
using datatype::Counts;
using datatype::Datatype;
using datatype::Operation;
using object::Result;
using object::Topology;

/// The address of element `count` of a buffer: address + count * extent.
inline void* advance(const void* address, MPI_Count count, const Datatype& type) {
  return const_cast<std::byte*>(static_cast<const std::byte*>(address)) + count * type.extent;
}

/// `count` elements of the buffer from element `first` on.
inline Buffer slice(const Buffer& buffer, MPI_Count first, MPI_Count count) {
  return Buffer{advance(buffer.address, first, *buffer.type), count, buffer.type, buffer.kind};
}

/// One side of a v or w form: a block for each rank or neighbour.
struct Blocks {
  void* address = nullptr;
  Counts counts;
  Counts displacements;             ///< in elements (v) or bytes (w)
  Datatype* type = nullptr;         ///< v
  Datatype* const* types = nullptr; ///< w
  datatype::MemoryKind kind = datatype::MemoryKind::host;
  Buffer at(int rank) const {
    if (types != nullptr)
      return Buffer{static_cast<std::byte*>(address) + displacements[rank], counts[rank], types[rank], kind};
    return Buffer{advance(address, displacements[rank], *type), counts[rank], type, kind};
  }
};

/// The arguments, with MPI_IN_PLACE resolved: the process's own contribution then lies in the receive
/// buffer where the result belongs, and copying it there does nothing.
///
///   broadcast                 receive: the buffer, at every rank
///   reduce, allreduce, scan   send: own vector; receive: result (reduce: address is null except at the root)
///   gather                    send: own block; receive (root): count and type of ONE rank's block
///   scatter                   send (root): count and type of one rank's block; receive: own block
///   allgather, alltoall       both: one rank's block
///   gatherv, allgatherv       send: own block; receive_blocks
///   scatterv                  send_blocks; receive: own block
///   alltoallv, alltoallw      send_blocks, receive_blocks
///   reduce_scatter_block      send: count is of ONE block, the buffer holds one for each rank; receive: own block
///   reduce_scatter            as reduce_scatter_block, and receive_blocks.counts has each rank's number of elements
///   neighbor_...              as the collective without neighbor_; blocks are in the order of the topology's
///                             destinations and sources instead of ranks
struct Call {
  Collective collective = Collective::barrier;
  Buffer send;
  Buffer receive;
  Blocks send_blocks;
  Blocks receive_blocks;
  const Operation* operation = nullptr;
  const Topology* topology = nullptr; ///< neighbor_...
  int root = 0;
  bool in_place = false; ///< alltoall family: what is sent lies in the receive buffer
};

/// Rank (or neighbour) `rank`'s block of a buffer of blocks, the first of which `one` describes; with `blocks`, so many
/// neighbouring blocks as one buffer.
inline Buffer block(const Buffer& one, int rank, int blocks = 1) {
  return Buffer{advance(one.address, one.count * rank, *one.type), one.count * blocks, one.type, one.kind};
}

} // namespace near::coll
