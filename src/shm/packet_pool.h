// The packets of this process, for medium messages and for fragments of large ones. Only this process takes
// them. Receivers read them and return them, perhaps after they have sent a message of their own in them (kept_packets.h).
//
//   packets | 0 | 1 | 2 | ... | 63 | 64 | ...           packet_bytes each, page-aligned
//   flags   | 5 | 5 | 4 | ... |  5 |  4 | ...           one byte each: the generation that was returned last
//
// A packet is free if its flag holds the generation in which it was last sent. The message tells its receiver
// the generation, and the receiver stores it in the flag once it has read the packet. So a packet is returned
// by one plain store, packets return in any order, and the sender does not write the flags of packets that it
// has sent. The flags of 64 adjacent packets are read together, once all packets of the previous 64 have been
// used.
//
// Packets are used in rotation, the least recently used one first, so that the lines of a packet have as much
// time as possible to leave the receiver's cache: then writing them needs no invalidation there (doc/adr/0008).
// A long message sweeps those caches anyway, and its packets compete with its buffers for the last-level cache;
// so its fragments rotate through the first packets only (doc/adr/0014).
//
// A process starts with a few packets, more in small jobs. Others are added one by one, mainly when an eager message
// finds none: the kernel needs 10 to 20 us for the pages of a packet. For a similar reason eager messages rotate
// through few packets at first: a receiver has a page fault at packets that it has not read before
// (doc/adr/0018).
#pragma once

#include "queue/packet_flag.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace near::shm {

using PacketFlag = queue::PacketFlag<>;

class PacketPool {
public:
  static constexpr std::uint32_t none = ~0u;
  /// This many packets are for fragments of large messages only. A matched receiver always returns those, so
  /// large messages make progress even while unexpected messages hold all other packets.
  static constexpr std::uint32_t reserve = 8;

  /// The number of adjacent packets in a run, which one fragment may fill (doc/adr/0052).
  static constexpr std::uint32_t run = 4;

  struct Taken {
    std::uint32_t packet = none;
    std::uint8_t generation = 0;
    explicit operator bool() const { return packet != none; }
  };

  /// `packets` and `flags` are page-aligned memory of this process's region. All flags and the first `count`
  /// packets are populated; the others, up to `most`, are populated later. There is memory for all of them.
  /// `count` must exceed `reserve`.
  void build(std::byte* packets, PacketFlag* flags, std::uint32_t count, std::uint32_t most,
             std::uint64_t packet_bytes);
  /// Takes a packet for an eager message of `bytes` bytes: the next free one of the rotation, otherwise any free one
  /// outside the reserve; if there is none, one is added, which is a system call. `in_stream`: the message follows another
  /// one that was not answered. The result converts to false if there is none and no further one can be added.
  Taken take(std::uint64_t bytes, bool in_stream);
  /// Takes a packet for a train, as for an eager message, but never adds one: a train would wait for many system
  /// calls. The result converts to false if there is none.
  Taken take_for_train(bool in_stream);
  /// Call after a train of so many packets has found too few: adds one, until there are enough for several such trains. A send tries
  /// twice (p2p/send.cpp), so that it adds two at most.
  void add_for_trains(std::uint32_t packets);
  /// Takes a packet for a fragment: the next free one outside the reserve (if many bytes are on their way to the
  /// receiver, one of the first packets), otherwise any free one of the reserve. The result converts to false if there is
  /// none.
  Taken take_for_fragment(std::uint64_t on_their_way);
  /// Whether fragments should fill runs while so many bytes are on their way to a process. Not if packets are as long themselves.
  bool uses_runs(std::uint64_t on_their_way) const {
    return on_their_way >= many_bytes && packet_bytes_ * run <= longest_run;
  }
  /// Takes a run for such a fragment. The result, the first of its packets, converts to false if there is none.
  Taken take_run();
  /// Returns a run, as put_back() does.
  void put_back_run(Taken taken) {
    for (std::uint32_t i = 0; i < run; ++i) put_back({taken.packet + i, taken.generation});
  }
  /// Whether so many bytes are on their way to a process, in one message or in several, and there are so many packets,
  /// that fragments rotate through `long_turn` bytes of them, and none are kept.
  bool has_long_turn(std::uint64_t on_their_way) const;
  /// Call after a fragment in so many packets has been sent: if very many bytes are on their way, this adds packets until has_long_turn().
  void fragment_left(std::uint64_t on_their_way, std::uint32_t packets);
  /// Returns a packet that was taken and not sent, or that has come back in a message (kept_packets.h).
  void put_back(Taken taken) { flags_[taken.packet].give_back(taken.generation); }

