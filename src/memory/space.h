// This process's part of the job's segment: where it lies, and what its arenas have allocated.
#pragma once

#include "memory/arena.h"
#include "memory/blocks.h"
#include "memory/kept.h"
#include "object/object.h"
#include "segment/segment.h"

#include <memory>
#include <vector>

namespace near::memory {

struct Space {
  segment::Segment segment;                               ///< of this process's job
  std::vector<std::unique_ptr<segment::Segment>> further; ///< of other jobs; see memory/segments.h
  std::uint32_t row = 0;                                  ///< this process's row in the segment's rank table
  std::uint32_t job_size = 0; ///< number of the job's initial processes on this machine
  /// The ranks of these processes in the job, by row, in ascending order; empty if each process's row is its rank, as
  /// in jobs on one machine.
  std::vector<std::uint32_t> ranks;
  std::uint32_t machine = 0; ///< number of this machine among those of the job
  /// The machine of each process of the job, by rank; empty if the job has one machine.
  std::vector<std::uint32_t> machine_of;
  Arena arena;          ///< within this process's region
  Arena far_arena;      ///< outside the regions; empty unless every process has mapped the whole segment
  Arena reserved_arena; ///< of huge pages that the administrator has reserved; empty if there are none
  Blocks blocks;
  KeptBlocks kept; ///< freed blocks of ordinary_arena()

  /// The arena for blocks of ordinary pages. Every process of the job has mapped it.
  Arena& ordinary_arena() { return far_arena.empty() ? arena : far_arena; }
};

/// The only Space of this process. It is never destroyed, because exit handlers and forked children may still
/// use it.
extern object::Immortal<Space> space_storage;
inline Space& space() { return space_storage.value; }

/// Builds the arenas. `begin` is the offset of the unused part of this process's region. Call it after every
/// process has published how much of the segment it has mapped.
void open_arenas(segment::Offset begin);

} // namespace near::memory
