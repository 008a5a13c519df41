#include "object/window.h"

#include "base/log.h"

namespace near::object {

namespace {
constinit Immortal<Pool<Window, Kind::window>> window_pool;
}

Pool<Window, Kind::window>& windows() { return window_pool.value; }

Window* find_window(MPI_Win handle) {
  return window_pool.value.find(reinterpret_cast<std::uintptr_t>(handle));
}

Window* make_window(Communicator* communicator) {
  Window* made = window_pool.value.make();
  if (made == nullptr) {
    release(communicator);
    return nullptr;
  }
  made->communicator = communicator;
  made->error_handler = errors_are_fatal();
  return made;
}

void destroy(Window* window) {
  release(window->communicator);
  release(window->error_handler);
  if (window->info != nullptr) release(window->info);
  window_pool.value.destroy(window);
}

std::string describe(const Window& window) {
  return window.name.empty() ? base::format("window {:#x}", window.handle) : window.name;
}

} // namespace near::object
