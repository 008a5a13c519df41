// Copy kernels: bytes from one place to another, with stores that stay in the cache or go round it.
//
// One kernel is chosen at start from what the processor and the system support. Which kind of store pays is
// not decided here: it depends on where the bytes are and who reads them next, which the caller knows or has
// measured.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace near::copy {

/// What the stores of a copy do with the destination's cache lines.
enum class Store {
  cached,    ///< they stay in this core's cache, for a reader here or soon
  streaming, ///< they go to memory without being fetched first, for a reader elsewhere or late
};

using Function = void (*)(void* to, const void* from, std::size_t bytes) noexcept;

/// One implementation of both kinds, for one set of instructions.
struct Kernel {
  std::string_view name;
  Function cached;
  Function streaming;
  /// What the processor must have, and the system support, to run it; empty when every one of the
  /// architecture has it.
  std::string_view needs;
  bool (*runs)();
};

/// Copies `bytes` between ranges that do not overlap, of any alignment. It touches nothing outside them.
/// After a streaming copy its stores are ordered before every later store of this thread, so that a release
/// store publishes them like ordinary ones.
void copy(void* to, const void* from, std::size_t bytes, Store how);

/// The kernels of this architecture, the most capable first; also those that this processor cannot run.
std::span<const Kernel> kernels();

/// The kernel in use.
const Kernel& chosen();
/// The kernel in use and why, as one phrase for the user.
std::string kernel_name();

/// Makes the kernel of that name the one in use, for tests and benchmarks, while no other thread copies.
/// False, and nothing changed, when there is none of that name or it cannot run here.
bool choose(std::string_view name);

} // namespace near::copy
