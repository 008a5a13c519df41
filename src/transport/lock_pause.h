// Lets threads that wait give up the engine lock meanwhile.
#pragma once

#include <cstdint>

namespace near::transport {

/// A number that no other living thread of this process has.
std::uintptr_t this_thread();

/// Gives up the engine lock while this object exists, however often this thread holds it.
class LockPause {
public:
  LockPause();
  ~LockPause();
  LockPause(const LockPause&) = delete;
  LockPause& operator=(const LockPause&) = delete;

private:
  int depth_ = 0;
};

} // namespace near::transport
