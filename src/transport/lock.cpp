// The one lock of the engine.
#include "base/atomic.h"
#include "transport/lock_pause.h"
#include "transport/transport.h"

#include <pthread.h>

namespace near::transport {

namespace {

/// The engine lock and its holder. The lock protects everything here except `owner`. Never destroyed.
struct LockState {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  base::Atomic<std::uintptr_t> owner{0};
  int depth = 0;
};
LockState& lock_state() {
  static LockState& state = *new LockState;
  return state;
}

} // namespace

std::uintptr_t this_thread() {
  thread_local char mark;
  return reinterpret_cast<std::uintptr_t>(&mark);
}

LockPause::LockPause() {
  LockState& state = lock_state();
  if (state.owner.load_relaxed() != this_thread()) return;
  depth_ = state.depth;
  state.depth = 0;
  state.owner.store_relaxed(0);
  pthread_mutex_unlock(&state.mutex);
}

LockPause::~LockPause() {
  if (depth_ == 0) return;
  LockState& state = lock_state();
  pthread_mutex_lock(&state.mutex);
  state.owner.store_relaxed(this_thread());
  state.depth = depth_;
}

void EngineLock::enter() {
  LockState& state = lock_state();
  if (state.owner.load_relaxed() != this_thread()) {
    pthread_mutex_lock(&state.mutex);
    state.owner.store_relaxed(this_thread());
  }
  ++state.depth;
}

void EngineLock::leave() {
  LockState& state = lock_state();
  if (--state.depth != 0) return;
  state.owner.store_relaxed(0);
  pthread_mutex_unlock(&state.mutex);
}

} // namespace near::transport
