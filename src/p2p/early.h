// Messages that this process takes before their receives are posted, because it has nothing else to do (early.cpp).
#pragma once

#include "p2p/engine.h"

namespace near::p2p {

/// Brings the data of an announced message here.
struct Fetch : transport::Transfer {
  Unexpected* message = nullptr;
  EngineRequest* receive = nullptr; ///< that has matched the message meanwhile
};

/// Notes an unexpected message that holds credits, or is announced by a send that is not synchronous. reserve_waiting() was called for it.
void add_waiting(Unexpected& message);
/// Undoes add_waiting(); nothing if it was not called, or the message has been taken.
void remove_waiting(Unexpected& message);
/// Reserves memory for so many waiting messages. Returns false if there is none.
bool reserve_waiting(std::size_t messages);

/// Takes what waits, once polls have found nothing for a while. Returns true if it took anything.
bool take_early();

inline constexpr std::uint64_t longest_quiet_ns = 1'000'000;
/// How many polls have found nothing since something arrived, and how long that must last before a long message is taken.
inline constinit int quiet_polls = 0;
inline constinit std::uint64_t quiet_ns_for_long = longest_quiet_ns;
/// Notes that something has arrived, so that nothing need be taken yet.
inline void note_arrival() { quiet_polls = 0; }
/// Notes that a receive has got a message.
inline void note_match() {
  quiet_polls = 0;
  quiet_ns_for_long = longest_quiet_ns;
}

/// Takes nothing from now on. Returns true if no data is on its way here any more: call it again after progress.
bool end_taking();
/// Notes that the memory of a message that was taken is free again.
void release_taken(std::uint64_t bytes);

} // namespace near::p2p
