#include "launch/input.h"

#include "os/descriptor.h"
#include "os/memory.h"

#include <system_error>
#include <thread>

namespace near::launch {
namespace {

constexpr std::size_t piece = std::size_t{64} << 10;

void carry(std::vector<int> pipes) {
  std::vector<char> buffer(piece);
  std::size_t bytes = 0;
  while (!pipes.empty() && os::read_waiting(0, buffer.data(), buffer.size(), bytes) == os::Transfer::some)
    std::erase_if(pipes, [&](int pipe) {
      bool gone = !os::write_all(pipe, buffer.data(), bytes).ok();
      if (gone) os::close_descriptor(pipe);
      return gone;
    });
  for (int pipe : pipes) os::close_descriptor(pipe);
}

} // namespace

base::Result Input::add(int& read_end) {
  int write_end = -1;
  NEAR_TRY(os::make_input_pipe(read_end, write_end));
  pipes_.push_back(write_end);
  return {};
}

base::Result Input::start() {
  if (pipes_.empty()) return {};
  // Never joined: when mpiexec has to end, an input that never ends must not hold it.
  try {
    std::thread(carry, std::move(pipes_)).detach();
  } catch (const std::system_error& refused) {
    return base::fail(base::Code::limit,
                      "cannot start a thread for the ranks' input: {} (ulimit -u, ulimit -v)",
                      refused.code().message());
  }
  pipes_.clear();
  return {};
}

} // namespace near::launch
