// Sending and receiving messages: packets, frames, credits.
#include "ofi/state.h"

#include "base/log.h"

#include <rdma/fi_errno.h>

#include <algorithm>

namespace near::ofi {

namespace {

constexpr std::uint64_t secret_mask = (std::uint64_t{1} << 48) - 1;

std::int64_t begin_send(Packet& packet) {
  Endpoint& endpoint = state().endpoint;
  if (packet.elsewhere == nullptr)
    return endpoint.send(packet.data, packet.bytes, packet.local, packet.peer->address, packet);
  if (packet.is_tagged)
    return endpoint.send_tagged(packet.elsewhere, packet.body_bytes(), packet.peer->address,
                                packet.network_tag, packet);
  const std::array<iovec, 2> parts{
      {{packet.data, sizeof(Frame)}, {const_cast<std::byte*>(packet.elsewhere), packet.body_bytes()}}};
  return endpoint.send_parts(parts, packet.peer->address, packet);
}

/// Makes the packet of a message that has been sent, and the program's buffer, available again.
void retire(Packet& packet, int error) {
  Transfer* const transfer = packet.transfer;
  if (transfer != nullptr && packet.is_tagged) state().tagged_bytes -= packet.body_bytes();
  Peer& peer = *packet.peer;
  give_back(packet);
  if (transfer == nullptr) return; // or its peer has failed
  peer.awaited.erase(&packet);
  finish(*transfer, error);
}

/// Returns false if the message cannot be sent now, because the network has no space or the window is closed.
bool give_to_network(Packet& packet) {
  State& self = state();
  Peer& peer = *packet.peer;
  if (!packet.is_tagged && !is_open(peer) && packet.frame().message != Message::received) return false;
  if (peer.lost) { // it may have no address, and soon fails
    if (packet.transfer == nullptr) self.packets.give_back(&packet);
    return true;
  }
  if (!packet.is_tagged) packet.frame().sequence = peer.next_sequence;
  packet.what = Operation::What::send;
  const std::int64_t error = begin_send(packet);
  if (error == -FI_EAGAIN) return false;
  if (error == 0) {
    packet.under_way = true;
    if (!packet.is_tagged) ++peer.next_sequence;
    ++self.unsent;
    ++peer.unsent;
    return true;
  }
  peer.lost = self.looks_for_deaths = true;
  if (packet.transfer == nullptr) self.packets.give_back(&packet); // otherwise abandon_awaited() does
  return true;
}

/// Warns once that something arrived that no process of this job sends.
void warn_of_foreign_message(const char* what) {
  static bool said = false;
  if (std::exchange(said, true)) return;
  base::log(base::Level::warning,
            "dropped a message from the network: {}. Another program may be sending to {}", what,
            network_name());
}

template <class Body>
bool read_body(Packet& packet, Body& body) {
  if (packet.body_bytes() < sizeof body) return false;
  std::memcpy(&body, packet.body(), sizeof body);
  return true;
}

/// Hands an eager message to the layer above. Returns whether that layer keeps the packet.
bool deliver(Peer& peer, Packet& packet) {
  const Frame& frame = packet.frame();
  const std::size_t bytes = packet.body_bytes();
  const Envelope envelope{frame.context, frame.source, frame.tag, bytes};
  const std::uint64_t name = bytes < kept_from() ? 0 : reinterpret_cast<std::uint64_t>(&packet);
  Arrival arrival{&peer, envelope, packet.body(), bytes, name};
  state().handlers[static_cast<std::size_t>(Handler::p2p_eager)](arrival);
  return name != 0 && arrival.packet == 0;
}

/// Records that the peer has handled all messages before this number.
void confirm(Peer& peer, std::uint16_t sequence) {
  const auto more = static_cast<std::uint16_t>(sequence - peer.confirmed);
  if (more <= static_cast<std::uint16_t>(peer.next_sequence - peer.confirmed)) peer.confirmed = sequence;
}

void take_back(Peer& peer, std::uint32_t credits) {
  peer.credits_left += std::min(credits, all_credits - peer.credits_left);
  if (peer.credits_left == all_credits) peer.widest_credit = 0;
}

/// Handles a message that is not eager. Returns false if its body is too short.
bool handle(Peer& peer, Packet& packet) {
  const Frame& frame = packet.frame();
  auto with = [&](auto body, auto&& then) {
    if (!read_body(packet, body)) return false;
    then(body);
    return true;
  };
  switch (frame.message) {
  case Message::eager:
  case Message::hello: return true;
  case Message::credit:
    return with(std::uint32_t{}, [&](std::uint32_t credits) { take_back(peer, credits); });
  case Message::rts:
    return with(RtsBody{}, [&](const RtsBody& body) {
      announce(peer, {frame.context, frame.source, frame.tag, body.bytes}, body.rts);
    });
  case Message::unasked: {
    UnaskedBody body;
    return read_body(packet, body) &&
           take_unasked(peer, {frame.context, frame.source, frame.tag, body.bytes}, body);
  }
  case Message::cts: return with(CtsBody{}, [&](const CtsBody& body) { handle_cts(peer, body); });
  case Message::data:
    return with(DataBody{}, [&](const DataBody& body) {
      handle_data(peer, body, packet.body() + sizeof body, packet.body_bytes() - sizeof body);
    });
  case Message::fin: return with(std::uint64_t{}, [&](std::uint64_t cookie) { handle_fin(peer, cookie); });
  case Message::closed: return peer.closed = state().some_will_not_be_received = true;
  case Message::leaving:
    peer.closed = state().some_will_not_be_received = true;
    peer.lost = false;         // the peer ends as it should
    send(peer, Message::seen); // the last message to it
    return peer.leaves = true;
  case Message::seen: return peer.seen = true;
  case Message::withdraw:
    return with(std::uint64_t{}, [&](std::uint64_t cookie) { handle_withdraw(peer, cookie); });
  case Message::withdrawn:
    return with(WithdrawnBody{}, [&](const WithdrawnBody& body) { handle_withdrawn(peer, body); });
  case Message::atomic: return with(AtomicBody{}, [&](const AtomicBody& body) { handle_atomic(peer, body); });
  case Message::answer: return with(AnswerBody{}, [&](const AnswerBody& body) { handle_answer(peer, body); });
  case Message::fence:
    return with(std::uint64_t{},
                [&](std::uint64_t writes) { send(peer, Message::fenced, &writes, sizeof writes); });
  case Message::fenced:
    return with(std::uint64_t{}, [&](std::uint64_t writes) { handle_fenced(peer, writes); });
  case Message::received:
    return with(std::uint16_t{}, [&](std::uint16_t sequence) { confirm(peer, sequence); });
  }
  return false;
}

/// Handles the message whose turn it is. Returns whether the packet is kept.
bool take_turn(Peer& peer, Packet& packet) {
  ++peer.expected; // first: a handler may make progress, and the next message may be there
  if (static_cast<std::uint16_t>(peer.expected - peer.reported) >= state().settings.window / 2) {
    peer.reported = peer.expected;
    send(peer, Message::received, &peer.reported, sizeof peer.reported);
  }
  if (packet.frame().message == Message::eager) return deliver(peer, packet);
  if (!handle(peer, packet)) warn_of_foreign_message("its contents are wrong");
  return false;
}

/// Handles the early messages whose turn has come.
void take_early(Peer& peer) {
  for (auto next = peer.early.find(peer.expected); next != peer.early.end();
       next = peer.early.find(peer.expected)) {
    Packet& packet = *next->second;
    peer.early.erase(next);
    if (!take_turn(peer, packet)) state().packets.give_back(&packet);
  }
}

/// Returns whether the packet is kept.
bool receive(Packet& packet, std::size_t bytes) {
  State& self = state();
  const Frame& frame = packet.frame();
  if (bytes < sizeof frame || frame.secret != (self.settings.secret & secret_mask)) {
    warn_of_foreign_message("it does not have the secret of this job");
    return false;
  }
  if (frame.body != static_cast<std::uint16_t>(bytes - sizeof frame)) {
    warn_of_foreign_message("its length is wrong");
    return false;
  }
  packet.bytes = bytes;
  if (frame.message == Message::hello)
    self.told_addresses[frame.sender].assign(packet.body(), packet.body() + packet.body_bytes());
  Peer* peer = peer_with(frame.sender);
  if (peer == nullptr) {
    warn_of_foreign_message("no such process is reached by the network");
    return false;
  }
  peer->reached = true;
  take_back(*peer, frame.credits);
  if (peer->failed) {
    UnaskedBody body;
    if (frame.message == Message::unasked && read_body(packet, body)) drain_unasked(*peer, body);
    return false;
  }
  const auto ahead = static_cast<std::uint16_t>(frame.sequence - peer->expected);
  if (ahead >= self.settings.window + beyond_window) {
    warn_of_foreign_message("its number is wrong");
    return false;
  }
  if (ahead != 0) return peer->early.emplace(frame.sequence, &packet).second;
  const bool kept = take_turn(*peer, packet);
  take_early(*peer);
  return kept;
}

} // namespace

void give_back(Packet& packet) {
  delete[] std::exchange(packet.packed, nullptr);
  packet.transfer = nullptr;
  packet.elsewhere = nullptr;
  packet.is_tagged = packet.under_way = false;
  state().packets.give_back(&packet);
}

std::size_t longest_body() { return state().endpoint.longest_eager(); }

void fill(Frame& frame, Peer& peer, Message message, std::size_t bytes) {
  State& self = state();
  const std::uint32_t credits = std::min<std::uint32_t>(peer.credits_due, 255);
  peer.credits_due -= credits;
  frame = {};
  frame.secret = self.settings.secret & secret_mask;
  frame.sender = self.settings.self.rank;
  frame.body = static_cast<std::uint16_t>(bytes);
  frame.message = message;
  frame.credits = static_cast<std::uint8_t>(credits);
}

namespace {

/// Messages up to this size do not occupy a packet while they wait: a program may announce a great many.
constexpr std::size_t longest_short = 256;

Packet* shorten(Packet& packet) {
  if (packet.bytes > longest_short || packet.transfer != nullptr) return &packet;
  auto bytes = std::make_unique<std::byte[]>(packet.bytes);
  auto* made = new Packet(packet);
  made->data = bytes.release();
  made->is_short = true;
  copy::raw(made->data, packet.data, packet.bytes);
  state().packets.give_back(&packet);
  return made;
}

void discard(Packet* packet) {
  if (packet->transfer != nullptr) return; // abandon_awaited() ends it
  if (!packet->is_short) return state().packets.give_back(packet);
  delete[] packet->data;
  delete packet;
}

/// Passes a waiting message to the network. Returns false if it has to wait longer.
bool give_after_wait(Packet& waited) {
  if (!waited.is_short) return give_to_network(waited);
  Packet& packet = *state().packets.take();
  packet.peer = waited.peer;
  packet.bytes = waited.bytes;
  copy::raw(packet.data, waited.data, waited.bytes);
  if (give_to_network(packet)) {
    discard(&waited);
    return true;
  }
  state().packets.give_back(&packet);
  return false;
}

} // namespace

void send(Peer& peer, Packet& packet, std::size_t bytes) {
  State& self = state();
  packet.peer = &peer;
  packet.bytes = sizeof(Frame) + bytes;
  if (peer.is_gone() || peer.lost) {
    if (packet.transfer == nullptr) self.packets.give_back(&packet); // otherwise abandon_awaited() does
    return;
  }
  // A message that opens the peer's window overtakes those that wait
  // until our own is opened: both sides may wait.
  const bool overtakes = !packet.is_tagged && packet.frame().message == Message::received;
  if ((peer.out.empty() || overtakes) && give_to_network(packet)) return;
  if (peer.out.empty()) self.waiting.push_back(&peer);
  if (overtakes)
    peer.out.push_front(shorten(packet));
  else
    peer.out.push_back(shorten(packet));
}

void send(Peer& peer, Message message, const void* body, std::size_t bytes) {
  if (peer.is_gone()) return;
  Packet& packet = *state().packets.take();
  fill(packet.frame(), peer, message, bytes);
  if (bytes != 0) copy::raw(packet.body(), body, bytes);
  send(peer, packet, bytes);
}

bool send_waiting() {
  State& self = state();
  bool left = false;
  std::erase_if(self.waiting, [&](Peer* peer) {
    while (!peer->out.empty() && give_after_wait(*peer->out.front())) {
      peer->out.pop_front();
      left = true;
    }
    return peer->out.empty();
  });
  return left;
}

void drop_waiting(Peer& peer) {
  for (Packet* packet : peer.out) discard(packet);
  peer.out.clear();
  for (const auto& [sequence, packet] : peer.early) state().packets.give_back(packet);
  peer.early.clear();
  std::erase(state().waiting, &peer);
}

void sent(Packet& packet, int error) {
  State& self = state();
  Peer& peer = *packet.peer;
  if (!peer.failed) --self.unsent, --peer.unsent;
  peer.reached = peer.reached || error == 0;
  retire(packet, error == 0 ? MPI_SUCCESS : MPI_ERR_PROC_ABORTED);
  if (error != 0) settle_lost(peer);
}

void arrived(Packet& packet, std::size_t bytes, int error) {
  State& self = state();
  --self.posted;
  ++self.arrivals;
  if (error == 0 && receive(packet, bytes)) return;
  post_again(packet);
}

void give_back_packet(std::uint64_t packet) { state().packets.give_back(reinterpret_cast<Packet*>(packet)); }

std::uint32_t credits_for(std::uint64_t bytes) {
  const std::uint64_t counted = bytes < kept_from() ? bytes : std::max<std::uint64_t>(bytes, longest_body());
  return static_cast<std::uint32_t>(std::max<std::uint64_t>((counted + credit_bytes - 1) / credit_bytes, 1));
}

void give_back_credit(transport::Peer& to, std::uint64_t bytes) {
  Peer& peer = own(to);
  peer.credits_due += credits_for(bytes);
  if (peer.credits_due < all_credits / 2) return;
  state().packets.reserve(1); // what is no longer due must be sent
  const std::uint32_t credits = std::exchange(peer.credits_due, 0);
  send(peer, Message::credit, &credits, sizeof credits);
}

} // namespace near::ofi
