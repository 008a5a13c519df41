// What becomes of the runs of packets that fragments have filled (packets.cpp).
#include "ranks.h"
#include "shm/packets.h"

namespace near::test {
namespace {

/// A run that the peer has sent, as its message names it.
shm::PacketReference run_of(const shm::Peer& from, std::uint32_t packet) {
  return {packet, static_cast<std::uint32_t>(4 * from.packet_bytes), 9, false, true, true};
}

TEST(Runs_of_packets, are_kept_while_long_messages_go_both_ways) {
  run_ranks(
      2,
      [](std::uint32_t rank) {
        auto& other = static_cast<shm::Peer&>(transport::peer_at({.rank = 1 - rank}));
        const shm::PacketReference run = run_of(other, 12);
        auto is_back = [&] {
          bool all = true;
          for (std::uint32_t i = 0; i < 4; ++i) all = all && other.packet_flags[12 + i].is_home(9);
          return all;
        };
        done_with_packet(other, run);
        require(is_back() && other.kept_runs.empty(), "with nothing to send, a run goes home at once");

        for (std::uint32_t i = 0; i < 4; ++i) other.packet_flags[12 + i].give_back(8);
        transport::Transfer transfer;
        transfer.peer = &other;
        transfer.bytes = 8 << 20;
        transfer.remote_cookie = 1;
        other.to_send.add(transfer.bytes);
        other.on_fragment_list = true;
        done_with_packet(other, run);
        require(!is_back() && !other.kept_runs.empty() && shm::engine().kept_packets == 1,
                "with a long message to send, it is kept");
        const shm::OutgoingPacket next = take_packet_for_fragment(other, transfer);
        require(next && next.at == other.packets + 12 * other.packet_bytes && next.reference.is_receivers &&
                    next.reference.is_run && next.reference.goes_home && next.reference.generation == 9 &&
                    next.reference.bytes == 4 * other.packet_bytes && other.kept_runs.empty(),
                "and the next fragment takes it");
        put_back(other, next);
        require(!other.kept_runs.empty() && shm::engine().kept_packets == 1,
                "a run that was not sent is kept again");
        return_kept_runs(other);
        require(is_back() && other.kept_runs.empty() && shm::engine().kept_packets == 0, "then it goes home");

        const shm::OutgoingPacket own = take_packet_for_fragment(other, transfer);
        require(own && own.reference.is_run && !own.reference.is_receivers,
                "without any, it takes one of its own");
        shm::PacketReference brought = own.reference;
        brought.is_receivers = true; // as the peer's fragment names it
        other.on_fragment_list = false;
        done_with_packet(other, brought);
        bool is_free = false;
        while (const auto each = shm::engine().packets.take_run())
          is_free |= each.packet == own.reference.packet;
        require(is_free, "which is free again when the peer has sent it back");
        other.to_send.remove(transfer.bytes);
      },
      {{"NEAR_COPY", "pipelined"}, {"NEAR_PACKETS", "64"}});
}

} // namespace
} // namespace near::test
