// The packets of this process, for medium messages and for fragments of large ones. Only this process takes
// and writes them; receivers read them and return them.
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
// Packets are used in rotation, the least recently used one first. There are so many of them that the lines
// of a packet have left the receiver's cache when its turn comes again, so that writing them needs no
// invalidation there (doc/adr/0008). A long message sweeps those caches anyway, and its packets compete with
// its buffers for the last-level cache; so its fragments rotate through the first packets only
// (doc/adr/0014). A process starts with a few packets and reserves the others when there is traffic.
#pragma once

#include "queue/packet_flag.h"

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

  struct Taken {
    std::uint32_t packet = none;
    std::uint8_t generation = 0;
    explicit operator bool() const { return packet != none; }
  };

  /// `packets` and `flags` are page-aligned memory of this process's region. All flags and the first `count`
  /// packets are populated; further packets, up to `most`, are populated when they are needed. `count` must
  /// exceed `reserve`.
  void build(std::byte* packets, PacketFlag* flags, std::uint32_t count, std::uint32_t most,
             std::uint64_t packet_bytes);
  /// Takes the next free packet outside the reserve. The result converts to false if there is none.
  Taken take();
  /// Takes a packet for a fragment of a message of `bytes` bytes: the next free one outside the reserve (for
  /// a long message, one of the first packets), otherwise any free one of the reserve. The result converts to
  /// false if there is none.
  Taken take_for_fragment(std::uint64_t bytes);
  /// Returns a packet that was taken but not sent.
  void put_back(Taken taken) { flags_[taken.packet].give_back(taken.generation); }

  std::byte* at(std::uint32_t packet) const { return packets_ + packet * packet_bytes_; }
  std::uint64_t packet_bytes() const { return packet_bytes_; }
  std::uint32_t count() const { return count_; }

private:
  static constexpr std::uint32_t group = 64;
  /// The other packets are reserved after this many rounds through the first ones.
  static constexpr std::uint32_t rounds_before_growth = 3;

  /// A message of at least `long_message` bytes is long; its fragments rotate through `long_turn` bytes of
  /// packets.
  static constexpr std::uint64_t long_message = 2u << 20, long_turn = 2u << 20;

  Taken mark(std::uint32_t packet) { return {packet, ++generations_[packet]}; }
  Taken take_below(std::uint32_t end);
  bool look_at_next_group(std::uint32_t end);
  [[gnu::cold]] void grow();

  std::byte* packets_ = nullptr;
  PacketFlag* flags_ = nullptr;
  std::uint64_t packet_bytes_ = 0;
  std::uint32_t count_ = 0, most_ = 0;
  std::vector<std::uint8_t> generations_; ///< of each packet, when it was last taken
  std::uint64_t free_ = 0;  ///< bits: packets of the current group that were found free and not yet taken
  std::uint32_t first_ = 0; ///< the first packet of the current group
  std::uint32_t rounds_ = 0;
};

} // namespace near::shm
