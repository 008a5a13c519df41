// Puts and gets that the network performs on registered memory (transport/access.h), without the target's program.
#pragma once

#include "rma/state.h"

#include <functional>
#include <memory>
#include <vector>

namespace near::rma {

/// One put or get. It deletes itself when it is complete at the origin.
struct Direct : transport::Access {
  Pending operation;
  int rank = 0;
  bool writes = false;
  std::vector<os::Run> theirs, mine;
  std::function<void(Direct& direct, int error)> over; ///< called when it is complete at the origin

  /// Returns null if the network does not reach the memory, or if
  /// messages are better because the data are few or many short pieces.
  static std::unique_ptr<Direct> make(const Window& window, bool writes, const Buffer& here, int rank,
                                      const Buffer& there, const Pending& operation);
  /// Begins the operation. The object may be gone on return.
  static void begin(std::unique_ptr<Direct> direct, const Window& window);
};

/// Registers this process's part with the network if some processes of the window are on other machines, and sets mine.key.
/// Memory that cannot be registered is reached by messages.
void expose(Window& window, Member& mine);

} // namespace near::rma
