// The packets that wait for messages.
//
// The network fills waiting packets in turn. While they are few, their pages are made once and stay
// in a cache, which one 64 KiB message at a time needs. But once a burst has filled all of them, the
// provider stops reading the connection and resumes with the next packet, which costs two system
// calls per message. So the number of packets follows the messages (posted_count.h, doc/adr/0050).
#include "ofi/state.h"

#include <algorithm>
#include <utility>

namespace near::ofi {

namespace {

/// Whether the network is TCP, with packets of 64 KiB.
bool has_long_packets() { return longest_body() > least_eager; }

/// The least number of waiting packets. A message that has arrived in part occupies a packet until the rest arrives, so there
/// are more packets than peers.
std::uint32_t least_posted() {
  constexpr std::uint32_t least = 8, spare = 2;
  if (!has_long_packets()) return PostedCount::most;
  return std::clamp(static_cast<std::uint32_t>(state().peers.size()) + spare, least, PostedCount::most);
}

std::uint32_t wanted() { return state().posted_count.wanted(least_posted()); }

void post(Packet& packet) {
  State& self = state();
  packet.what = Operation::What::receive;
  if (self.endpoint.receive(packet.data, packet_bytes(), packet.local, packet) == 0)
    ++self.posted;
  else
    self.packets.give_back(&packet);
}

} // namespace

void post_again(Packet& packet) {
  if (state().posted < wanted())
    post(packet);
  else
    state().packets.give_back(&packet);
}

void post_packets() {
  State& self = state();
  while (self.posted < wanted()) {
    const std::uint32_t before = self.posted;
    post(*self.packets.take());
    if (self.posted == before) return; // no space now
  }
}

void post_first_packets() {
  if (has_long_packets()) state().packets.populate(wanted());
  post_packets();
}

void note_arrivals() {
  State& self = state();
  self.posted_count.looked(std::exchange(self.arrivals, 0), most_completions, least_posted());
}

} // namespace near::ofi
