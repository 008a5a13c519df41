// The interface between the conformance suite and a transport that it runs on.
#pragma once

#include "transport/registry.h"

#include <functional>
#include <string>

namespace near::test {

/// The role of a process in a test.
struct Part {
  bool sends = false, receives = false;
  /// The receiver for the sender and vice versa; or this process itself.
  transport::Peer* other = nullptr;
  /// Returns when the other process has also called it. The transport makes no progress meanwhile.
  std::function<void()> meet;
  /// Returns when the other process has ended. The transport makes no progress meanwhile.
  std::function<void()> wait_for_end;
};

/// A transport under test, and the way to start its processes.
class Kind {
public:
  virtual ~Kind() = default;
  virtual std::string name() const = 0;

  /// Runs body() in a process that sends and in one that receives, or in one that does both. Fails the test if a
  /// process does not end successfully within a minute, or, with `receiver_dies`, if SIGKILL does not end the
  /// receiver.
  virtual void run(const std::function<void(Part&)>& body, bool receiver_dies) = 0;

  // Optional properties of a transport.
  /// Sender and receiver are two processes, so one can die or wake the other.
  virtual bool has_processes() const { return true; }
  /// cancel_rts() succeeds if the receiver has not matched the message yet.
  virtual bool cancels() const { return true; }
  /// The death of a process does not end the other one: transfers under way between them fail.
  virtual bool fails_alone() const { return false; }
  /// A process can end, and learn that a message cannot be cancelled, although its peer makes no progress.
  virtual bool acts_alone() const { return true; }
  /// The largest number of unreleased eager messages before further ones are refused; 0: no limit.
  virtual int most_unreleased() const { return 0; }
  /// Whether so many short messages leave before one is refused.
  virtual bool uses_all_credits() const { return false; }
  /// It numbers messages, and sends only so many before the receiver has confirmed some.
  virtual bool has_window() const { return false; }
  /// If the receiver takes no messages, eager messages with a waiter wait for space before credits run out.
  virtual bool queues_eager() const { return false; }
  /// A process that sleeps until there is space is woken when there is.
  virtual bool announces_space() const { return false; }
  /// A pair that talks gets a fast path (SendState), unless the system has no membarrier.
  virtual bool has_fast_path() const { return false; }
  /// It can access memory that its peers have registered.
  virtual bool reaches_memory() const { return true; }
  /// A put is done only when its target has made progress.
  virtual bool writes_wait() const { return false; }
  /// A long message moves only while both processes poll.
  virtual bool needs_polls() const { return false; }
  /// It accesses private memory through the kernel, which may forbid this.
  virtual bool may_forbid_copies() const { return false; }
};

/// Returns the kind with this name.
Kind& kind_of(const std::string& name);

} // namespace near::test
