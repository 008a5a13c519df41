// Packets that go back and forth between this process and one peer.
//
// A process that has read a packet has its lines in its cache, and the other process would have to fetch them to write
// them again. So a receiver does not return a packet at once, but keeps it for its next messages to the peer that has
// sent it, whoever owns the packet:
//
//   A, owner of the packet              B
//   take it, fill it      -- message -->  read it, keep it
//   read it, keep it      <-- message --  fill it: the reference says that the packet is the receiver's own
//   fill it               -- message -->  ...
//
// Messages take the packets that were kept last, so that as few as possible go back and forth: their lines are in the
// caches of the two. Fragments take those that were kept first. Long messages, and windows of them, sweep the caches anyway
// and need more packets than are kept: theirs are returned at once, if their sender has enough (PacketPool::has_long_turn). Where
// long messages go both ways, a few of the runs that their fragments fill are kept for the next fragments (KeptRuns).
//
// This pays only if there will be such messages. A peer that sends one message after the other needs its packets back:
// so only those of the last few messages that have not been answered are kept, or of as many as there were before the last
// answer: programs often send several messages in each direction before they wait.
//
// The right to return a packet to its owner goes with the message, so there is still one process at a time that may
// write its flag. A process keeps a bounded number of packets for each peer: those that it has read last. It returns
// them all before it sleeps. Packets of the reserve are never kept, so fragments make progress whatever others keep, and
// an eager message without a packet becomes a rendezvous: no message depends on a packet that another process keeps.
//
// doc/adr/0021 has the figures.
#pragma once

#include "shm/wire.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

namespace near::shm {

class KeptPackets {
public:
  static constexpr std::uint32_t most = 32;

  /// Keeps at most `limit` packets from now on; at most `most`.
  void set_limit(std::uint32_t limit) { limit_ = std::min(limit, most); }
  bool empty() const { return count_ == 0; }
  /// A message from the peer has come that lies in packets, or may.
  void message_came() {
    ++unanswered_;
    not_answered_ = 0;
  }
  /// Such a message to the peer is on its way.
  void message_left() {
    if (unanswered_ != 0) usual_ = std::min(unanswered_, longest_window);
    unanswered_ = 0;
    ++not_answered_;
  }
  /// Whether such messages go both ways, not only to the peer.
  bool are_answered() const { return not_answered_ <= few_messages; }
  /// Whether the next message to the peer is likely to need the packet of one that has just come.
  bool expects_answer() const { return unanswered_ <= std::max(few_messages, usual_); }

  /// Keeps a packet that a message from the peer has brought, and calls give_back(reference) with the packet that it
  /// replaces, if any. References are as in the messages that have brought the packets.
  template <class GiveBack>
  void keep(const PacketReference& packet, GiveBack&& give_back) {
    if (limit_ == 0) return give_back(packet);
    if (count_ == limit_) give_back(pop_oldest());
    push(packet);
  }
  std::uint32_t count() const { return count_; }
  /// Takes the packet that was kept last. There must be one.
  PacketReference pop() { return ring_[(first_ + --count_) % most]; }
  /// Takes the packets that were kept last, in the order in which they were kept. There must be so many.
  void pop(std::span<PacketReference> packets) {
    count_ -= static_cast<std::uint32_t>(packets.size());
    for (std::uint32_t i = 0; PacketReference & packet : packets)
      packet = ring_[(first_ + count_ + i++) % most];
  }
  /// Takes the packet that has been kept longest. There must be one.
  PacketReference pop_oldest() {
    const PacketReference packet = ring_[first_];
    first_ = (first_ + 1) % most;
    --count_;
    return packet;
  }
  /// Keeps a packet again that has just been taken and was not sent.
  void push(const PacketReference& packet) { ring_[(first_ + count_++) % most] = packet; }

private:
  static constexpr std::uint32_t few_messages = 2, longest_window = 2 * most;

  std::uint32_t unanswered_ = 0;   ///< messages from the peer since the last one to it
  std::uint32_t not_answered_ = 0; ///< messages to the peer since the last one from it
  std::uint32_t usual_ = 0;        ///< messages from the peer before the last one to it that answered any
  std::array<PacketReference, most> ring_{};
  std::uint32_t first_ = 0, count_ = 0, limit_ = 0;
};

/// Runs of packets (PacketPool::run) that fragments from a peer have brought, for fragments to it, while long messages go both ways.
/// The one that was kept last is used first. They are returned once nothing is left to send, and before the process sleeps.
class KeptRuns {
public:
  static constexpr std::uint32_t most = 8;

  /// Keeps at most `limit` runs from now on; at most `most`.
  void set_limit(std::uint32_t limit) { limit_ = std::min(limit, most); }
  bool empty() const { return count_ == 0; }
  bool is_full() const { return count_ >= limit_; }
  void push(const PacketReference& run) { runs_[count_++] = run; }
  PacketReference pop() { return runs_[--count_]; }

private:
  std::array<PacketReference, most> runs_{};
  std::uint32_t count_ = 0, limit_ = 0;
};

} // namespace near::shm
