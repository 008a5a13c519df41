// The packets of this process: packets of medium messages and fragments of large ones. It alone takes and writes
// them; receivers read them and give them back.
//
//   packets   | 0 | 1 | 2 | ... | 63 | 64 | ...           packet_bytes each, page-aligned
//   flags   | 5 | 5 | 4 | ... |  5 |  4 | ...           a byte each: the generation in which it came home last
//
// Packet c is free when its flag holds the generation in which it was sent last. The receiver learns the generation with the
// message and stores it when it is done, so a packet comes home with one plain store, in any order, and the
// sender never writes the flags. 64 neighbours are looked at together, when all of the 64 before are used up.
//
// PacketPool are taken in turn, the longest unused first, and there are so many that a line which comes to its
// turn again has left the receiver's cache: writing it then needs no invalidation there (doc/adr/0008). A
// long message sweeps those caches by itself, and then the packets compete with its buffers for the last-level
// cache: its fragments take turns in the first of them only (doc/adr/0014). A process begins with a few; the
// rest of its address range is reserved when there is traffic.
#pragma once

#include "queue/packet_flag.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace near::transport {

using PacketFlag = queue::PacketFlag<>;

class PacketPool {
public:
  static constexpr std::uint32_t none = ~0u;
  /// Packets that only fragments of large messages get: a matched receiver always uses those up, so large messages
  /// move even when kept packets hold all the rest.
  static constexpr std::uint32_t reserve = 8;

  struct Taken {
    std::uint32_t packet = none;
    std::uint8_t generation = 0;
    explicit operator bool() const { return packet != none; }
  };

  /// `packets` and `flags`: page-aligned memory of this process's region, of which all flags and the first
  /// `count` packets are populated; more of them, up to `most`, are when they are needed. count > reserve.
  void build(std::byte* packets, PacketFlag* flags, std::uint32_t count, std::uint32_t most,
             std::uint64_t packet_bytes);
  /// The next free packet outside the reserve.
  Taken take();
  /// For a fragment of a message of `bytes`: the next free packet outside the reserve, for a long message among
  /// the first of them; any packet of the reserve when there is none.
  Taken take_for_fragment(std::uint64_t bytes);
  /// A taken packet that was not sent after all.
  void put_back(Taken taken) { flags_[taken.packet].give_back(taken.generation); }

  std::byte* at(std::uint32_t packet) const { return packets_ + packet * packet_bytes_; }
  std::uint64_t packet_bytes() const { return packet_bytes_; }
  std::uint32_t count() const { return count_; }

private:
  static constexpr std::uint32_t group = 64;
  /// Rounds through the first packets before the rest is reserved.
  static constexpr std::uint32_t rounds_before_growth = 3;

  /// Messages of so many bytes are long, and the packets that their fragments use have so many.
  static constexpr std::uint64_t long_message = 2u << 20, long_turn = 2u << 20;

  Taken mark(std::uint32_t packet) { return {packet, ++generations_[packet]}; }
  Taken take_below(std::uint32_t end);
  bool look_at_next_group(std::uint32_t end);
  [[gnu::cold]] void grow();

  std::byte* packets_ = nullptr;
  PacketFlag* flags_ = nullptr;
  std::uint64_t packet_bytes_ = 0;
  std::uint32_t count_ = 0, most_ = 0;
  std::vector<std::uint8_t> generations_; ///< in which each packet was taken last
  std::uint64_t free_ = 0;  ///< bits: packets of the present group that were seen free and are not yet taken
  std::uint32_t first_ = 0; ///< of the present group
  std::uint32_t rounds_ = 0;
};

} // namespace near::transport
