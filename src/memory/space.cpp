#include "memory/space.h"

#include "os/memory.h"
#include "os/pages.h"

#include <algorithm>

namespace near::memory {

object::Immortal<Space> space_storage;

void open_arenas(segment::Offset begin) {
  Space& self = space();
  const segment::Segment& job = self.segment;
  const std::uint64_t reach = job.header().reach.load_relaxed();
  const segment::Offset end = job.region(self.row) + std::min<std::uint64_t>(reach, job.stride());
  self.arena.build(job.base() + begin, end > begin ? end - begin : 0, os::page_size(), false);
  if (reach != segment::everything) return;
  if (job.far_stride() != 0) {
    std::byte* far = job.base() + job.far_region(self.row);
    os::advise_huge_pages(far, job.far_stride(), os::HugePages::never); // only on request
    self.far_arena.build(far, job.far_stride(), os::page_size(), false);
  }
  if (job.huge_page_bytes() != 0)
    self.reserved_arena.build(job.base() + job.huge_region(self.row), job.huge_stride(),
                              job.huge_page_bytes(), true);
}

} // namespace near::memory
