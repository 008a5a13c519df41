// A deliberately plain transport, for the conformance suite: one Unix stream socket to each peer, and nothing shared.
// Everything is copied into frames and out of them; there is no fast path, no flow control except credits,
// and no cancellation. It shows that the layers above do not depend on the node transport.
#pragma once

#include "transport/registry.h"

namespace near::test::sockets {

/// Starts the transport to the process `other` at the other end of `descriptor`. Other transports may already
/// have been started.
void start(int descriptor, object::ProcessId other);

} // namespace near::test::sockets
