// Which packets messages to a peer use, and what becomes of those that its messages have brought (kept_packets.h).
#include "shm/packets.h"

#include "base/kill_point.h"

#include <algorithm>
#include <array>
#include <utility>

namespace near::shm {

namespace {

/// Whether no message has come from the peer since the last one to it that took a packet.
bool follows_another(Peer& peer) {
  const std::uint32_t next = peer.receive.expected_sequence;
  return std::exchange(peer.sequence_at_send, next) == next;
}

/// A packet that a message from the peer has brought, as a message to it names it, or the reverse.
PacketReference from_the_other_side(PacketReference reference) {
  reference.is_receivers = !reference.is_receivers;
  return reference;
}

/// `kept`: what the peer's kept packets have returned.
OutgoingPacket take_kept(Peer& peer, const PacketReference& kept, std::uint64_t bytes) {
  PacketReference reference = from_the_other_side(kept);
  --engine().kept_packets;
  reference.bytes = static_cast<std::uint32_t>(bytes);
  return {reference, packet_at(peer, reference.packet, !reference.is_receivers), true};
}

OutgoingPacket take_own(PacketPool::Taken taken, std::uint64_t bytes) {
  if (!taken) return {};
  return {{taken.packet, static_cast<std::uint32_t>(bytes), taken.generation, false, false},
          engine().packets.at(taken.packet)};
}

/// Call after packets have been returned to the peer.
void wake_those_without_packets(Peer& owner) {
  auto& doorbell = owner.control->doorbell;
  transport::FlowControlCalls::wake_waiters(doorbell.packet_waiters, engine().fences, [&](std::uint64_t) {
    transport::DoorbellCalls::announce(doorbell.bell);
  });
}

/// A train of so many packets finds too few. Where ranks share processors, its message waits for a turn of its receiver, and more packets
/// spare the next one that.
[[gnu::cold]] void note_missing(std::size_t packets) {
  if (engine().oversubscribed) engine().packets.add_for_trains(static_cast<std::uint32_t>(packets));
}

/// Returns a run to its owner.
void return_run(Peer& from, const PacketReference& reference) {
  if (reference.is_receivers) return engine().packets.put_back_run({reference.packet, reference.generation});
  for (std::uint32_t i = 0; i < PacketPool::run; ++i)
    from.packet_flags[reference.packet + i].give_back(reference.generation);
  wake_those_without_packets(from);
}

} // namespace

void return_packet(Peer& from, const PacketReference& reference) {
  NEAR_KILL_POINT("packet-used");
  if (reference.is_receivers) {
    engine().packets.put_back({reference.packet, reference.generation});
    return;
  }
  from.packet_flags[reference.packet].give_back(reference.generation);
  wake_those_without_packets(from);
}

void return_fragment(Peer& from, const PacketReference& reference) {
  NEAR_KILL_POINT("fragment-used");
  if (!reference.is_run) return return_packet(from, reference);
  const PacketPool& own = engine().packets;
  // Worth it if the next fragments to the peer are runs, too.
  const bool is_worth_keeping = from.on_fragment_list && own.uses_runs(from.to_send.most());
  if (!is_worth_keeping || from.kept_runs.is_full() || from.packet_bytes != own.packet_bytes())
    return return_run(from, reference);
  NEAR_KILL_POINT("run-kept");
  ++engine().kept_packets;
  from.kept_runs.push(reference);
}

OutgoingPacket take_packet(Peer& peer, std::uint64_t bytes) {
  const bool in_stream = follows_another(peer);
  peer.kept.message_left();
  if (!peer.kept.empty() && bytes <= peer.packet_bytes) return take_kept(peer, peer.kept.pop(), bytes);
  return take_own(engine().packets.take(bytes, in_stream), bytes);
}

bool take_packets(Peer& peer, std::uint64_t bytes, std::span<OutgoingPacket> packets) {
  const std::size_t most_kept = bytes <= peer.packet_bytes ? peer.kept.count() : 0;
  const std::size_t from_kept = std::min(most_kept, packets.size());
  const std::span<OutgoingPacket> own = packets.subspan(from_kept);
  if (own.size() > engine().packets.count() - PacketPool::reserve) {
    note_missing(packets.size());
    return false;
  }
  const std::uint32_t before = peer.sequence_at_send;
  const bool in_stream = follows_another(peer);
  for (std::size_t i = 0; i < own.size(); ++i) {
    own[i] = take_own(engine().packets.take_for_train(in_stream), bytes);
    if (own[i]) continue;
    while (i-- > 0) put_back(peer, own[i]);
    peer.sequence_at_send = before;
    note_missing(packets.size());
    return false;
  }
  std::array<PacketReference, KeptPackets::most> kept;
  peer.kept.pop(std::span(kept).first(from_kept));
  for (std::size_t i = 0; i < from_kept; ++i) packets[i] = take_kept(peer, kept[i], bytes);
  peer.kept.message_left();
  return true;
}

OutgoingPacket take_packet_for_fragment(Peer& peer, const Transfer& transfer) {
  PacketPool& packets = engine().packets;
  const std::uint64_t on_their_way = bytes_on_their_way(peer, transfer);
  const bool in_long_turn = packets.has_long_turn(on_their_way);
  const std::uint64_t left = transfer.bytes - transfer.position;
  const bool is_asked_for = transfer.remote_cookie != 0;
  if (packets.uses_runs(on_their_way) && is_asked_for && left > packets.packet_bytes()) {
    const std::uint64_t in_run = std::min(left, PacketPool::run * packets.packet_bytes());
    if (!peer.kept_runs.empty()) return take_kept(peer, peer.kept_runs.pop(), in_run);
    if (OutgoingPacket run = take_own(packets.take_run(), in_run)) {
      run.reference.goes_home = run.reference.is_run = true;
      return run;
    }
  }
  const std::uint64_t bytes = std::min(left, transfer.fragment_bytes);
  const bool may_take_kept = !peer.kept.empty() && bytes <= peer.packet_bytes;
  if (!in_long_turn && may_take_kept) return take_kept(peer, peer.kept.pop_oldest(), bytes);
  OutgoingPacket packet = take_own(engine().packets.take_for_fragment(on_their_way), bytes);
  packet.reference.goes_home = in_long_turn;
  if (!packet && may_take_kept) return take_kept(peer, peer.kept.pop_oldest(), bytes);
  return packet;
}

void pack_into(Peer& peer, copy::StorePolicy& stores, const OutgoingPacket& packet, const Buffer& buffer,
               std::uint64_t position, std::uint64_t bytes, std::uint32_t packets) {
  if (buffer.is_contiguous() && bytes >= copy::StorePolicy::worthwhile)
    fill_packet(peer, stores, packet, buffer.contiguous_start() + position, bytes, packets);
  else
    datatype::pack(buffer, static_cast<MPI_Count>(position), packet.at, static_cast<MPI_Count>(bytes));
}

void put_back(Peer& peer, const OutgoingPacket& packet) {
  const PacketReference reference = from_the_other_side(packet.reference);
  if (reference.is_run) {
    if (!packet.was_kept || peer.kept_runs.is_full()) return return_run(peer, reference);
    ++engine().kept_packets;
    return peer.kept_runs.push(reference);
  }
  if (!packet.was_kept) return return_packet(peer, reference);
  peer.kept.push(reference);
  ++engine().kept_packets;
}

void keep_packet(Peer& from, const PacketReference& reference) {
  if (!from.kept.expects_answer()) {
    return_kept_packets(from);
    return return_packet(from, reference);
  }
  if (reference.packet < PacketPool::reserve) return return_packet(from, reference);
  NEAR_KILL_POINT("packet-kept");
  ++engine().kept_packets;
  from.kept.keep(reference, [&](const PacketReference& replaced) {
    --engine().kept_packets;
    return_packet(from, replaced);
  });
}

void give_back_packet(Peer& from, std::uint64_t packet) {
  const std::uint64_t code = packet - 1;
  done_with_packet(from, {static_cast<std::uint32_t>(code), 0, static_cast<std::uint8_t>(code >> 32),
                          (code >> 40) != 0, false});
}

void return_kept_runs(Peer& peer) {
  for (; !peer.kept_runs.empty(); --engine().kept_packets) return_run(peer, peer.kept_runs.pop());
}

void return_kept_packets(Peer& peer) {
  return_kept_runs(peer);
  for (; !peer.kept.empty(); --engine().kept_packets) return_packet(peer, peer.kept.pop_oldest());
}

void return_kept_packets() {
  for (Peer* peer : engine().peers) return_kept_packets(*peer);
}

} // namespace near::shm
