// The packets that wait for messages.
//
// The network fills waiting packets in turn. While they are few, their pages are made once and stay in a cache, which messages of
// 64 KiB one at a time need. But once a burst has filled all of them, the provider stops reading the connection and resumes with the
// next packet, which costs two system calls for each message. So a process begins with a few, doubles them when it finds as many
// messages at once as packets were waiting, and halves them when it has long found no more than one or two at once (doc/adr/0048).
#include "ofi/state.h"

#include <algorithm>
#include <utility>

namespace near::ofi {

namespace {

constexpr std::uint32_t most_posted = 64;

/// Whether the network is TCP, with packets of 64 KiB.
bool has_long_packets() { return longest_body() > least_eager; }

/// How many packets wait at least. A message that has arrived in part occupies a packet until the rest comes, so there are more
/// packets than peers.
std::uint32_t least_posted() {
  constexpr std::uint32_t least = 8, spare = 2;
  if (!has_long_packets()) return most_posted;
  return std::clamp(static_cast<std::uint32_t>(state().peers.size()) + spare, least, most_posted);
}

std::uint32_t wanted() { return std::max(state().wanted, least_posted()); }

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
  constexpr std::uint32_t few = 2, looks_until_fewer = 64;
  State& self = state();
  const std::uint32_t arrivals = std::exchange(self.arrivals, 0);
  if (arrivals == 0) return;
  if (arrivals >= std::min<std::uint32_t>(wanted(), most_completions)) {
    self.wanted = std::min(2 * wanted(), most_posted);
    self.quiet_looks = 0;
  } else if (arrivals > few) {
    self.quiet_looks = 0;
  } else if (++self.quiet_looks >= looks_until_fewer) {
    self.wanted = wanted() / 2;
    self.quiet_looks = 0;
  }
}

} // namespace near::ofi
