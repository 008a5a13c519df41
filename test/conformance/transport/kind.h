// What the conformance suite needs of a transport that it runs on.
#pragma once

#include "transport/registry.h"

#include <functional>
#include <string>

namespace near::test {

/// The part that a process takes in a test.
struct Part {
  bool sends = false, receives = false;
  transport::Peer* other =
      nullptr; ///< the receiver for the sender, and the other way round; or this process itself
  /// Returns when the other process has called it too. Bytes of the transport do not move meanwhile.
  std::function<void()> meet;
  /// Returns when the other process has ended. Bytes of the transport do not move meanwhile.
  std::function<void()> wait_for_end;
};

/// A transport under test, and how its processes are made.
class Kind {
public:
  virtual ~Kind() = default;
  virtual std::string name() const = 0;

  /// Runs body() in a process that sends and in one that receives, or in one that does both. Fails the test if a
  /// process does not end with success within a minute, or, with `receiver_dies`, if the receiver ends otherwise than
  /// by SIGKILL.
  virtual void run(const std::function<void(Part&)>& body, bool receiver_dies) = 0;

  // What the transport offers beyond what all must.
  /// Sender and receiver are two processes. Only then is there somebody to die, and to wake.
  virtual bool has_processes() const { return true; }
  /// cancel_rts() succeeds if the receiver has not matched the message yet.
  virtual bool cancels() const { return true; }
  /// The death of a process does not end the other one: what is under way with it fails.
  virtual bool fails_alone() const { return false; }
  /// So many eager messages that have not been released are refused at the latest; 0: none ever is.
  virtual int most_unreleased() const { return 0; }
  /// Eager messages with a waiter wait for space before credits end, if the receiver takes none.
  virtual bool queues_eager() const { return false; }
  /// A process that sleeps until there is space is woken.
  virtual bool announces_space() const { return false; }
  /// A pair that talks gets a fast path (SendState), unless the system has no membarrier.
  virtual bool has_fast_path() const { return false; }
  /// It reaches memory of its peers that they have registered.
  virtual bool reaches_memory() const { return true; }
  /// It reaches private memory through the kernel, which may forbid that.
  virtual bool may_forbid_copies() const { return false; }
};

/// The kind that this test is instantiated for, by its name.
Kind& kind_of(const std::string& name);

} // namespace near::test
