// `near top`: what each rank of a job is doing, read from the job's segment.
#include "base/text.h"
#include "os/clock.h"
#include "os/descriptor.h"
#include "os/memory.h"
#include "segment/activity.h"
#include "surface/functions.h"
#include "tools/commands.h"
#include "tools/rounds.h"

#include <cstdio>
#include <vector>

namespace near::tools {

namespace {

int show(const segment::Segment& segment, int descriptor, std::int32_t launcher, bool once,
         double interval_s) {
  Rounds rounds;
  if (!rounds.open(launcher).ok()) return complain();
  bool terminal = os::is_terminal(1);
  for (;;) {
    if (terminal && !once) std::fputs("\033[H\033[J", stdout);
    std::printf("%s: %s, %u ready, %s\n%s", segment.name().c_str(),
                base::counted(segment.job_size(), "rank").c_str(), segment.header().ready.load_relaxed(),
                base::counted(segment.cores(), "processor").c_str(),
                segment::job_table(segment, descriptor, {surface::function_name, surface::function_tells},
                                   os::monotonic_ns())
                    .c_str());
    if (!terminal && !once) std::puts("");
    std::fflush(stdout);
    if (once) return 0;
    if (rounds.ends_within(interval_s)) {
      std::puts("the job has ended");
      return 0;
    }
  }
}

} // namespace

int top(std::int32_t launcher, bool once, double interval_s) {
  int descriptor = -1;
  if (!segment::open_job(launcher, descriptor).ok()) return complain();
  segment::Segment segment;
  int status = segment.attach(descriptor, false).ok() ? show(segment, descriptor, launcher, once, interval_s)
                                                      : complain();
  os::close_descriptor(descriptor);
  return status;
}

} // namespace near::tools
