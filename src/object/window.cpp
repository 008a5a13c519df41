#include "object/window.h"

#include "base/log.h"

namespace near::object {

namespace {
constinit Immortal<Pool<Window, Kind::window>> pool;
}

Pool<Window, Kind::window>& windows() { return pool.value; }

Window* find_window(MPI_Win handle) { return pool.value.find(reinterpret_cast<std::uintptr_t>(handle)); }

Window* make_window(Communicator* communicator) {
  Window* made = pool.value.make();
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
  pool.value.destroy(window);
}

std::string describe(const Window& window) {
  return window.name.empty() ? base::format("window {:#x}", window.handle) : window.name;
}

} // namespace near::object
