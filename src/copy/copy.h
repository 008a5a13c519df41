// Copy kernels: copies with stores that stay in the cache or bypass it.
//
// Between two cores, loads of lines that the other core has written are rarely slow, since the hardware
// prefetches them. What is slow is the first store to a line that the other core has read since: its copy
// must be invalidated, and stores do not overlap as loads do. Streaming stores do not wait for this
// (measurements: doc/adr/0006-stores-to-lines-that-others-read.md).
//
// One streaming kernel is chosen at start-up, according to what the processor and the operating system support. This
// layer does not decide which kind of store is faster: the caller knows, or has measured, which process reads the
// bytes next.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace near::copy {

/// What the stores of a copy do with the cache lines of the destination.
enum class Store {
  cached,    ///< lines stay in this core's cache, for a reader on this core or soon
  streaming, ///< data go to memory without fetching the lines first, for a reader elsewhere
};

/// Copies `bytes` bytes between ranges that do not overlap, of any alignment. Accesses nothing outside them.
/// The stores of a streaming copy precede every later store of this thread, so that a release store publishes
/// them like ordinary ones.
void copy(void* to, const void* from, std::size_t bytes, Store how);

struct StridedKernel;
struct WindowKernel;

/// An implementation of copies for one instruction set.
struct Kernel {
  std::string_view name;
  /// What the processor must have and the system must support; empty if every processor of the architecture
  /// has it.
  std::string_view needs;
  bool (*runs)();
  void (*streaming)(void* to, const void* from, std::size_t bytes);
  void (*looping)(void* to, const void* from, std::size_t bytes); ///< with ordinary stores
  const StridedKernel* strided;                                   ///< strided.h
  const WindowKernel* windows; ///< windows.h; nullptr if loops over blocks are faster
};

/// The kernels for this architecture, the most capable first, including those that this processor cannot run.
std::span<const Kernel> kernels();

/// The kernel in use.
const Kernel& chosen();
/// The kernel in use and the reason for it, as a phrase for the user.
std::string kernel_name();

/// Selects the kernel of this name, for tests and benchmarks. No other thread may be copying. If no such
/// kernel exists or it cannot run here, changes nothing and returns false.
bool choose(std::string_view name);

} // namespace near::copy
