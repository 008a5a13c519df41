// Copies between this process's memory and the private memory of a peer, by the kernel.
#pragma once

#include "os/peer_memory.h"

#include <span>

namespace near::transport {

struct Peer;

/// Whether the kernel copies from and to the private memory of another process, by trying both.
bool reaches_memory_of(Peer& peer);
/// Copy between runs of the peer's memory and runs of this process's memory. Both sides have the same number
/// of bytes, in at most 1024 runs each. False if part of the peer's memory is not mapped; then any part may
/// have been copied. The contents of `theirs` and `mine` are unspecified afterwards.
bool copy_from_peer(Peer& peer, std::span<os::Run> theirs, std::span<os::Run> mine);
bool copy_to_peer(Peer& peer, std::span<os::Run> theirs, std::span<os::Run> mine);

} // namespace near::transport
