// Takes messages before their receives are posted, while this process has nothing else to do (early.cpp).
#pragma once

#include "p2p/engine.h"

namespace near::p2p {

/// The transfer that brings the data of an announced message here.
struct Fetch : transport::Transfer {
  Unexpected* message = nullptr;    ///< nullptr if the fetch has been given up
  EngineRequest* receive = nullptr; ///< the receive that has since matched the message
};

/// Notes an unexpected message that may be taken: it holds credits, or the send that announces it is not synchronous.
void add_waiting(Unexpected& message);
/// Undoes add_waiting(); does nothing if that was not called, or if the message has been taken.
void remove_waiting(Unexpected& message);

/// Whether there are messages that only a wait takes. The program's polls take the others in the background.
inline constinit bool waits_may_take = false;
/// Takes some of the waiting messages if polls have found nothing for a while. Returns true if it took any. `waits` is true for calls
/// from a wait: then time counts as well as polls.
bool take_early(bool waits);
/// How long a wait may sleep before it calls take_early() again, in nanoseconds.
std::uint64_t longest_sleep_before_taking();
/// Stops taking messages early.
void end_taking();
/// Whether the data of any message is still on its way here.
bool is_fetching();
/// Notes that `bytes` of memory of a message taken early are free again.
void release_taken(std::uint64_t bytes);

inline constexpr std::uint64_t longest_quiet_ns = 1'000'000;
/// How many polls have found nothing. Counting stops once there are enough.
inline constinit int quiet_polls = 0;
/// How long a wait must have found nothing before a long message is taken.
inline constinit std::uint64_t quiet_ns_for_long = longest_quiet_ns;
/// After this time short messages are taken even if others keep coming, because the others may depend on them.
inline constinit std::uint64_t longest_wait_ns = 10'000'000;
/// The number of receives whose announced message is on its way.
inline constinit std::size_t receives_under_way = 0;

/// Notes that a receive has matched a message.
inline void note_match() { quiet_ns_for_long = longest_quiet_ns; }
/// For tests: takes messages early again after end_taking().
void begin_taking();

} // namespace near::p2p
