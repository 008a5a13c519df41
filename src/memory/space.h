// This process's part of the job's segment: where it lies, and what its arenas have handed out.
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
  std::vector<std::unique_ptr<segment::Segment>> further; ///< see memory/segments.h; entries may be empty
  std::uint32_t slot = 0;                                 ///< this process's number in it
  std::uint32_t job_size = 0;
  Arena arena;          ///< within this process's region
  Arena far_arena;      ///< outside the regions; empty unless all processes reach everything
  Arena reserved_arena; ///< of reserved huge pages, where there are any
  Blocks blocks;
  KeptBlocks kept; ///< of ordinary_arena()

  /// The arena whose memory every process of the job has mapped.
  Arena& ordinary_arena() { return far_arena.empty() ? arena : far_arena; }
};

/// The one space, never destroyed: exit handlers and forked children may still use it.
extern object::Immortal<Space> space_storage;
inline Space& space() { return space_storage.value; }

/// Opens the arenas. `begin`: where the unused part of this process's region begins. Call it after every process
/// has published how much of the segment it has mapped.
void open_arenas(segment::Offset begin);

} // namespace near::memory
