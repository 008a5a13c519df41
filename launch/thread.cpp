#include "launch/thread.h"

#include <system_error>
#include <thread>

namespace near::launch {

base::Result start_thread(const char* purpose, std::function<void()> work) {
  try {
    std::thread(std::move(work)).detach();
  } catch (const std::system_error& refused) {
    return base::fail(base::Code::limit, "cannot start a thread for {}: {} (ulimit -u, ulimit -v)", purpose,
                      refused.code().message());
  }
  return {};
}

} // namespace near::launch
