// Messages of medium length over TCP: their bytes follow the announcement without having been asked for.
//
//   sender                                               receiver
//   unasked: cookie, bytes  --------------------------->  has the network receive the bytes: into the buffer of the receive that
//   the bytes, as a tagged message (fi_tsend)  -------->  matches, or into memory of their own until there is one
//   done when the network has taken them                  done when they are there, and unpacked if need be
//
// A tagged message that nobody receives yet blocks its connection. This one never does for long: its announcement, which names the
// tag, has arrived before it, and memory is found for it as soon as that is handled. Each message takes a credit for each 64 KiB,
// so what nobody expects is bounded as for eager messages (doc/adr/0049).
#include "ofi/state.h"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <new>

namespace near::ofi {

namespace {

/// The longest such message, and the longest one with gaps, which is packed as a whole before it leaves.
constexpr std::uint64_t longest_unasked = 512 << 10, longest_packed = 128 << 10;
/// Credits that these messages leave to short ones.
constexpr std::uint32_t reserved_credits = 8;

std::uint32_t credits_for(std::uint64_t bytes) {
  return static_cast<std::uint32_t>((bytes + longest_body() - 1) / longest_body());
}

/// The tag of a message. Other jobs do not know the secret, so they cannot take another message for it.
std::uint64_t tag_of(std::uint32_t sender, std::uint64_t cookie) {
  return state().settings.secret ^ (std::uint64_t{sender} << 32 | static_cast<std::uint32_t>(cookie));
}

bool is_in_place(const Buffer& buffer) { return buffer.is_contiguous() && copy::can_copy(buffer.kind); }

/// Whether the network can put the bytes into the buffer of the receive.
bool goes_to_buffer(const Unasked& message) {
  return message.stage == nullptr && message.transfer != nullptr &&
         message.transfer->bytes == message.bytes && is_in_place(message.transfer->buffer);
}

/// Has the network receive the bytes. Returns false if that is to be tried again.
bool try_receive(Unasked& message) {
  const bool in_place = goes_to_buffer(message);
  if (!in_place && message.stage == nullptr) message.stage.reset(new (std::nothrow) std::byte[message.bytes]);
  if (!in_place && message.stage == nullptr) return false;
  std::byte* into = in_place ? message.transfer->buffer.contiguous_start() : message.stage.get();
  message.what = Operation::What::tagged_receive;
  const std::uint64_t tag = tag_of(message.peer->process.rank, message.cookie);
  const std::int64_t error = state().endpoint.receive_tagged(into, message.bytes, tag, message);
  if (error == 0) message.bytes_are = Unasked::Bytes::coming;
  if (error != 0 && error != -FI_EAGAIN) message.peer->lost = state().looks_for_deaths = true;
  return error == 0;
}

std::unique_ptr<Unasked> take(Unasked& message) {
  auto& table = message.peer->unasked;
  const auto found = table.find(message.cookie);
  auto taken = std::move(found->second);
  table.erase(found);
  taken->peer->unasked_credits -= credits_for(taken->bytes);
  return taken;
}

/// Ends the receive: the bytes are there.
void end(Unasked& message) {
  const auto taken = take(message);
  Transfer& transfer = *taken->transfer;
  if (taken->stage != nullptr)
    datatype::unpack(transfer.buffer, 0, taken->stage.get(),
                     static_cast<MPI_Count>(std::min(taken->bytes, transfer.bytes)));
  for (std::uint32_t i = credits_for(taken->bytes); i != 0; --i) ofi::give_back_credit(*taken->peer);
  finish(transfer, MPI_SUCCESS);
}

void announce_bytes(Peer& peer, const Envelope& envelope, std::uint64_t cookie) {
  const UnaskedBody body{cookie, envelope.bytes};
  Packet& packet = *state().packets.take();
  fill(packet.frame(), peer, Message::unasked, sizeof body);
  packet.frame().context = envelope.context;
  packet.frame().source = envelope.source;
  packet.frame().tag = envelope.tag;
  std::memcpy(packet.body(), &body, sizeof body);
  send(peer, packet, sizeof body);
}

} // namespace

std::uint64_t longest_without_rts() { return state().endpoint.has_tags() ? longest_unasked : longest_body(); }

Eager send_unasked(Peer& peer, const Envelope& envelope, const Buffer& buffer, Transfer* waiter) {
  const bool in_place = is_in_place(buffer);
  const std::uint32_t credits = credits_for(envelope.bytes);
  if (waiter == nullptr || envelope.bytes > longest_without_rts() ||
      (!in_place && envelope.bytes > longest_packed) || peer.credits_left < credits + reserved_credits ||
      peer.is_gone() || peer.lost)
    return Eager::refused;
  State& self = state();
  self.packets.reserve(2); // what is announced must follow
  std::byte* packed = in_place ? nullptr : new (std::nothrow) std::byte[envelope.bytes];
  if (!in_place && packed == nullptr) return Eager::refused;
  if (!in_place) datatype::pack(buffer, 0, packed, static_cast<MPI_Count>(envelope.bytes));
  waiter->peer = &peer;
  waiter->bytes = envelope.bytes;
  waiter->busy = true;
  peer.credits_left -= credits;
  self.unasked_bytes += envelope.bytes;
  transport::count_sent_elsewhere(envelope.bytes);
  const std::uint64_t cookie = self.next_cookie++;
  announce_bytes(peer, envelope, cookie);
  Packet& packet = *self.packets.take();
  packet.frame() = {};
  packet.is_tagged = true;
  packet.network_tag = tag_of(self.settings.self.rank, cookie);
  packet.packed = packed;
  packet.elsewhere = in_place ? buffer.contiguous_start() : packed;
  packet.transfer = waiter;
  peer.awaited.insert(&packet);
  send(peer, packet, envelope.bytes);
  return Eager::waits;
}

bool take_unasked(Peer& peer, const Envelope& envelope, const UnaskedBody& body) {
  if (body.bytes <= longest_body() || body.bytes > longest_without_rts()) return false;
  if (peer.unasked_credits + credits_for(body.bytes) > all_credits) return false; // it did not have so many
  const auto [found, is_new] = peer.unasked.try_emplace(body.cookie);
  if (!is_new) return false;
  found->second = std::make_unique<Unasked>();
  Unasked& message = *found->second;
  message.peer = &peer;
  message.cookie = body.cookie;
  message.bytes = body.bytes;
  peer.unasked_credits += credits_for(body.bytes);
  state().unasked_bytes += body.bytes;
  announce_unasked(peer, {envelope.context, envelope.source, envelope.tag, body.bytes}, body.cookie);
  // Only now, since a receive may have matched it. The peer may have failed meanwhile.
  const auto again = peer.unasked.find(body.cookie);
  if (again != peer.unasked.end() && !try_receive(*again->second))
    state().unreceived.push_back(again->second.get());
  return true;
}

bool receive_waiting() {
  return std::erase_if(state().unreceived, [](Unasked* message) { return try_receive(*message); }) != 0;
}

void unasked_is_here(Unasked& message, int error) {
  if (message.peer == nullptr) { // it has failed
    delete &message;
    return;
  }
  state().unasked_bytes -= message.bytes;
  message.bytes_are = Unasked::Bytes::here;
  if (error == 0 && message.transfer != nullptr) end(message);
  if (error == 0) return;
  Peer& peer = *message.peer;
  const auto taken = take(message);
  if (taken->transfer != nullptr) finish(*taken->transfer, MPI_ERR_PROC_ABORTED);
  settle_lost(peer);
}

bool accept_unasked(Peer& peer, std::uint64_t cookie, Transfer& transfer) {
  const auto found = peer.unasked.find(cookie);
  if (found == peer.unasked.end() && peer.failed) { // it had not arrived whole
    finish(transfer, MPI_ERR_PROC_ABORTED);
    return true;
  }
  if (found == peer.unasked.end() || found->second->transfer != nullptr) return false;
  found->second->transfer = &transfer;
  if (found->second->bytes_are == Unasked::Bytes::here) end(*found->second);
  return true;
}

std::vector<Transfer*> abandon_unasked(Peer& peer) {
  State& self = state();
  std::vector<Transfer*> ended;
  for (auto each = peer.unasked.begin(); each != peer.unasked.end();) {
    const auto current = each++;
    if (current->second->bytes_are == Unasked::Bytes::here) continue; // it can still be received
    const bool is_coming = current->second->bytes_are == Unasked::Bytes::coming;
    auto message = std::move(current->second);
    peer.unasked.erase(current);
    self.unasked_bytes -= message->bytes;
    std::erase(self.unreceived, message.get());
    if (message->transfer != nullptr) ended.push_back(message->transfer);
    message->peer = nullptr;
    if (is_coming) (void)message.release(); // the network may still write to it
  }
  return ended;
}

} // namespace near::ofi
