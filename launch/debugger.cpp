#include "launch/debugger.h"

#include "os/futex.h"

#include <utility>

// Names and types are fixed by the interface. They must be found among the program's symbols, even after
// strip, and the compiler must not assume that it knows what a debugger stores. Hence `used`, default
// visibility, volatile, and a file that is compiled with debugging information and without link-time
// optimisation (CMakeLists.txt).
#define NEAR_FOR_DEBUGGERS [[gnu::used, gnu::visibility("default")]]

extern "C" {

struct MPIR_PROCDESC {
  char* host_name;
  char* executable_name;
  int pid;
};

NEAR_FOR_DEBUGGERS MPIR_PROCDESC* volatile MPIR_proctable = nullptr;
NEAR_FOR_DEBUGGERS volatile int MPIR_proctable_size = 0;
NEAR_FOR_DEBUGGERS volatile int MPIR_being_debugged = 0;
NEAR_FOR_DEBUGGERS volatile int MPIR_debug_state = 0;
// The presence of these two tells a debugger that this process is not a rank, and that ranks it does not
// attach to continue by themselves.
NEAR_FOR_DEBUGGERS volatile int MPIR_i_am_starter = 1;
NEAR_FOR_DEBUGGERS volatile int MPIR_partial_attach_ok = 1;

void MPIR_Breakpoint();
NEAR_FOR_DEBUGGERS [[gnu::noinline]] void MPIR_Breakpoint() { asm volatile("" ::: "memory"); }

} // extern "C"

namespace near::launch {

bool is_debugged() { return MPIR_being_debugged != 0; }

std::vector<std::string> program_files(const Command& command) {
  std::vector<std::string> files;
  for (const auto& application : command.applications) {
    auto file = os::program_file(application.arguments[0], application.directory);
    if (file.empty()) file = application.arguments[0];
    files.push_back(std::move(file));
  }
  return files;
}

void tell_debugger(std::vector<Debugged> ranks) {
  // These live as long as the process: a debugger may attach to it at any time.
  static std::vector<Debugged> kept;
  static std::vector<MPIR_PROCDESC> table;
  kept = std::move(ranks);
  for (auto& rank : kept) table.push_back({rank.machine.data(), rank.program.data(), rank.pid});
  MPIR_proctable = table.data();
  MPIR_proctable_size = static_cast<int>(table.size());
  constexpr int spawned = 1; // MPIR_DEBUG_SPAWNED
  MPIR_debug_state = spawned;
  MPIR_Breakpoint();
}

void hold(segment::Segment& segment) { segment.header().held.store_relaxed(1); }

void let_go(segment::Segment& segment) {
  segment.header().held.store_relaxed(0);
  os::futex_wake_all(segment.header().ready.address());
}

} // namespace near::launch
