// A transport in one process, under the test's control. Messages to process 0, this one, arrive at the next
// progress(); messages to others are recorded, and the test acts for these processes.
#pragma once

#include "transport/transport.h"

#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace near::transport {

namespace fake {

struct FakePeer : Peer {
  int number = 0;
  int credits_out = 0; ///< eager messages of this peer that p2p has not released
  int packets_out = 0; ///< packets of this peer that p2p keeps
};

/// A message that is under way or recorded.
struct Sent {
  FakePeer* to = nullptr;
  Envelope envelope;
  std::vector<std::byte> data;  ///< of an eager message
  Transfer* transfer = nullptr; ///< of an RTS
  std::uint64_t rts_number = 0;
};

struct World {
  std::vector<FakePeer> peers{8};
  std::vector<Sent> sent; ///< to other processes
  int eager_left = 1 << 30;
  int rts_left = 1 << 30;
  bool may_come_early = false; ///< what an RTS that arrives says
  int unexpected = 0;          ///< unexpected messages, as counted by p2p
  int wakes = 0;               ///< calls of wake_waiting_threads()
  int looks = 0;               ///< calls of progress()
  int yields = 0;              ///< of polls
  int first_yields = 0;        ///< of these, the first ones since something had come
  std::function<void()> when_yielding;
};
World& world();

/// Returns to the initial state. Fails the test if p2p still holds anything.
void reset();
/// Whether p2p has given back every credit and packet.
bool nothing_held();

/// An eager message with `text` arrives from a process. If it is longer than 64 bytes, it is in a packet.
void arrive(int from, const Envelope& envelope, const std::string& text);
/// An RTS for `text` arrives; it can be withdrawn until it is accepted. Returns its number.
std::uint64_t arrive_rts(int from, const Envelope& envelope, const std::string& text);
/// Whether the RTS with this number has been accepted.
bool is_accepted(std::uint64_t rts_number);
/// Withdraws the RTS with this number, as its sender would.
void withdraw(std::uint64_t rts_number);
/// False: the data of accepted messages arrives when finish_moving() is called.
void move_at_once(bool at_once);
void finish_moving(int error = MPI_SUCCESS);
/// The receiver of a recorded RTS has received all data of the message.
void finish_sent(std::size_t index, int error = MPI_SUCCESS);
/// The receiver of a recorded RTS has matched it, so it can no longer be cancelled.
void match_sent(std::size_t index);
/// Whether a recorded RTS was cancelled.
bool cancelled(std::size_t index);

} // namespace fake
} // namespace near::transport
