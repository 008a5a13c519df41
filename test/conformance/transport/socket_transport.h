// A deliberately plain transport, for the conformance suite: one Unix stream socket to each peer, and nothing shared.
// Everything is copied into frames and out of them; there is no fast path, no flow control but credits, and no cancel.
// It shows that the layers above need nothing of the node transport.
#pragma once

#include "transport/registry.h"

namespace near::test::sockets {

/// Reaches the process `other` at the other end of `descriptor`. Other transports may have been started before.
void start(int descriptor, object::ProcessId other);

} // namespace near::test::sockets
