// The target's side of handed calls (call_ring.h): whenever this process makes progress, it carries out what other processes on
// this machine have handed to it.
#pragma once

#include "rma/agent.h"
#include "rma/call_ring.h"

#include <vector>

namespace near::object {
struct Window;
}

namespace near::rma {

class RingServer {
public:
  explicit RingServer(object::Window& window) : window_(window) {}
  base::Result start() { return agent_.start(); }

  /// Carries out the calls in the rings. Called from the progress engine.
  void advance();

private:
  void find_new_rings();
  bool serve(CallRing& ring);
  bool carry_out(CallRing& ring, HandedCall& call);

  object::Window& window_;
  std::vector<CallRing*> rings_;
  std::size_t next_ = 0;       ///< the ring to be examined next
  segment::Offset newest_ = 0; ///< the newest ring in the list, as far as this process knows
  Agent<RingServer> agent_{*this};
};

} // namespace near::rma
