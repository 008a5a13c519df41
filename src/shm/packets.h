// Packets of messages to and from a peer (packets.cpp): where they are, who takes them, and who returns them.
#pragma once

#include "shm/engine.h"

#include <span>

namespace near::shm {

/// Returns where a packet that a message to or from this peer names is mapped. `is_ours`: it is one of this process's.
inline std::byte* packet_at(const Peer& peer, std::uint32_t packet, bool is_ours) {
  return is_ours ? engine().packets.at(packet) : peer.packets + packet * peer.packet_bytes;
}
/// Returns the number by which the layers above know a packet in use; never 0.
inline std::uint64_t packet_of(const PacketReference& reference) {
  return (std::uint64_t{reference.is_receivers} << 40 | std::uint64_t{reference.generation} << 32 |
          reference.packet) +
         1;
}

/// A packet that is about to be sent, and where to put the payload.
struct OutgoingPacket {
  PacketReference reference{};
  std::byte* at = nullptr; ///< nullptr: there is no packet
  bool was_kept = false;
  explicit operator bool() const { return at != nullptr; }
  /// Whether no peer has read it yet, so that its lines are in no other cache. True once in 256 later uses too.
  bool is_new() const { return reference.generation == 1; }
};
/// Takes a packet for an eager message of `bytes` bytes to this peer: a kept one, or one of this process's.
OutgoingPacket take_packet(Peer& peer, std::uint64_t bytes);
/// Takes as many packets for the parts of a message, each of `bytes` bytes at most. Returns false, and takes none, if there
/// are not enough.
bool take_packets(Peer& peer, std::uint64_t bytes, std::span<OutgoingPacket> packets);
/// Bytes of this message and of those that go to the peer with it. Nobody has asked for an eager prefix yet.
inline std::uint64_t bytes_on_their_way(const Peer& peer, const Transfer& transfer) {
  return std::max(peer.to_send.most(), transfer.bytes);
}
/// Takes a packet, or a run, for the next fragment of this transfer; its reference says how long that is.
OutgoingPacket take_packet_for_fragment(Peer& peer, const Transfer& transfer);
/// Takes back a packet that was not sent.
void put_back(Peer& peer, const OutgoingPacket& packet);
/// Returns a packet that a message from this peer has brought to its owner.
void return_packet(Peer& from, const PacketReference& reference);
/// Keeps the packet if its message may be answered; otherwise returns it together with those kept earlier.
[[gnu::noinline]] void keep_packet(Peer& from, const PacketReference& reference);
/// Call once a fragment that goes home has been read: keeps its run for the next fragment to the peer, or returns the packet or the run
/// to its owner.
[[gnu::noinline]] void return_fragment(Peer& from, const PacketReference& reference);
/// Call once a packet that a message from this peer has brought has been read.
inline void done_with_packet(Peer& from, const PacketReference& reference) {
  if (!reference.goes_home && (from.kept.expects_answer() || !from.kept.empty()))
    keep_packet(from, reference);
  else if (!reference.goes_home)
    return_packet(from, reference);
  else
    return_fragment(from, reference);
}
/// Returns the runs that are kept for this peer.
void return_kept_runs(Peer& peer);
/// Returns the packets and runs that are kept for this peer, or for all.
void return_kept_packets(Peer& peer);
void return_kept_packets();

/// Fills a packet, or so many side by side, for this peer, which has this policy: at least copy::StorePolicy::worthwhile bytes.
inline void fill_packet(Peer& peer, copy::StorePolicy& stores, const OutgoingPacket& packet, const void* from,
                        std::uint64_t bytes, std::uint32_t packets = 1) {
  if (packet.was_kept && engine().kept_take_cached)
    copy::copy(packet.at, from, bytes, copy::Store::cached);
  else if (packet.is_new()) // what it costs to fill it says nothing about later ones
    copy::copy(packet.at, from, bytes, stores.present());
  else if (stores.copy(packet.at, from, bytes, packets)) [[unlikely]]
    show_stores(peer, stores);
}

/// Fills it with `bytes` packed bytes of the buffer from `position` on.
void pack_into(Peer& peer, copy::StorePolicy& stores, const OutgoingPacket& packet, const Buffer& buffer,
               std::uint64_t position, std::uint64_t bytes, std::uint32_t packets = 1);

} // namespace near::shm
