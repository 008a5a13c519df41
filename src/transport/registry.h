// How a transport takes part: it registers itself when it starts, and this layer drives it from then on.
//
//   connect      maps a peer at the first message to it
//   progress     every transport is polled; a process that waits sleeps on its doorbell, and on the descriptors of those
//                transports that have one
//   ending       no process leaves while any of its messages may still be received
#pragma once

#include "transport/transport.h"

namespace near::transport {

struct Transport {
  const char* name;
  /// Returns the peer if this transport reaches the process, else nullptr. Throws std::bad_alloc, or Unreachable if it
  /// should reach the process but cannot.
  Peer* (*connect)(object::ProcessId process);
  void (*set_handler)(Handler handler, HandlerFunction function);

  // Progress. All functions but has_arrived() are called under the engine lock.
  /// Whether advance() has nothing to do. Costs a few loads.
  bool (*is_idle)();
  /// Moves a bounded number of messages. Returns true if any moved.
  bool (*advance)();
  /// Whether a message has arrived, or advance() has something to do: the last check before a sleep, which prepares
  /// `descriptor` for it. Called without the engine lock.
  bool (*has_arrived)();
  /// Whether something waits for a resource whose release is announced only on request. Null if that never happens.
  bool (*waits_for_flow_control)();
  /// Requests such announcements. The next advance() finds what was released before.
  void (*register_as_waiter)();
  /// Becomes readable when something has arrived; -1 if the doorbell is rung instead.
  int descriptor;
  /// Neither a descriptor nor the doorbell reports arrivals: a process that waits checks again and again.
  bool is_silent = false;
  /// The shortest time, in nanoseconds, for which a process that waits polls before it sleeps: what is under way may move only while
  /// somebody polls, and may report nothing before it has ended. Null if that is no reason to poll.
  std::uint64_t (*polling_ns)() = nullptr;
  /// Called when other transports exist: from then on is_idle() returns false. Null if is_idle() is always exact.
  void (*poll_always)();

  // Ending
  void (*receive_no_more)();
  bool (*sends_settled)();
  /// Whether everything that this process has sent has left it.
  bool (*is_drained)();
  /// Ends the transport: the last call, after which no message follows.
  void (*leave)();
};

/// Registers a transport. Processes are reached by the first one that can, so the node transport is added before all
/// others: its messages may arrive from any process of this job on this machine. At most 4.
void add(const Transport& transport);
/// Whether any transport is registered.
bool has_transports();

/// To be called when a peer has failed while this process's job goes on. Nothing more is sent to or received from the peer:
/// what is under way ends with MPI_ERR_PROC_ABORTED, and so does what is begun later. Only messages that have already
/// arrived can still be received, in order; one that was only announced ends its receive with that error.
void fail(Peer& peer);

/// A sleep without a wake-up ends after this time, so that events that wake nobody (a peer that calls
/// MPI_Finalize) are noticed.
inline constexpr std::uint64_t sleep_limit_ns = 10'000'000;

/// How this process waits and is woken. The node transport sets it when it starts; without one, no process rings.
struct WaitSettings {
  segment::Doorbell* doorbell = nullptr;
  base::Atomic<std::uint64_t>* sleeps = nullptr;   ///< counts sleeps, for reports
  std::uint64_t spin_ns = 100'000;                 ///< the time for which the process polls before it sleeps
  std::uint64_t first_sleep_ns = sleep_limit_ns;   ///< each further sleep of one wait takes twice as long,
  std::uint64_t longest_sleep_ns = sleep_limit_ns; ///< up to this
  /// The interval at which a process that sleeps on descriptors checks the transports that have none.
  std::uint64_t descriptor_sleep_ns = 1'000'000;
  bool fences = false;           ///< the kernel has no expedited barrier: senders fence
  bool oversubscribed = false;   ///< ranks share processors: waits yield
  bool may_sleep_at_once = true; ///< waits may sleep before they poll, if yields take long (long_turns.h)
  /// Polls make system calls anyway, since there is a network, so a wait may yield to learn whether others want its processor
  /// (competition.h). On one machine, ranks with processors of their own make no system calls while they exchange messages.
  bool may_yield_to_learn = false;
};
extern WaitSettings wait_settings;

/// Raises the bells of the processes of this job in `bits`: bit N stands for every process whose row is N modulo 64.
void raise_bells(std::uint64_t bits);

/// Returns the peer for `process` if it is mapped, else nullptr.
Peer* mapped_peer(object::ProcessId process);

/// Sets whether MPI runs in this process. It does not in a child made by fork().
void set_running(bool running);

} // namespace near::transport