  /// Fetches the first `bytes` bytes of the packet that is probably taken next, for writing: its lines may still be in the
  /// cache of the receiver that has read them.
  void fetch_next(std::uint64_t bytes) const {
    if (free_ == 0) return;
    base::fetch_for_writing(at(first_ + static_cast<std::uint32_t>(std::countr_zero(free_))), bytes);
  }

  std::byte* at(std::uint32_t packet) const { return packets_ + packet * packet_bytes_; }
  std::uint64_t packet_bytes() const { return packet_bytes_; }
  std::uint32_t count() const { return count_; }

private:
  static constexpr std::uint32_t group = 64;
  /// A packet is added when an eager message finds no free one, and after this many eager messages. Those of streams, and
  /// fragments among very many bytes, gain from many packets and count several times (doc/adr/0018, 0014). The system call takes
  /// 10 us.
  static constexpr std::uint32_t uses_before_growth = 4096, uses_in_stream = 16, uses_in_long_turn = 16;

  /// Eager messages rotate through twice `few` packets at first, and through `few` more each time. Four packets of
  /// 16 KiB are what Linux maps at a page fault of the receiver (64 KiB).
  static constexpr std::uint32_t few = 4, uses_before_widening = 32;
  /// Shorter messages that are answered stay within the first `enough_for_short` packets: more would only cost the receiver
  /// page faults.
  static constexpr std::uint64_t short_message = 2048;
  static constexpr std::uint32_t enough_for_short = 32;

  /// With `many_bytes` on their way, fragments rotate through `long_turn` bytes of packets.
  static constexpr std::uint64_t many_bytes = 2u << 20, long_turn = 1u << 20;
  /// With this many, they add packets until there are enough for that: it gains them a sixth of their time.
  static constexpr std::uint64_t adds_packets = 4u << 20;

  /// Packets are added for so many trains under way, but no more than small jobs with a processor for each rank start with.
  static constexpr std::uint32_t several_trains = 4, enough_for_trains = 64;

  static constexpr std::uint64_t longest_run = 64u << 10;

  std::uint32_t packets_in_long_turn() const { return static_cast<std::uint32_t>(long_turn / packet_bytes_); }
  Taken mark(std::uint32_t packet) { return {packet, ++generations_[packet]}; }
  Taken take_below(std::uint32_t end);
  Taken mark_run(std::uint32_t first);
  bool look_at_next_group(std::uint32_t end);
  [[gnu::cold]] bool grow();
  [[gnu::cold]] Taken widen(Taken taken, std::uint32_t most);
  [[gnu::cold]] [[gnu::noinline]] Taken take_any_or_grow();

  std::byte* packets_ = nullptr;
  PacketFlag* flags_ = nullptr;
  std::uint64_t packet_bytes_ = 0;
  std::uint32_t count_ = 0, most_ = 0;
  std::vector<std::uint8_t> generations_; ///< of each packet, when it was last taken
  std::uint64_t free_ = 0;  ///< bits: packets of the current group that were found free and not yet taken
  std::uint32_t first_ = 0; ///< the first packet of the current group
  std::uint32_t turn_ = 0;  ///< packets below this one are in the rotation of eager messages; at most count_
  std::uint32_t uses_since_widening_ = 0; ///< by eager messages
  std::uint32_t uses_since_growth_ = 0;   ///< by eager messages, and fragments of long ones
};

} // namespace near::shm
