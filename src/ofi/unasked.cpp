// Medium-length messages over TCP: their bytes follow the announcement without having been requested.
//
//   sender                                               receiver
//   unasked: cookie, bytes  --------------------------->  has the network receive the bytes: into the buffer of the receive that
//   the bytes, as a tagged message (fi_tsend)  -------->  matches, or into memory of their own until there is one
//   done when the network has taken them                  done when they are there, and unpacked if need be
//
// A tagged message that nobody receives yet blocks its connection. This one does so only until the
// receiver makes progress, and never until a receive matches: its announcement, which names the tag, has
// arrived before it, and memory for it is found as soon as the announcement is handled. Each message
// takes credits for its bytes, so unexpected data are bounded as for eager messages (doc/adr/0049).
#include "ofi/state.h"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <new>

namespace near::ofi {

namespace {

/// The longest such message, and the longest one with gaps, which is packed completely before it is sent.
constexpr std::uint64_t longest_unasked = 512 << 10, longest_packed = 128 << 10;

/// The tag of a message. It is in use only until the bytes have arrived, so the cookie's low half distinguishes it from others.
/// Another job's messages cannot be mistaken for it, since that job does not know the secret.
std::uint64_t tag_of(std::uint32_t sender, std::uint64_t cookie) {
  return state().settings.secret ^ (std::uint64_t{sender} << 32 | static_cast<std::uint32_t>(cookie));
}

/// Whether the network can write the bytes directly into the buffer of the receive.
bool goes_to_buffer(const TaggedReceive& message) {
  return message.stage == nullptr && message.transfer != nullptr &&
         message.transfer->bytes == message.bytes && is_in_place(message.transfer->buffer);
}

/// Has the network receive the bytes, unless it already does. Returns false if the caller should try again.
bool try_receive(TaggedReceive& message) {
  if (message.bytes_are != TaggedReceive::Bytes::announced) return true;
  const bool in_place = goes_to_buffer(message);
  if (!in_place && message.stage == nullptr) message.stage.reset(new (std::nothrow) std::byte[message.bytes]);
  if (!in_place && message.stage == nullptr) return false;
  std::byte* into = in_place ? message.transfer->buffer.contiguous_start() : message.stage.get();
  message.what = Operation::What::tagged_receive;
  const std::uint64_t tag = tag_of(message.peer->process.rank, message.cookie);
  const std::int64_t error = state().endpoint.receive_tagged(into, message.bytes, tag, message);
  if (error == 0) message.bytes_are = TaggedReceive::Bytes::coming;
  if (error != 0 && error != -FI_EAGAIN) message.peer->lost = state().looks_for_deaths = true;
  return error == 0;
}

std::unique_ptr<TaggedReceive> take(TaggedReceive& message) {
  auto& table = message.peer->tagged;
  const auto found = table.find(message.cookie);
  auto taken = std::move(found->second);
  table.erase(found);
  taken->peer->unasked_credits -= taken->credits;
  return taken;
}

/// Ends the receive: the bytes have arrived.
void end(TaggedReceive& message) {
  const auto taken = take(message);
  Transfer& transfer = *taken->transfer;
  if (taken->stage != nullptr)
    datatype::unpack(transfer.buffer, 0, taken->stage.get(),
                     static_cast<MPI_Count>(std::min(taken->bytes, transfer.bytes)));
  finish(transfer, MPI_SUCCESS);
  ofi::give_back_credit(*taken->peer, taken->bytes);
}

void announce_bytes(Packet& packet, Peer& peer, const Envelope& envelope, std::uint64_t cookie) {
  const UnaskedBody body{cookie, envelope.bytes};
  fill(packet.frame(), peer, Message::unasked, sizeof body);
  packet.frame().context = envelope.context;
  packet.frame().source = envelope.source;
  packet.frame().tag = envelope.tag;
  std::memcpy(packet.body(), &body, sizeof body);
  send(peer, packet, sizeof body);
}

/// A packet for the bytes of a message. It has no frame. Throws std::bad_alloc.
Packet& make_packet(Peer& peer, std::uint64_t cookie, const std::byte* bytes, Transfer& transfer) {
  Packet& packet = *state().packets.take();
  peer.awaited.insert(&packet);
  packet.is_tagged = true;
  packet.network_tag = tag_of(state().settings.self.rank, cookie);
  packet.elsewhere = bytes;
  packet.transfer = &transfer;
  return packet;
}

void send_bytes(Peer& peer, Packet& packet, std::uint64_t bytes) {
  state().tagged_bytes += bytes;
  send(peer, packet, bytes);
}

} // namespace

std::uint64_t longest_without_rts() { return state().endpoint.has_tags() ? longest_unasked : longest_body(); }

Eager send_unasked(Peer& peer, const Envelope& envelope, const Buffer& buffer, Transfer* waiter) {
  const bool in_place = is_in_place(buffer);
  const std::uint32_t credits = credits_for(envelope.bytes);
  if (waiter == nullptr || envelope.bytes > longest_without_rts() ||
      (!in_place && envelope.bytes > longest_packed) || !affords(peer, credits) || peer.is_gone() ||
      peer.lost)
    return Eager::refused;
  State& self = state();
  // The bytes must follow the announcement, so their memory comes first.
  self.packets.reserve(2);
  self.waiting.reserve(self.waiting.size() + 1);
  std::unique_ptr<std::byte[]> packed(in_place ? nullptr : new (std::nothrow) std::byte[envelope.bytes]);
  if (!in_place && packed == nullptr) return Eager::refused;
  if (!in_place) datatype::pack(buffer, 0, packed.get(), static_cast<MPI_Count>(envelope.bytes));
  const std::uint64_t cookie = self.next_cookie++;
  const std::byte* from = in_place ? buffer.contiguous_start() : packed.get();
  Packet& packet = make_packet(peer, cookie, from, *waiter);
  packet.packed = packed.release();
  waiter->peer = &peer;
  waiter->bytes = envelope.bytes;
  waiter->busy = true;
  spend_credits(peer, envelope);
  announce_bytes(*self.packets.take(), peer, envelope, cookie);
  send_bytes(peer, packet, envelope.bytes);
  return Eager::waits;
}

bool take_unasked(Peer& peer, const Envelope& envelope, const UnaskedBody& body) {
  if (body.bytes <= longest_body() || body.bytes > longest_without_rts()) return false;
  if (peer.unasked_credits + credits_for(body.bytes) > all_credits) return false; // it did not have that many
  const auto [added, is_new] = peer.tagged.try_emplace(body.cookie, std::make_unique<TaggedReceive>());
  if (!is_new) return false;
  TaggedReceive& message = *added->second;
  message.peer = &peer;
  message.cookie = body.cookie;
  message.bytes = body.bytes;
  message.credits = credits_for(body.bytes);
  peer.unasked_credits += message.credits;
  state().tagged_bytes += body.bytes;
  announce_unasked(peer, {envelope.context, envelope.source, envelope.tag, body.bytes}, body.cookie);
  // Only now, since a receive may have matched it. The peer may have failed meanwhile.
  const auto found = peer.tagged.find(body.cookie);
  if (found != peer.tagged.end() && !try_receive(*found->second)) state().some_not_received = true;
  return true;
}

bool receive_waiting() {
  State& self = state();
  self.some_not_received = false;
  bool received = false;
  for (auto& [rank, peer] : self.peers)
    for (auto& [cookie, message] : peer->tagged) {
      if (message->bytes_are != TaggedReceive::Bytes::announced) continue;
      const bool now = try_receive(*message);
      received |= now;
      self.some_not_received |= !now;
    }
  return received;
}

void drain_unasked(Peer& peer, const UnaskedBody& body) {
  if (body.bytes <= longest_body() || body.bytes > longest_without_rts()) return;
  auto message = std::make_unique<TaggedReceive>();
  message->stage = std::make_unique<std::byte[]>(body.bytes);
  message->what = Operation::What::tagged_receive;
  const std::uint64_t tag = tag_of(peer.process.rank, body.cookie);
  TaggedReceive& kept = *state().given_up.emplace_back(std::move(message));
  if (state().endpoint.receive_tagged(kept.stage.get(), body.bytes, tag, kept) != 0)
    state().given_up.pop_back();
}

void bytes_are_here(TaggedReceive& message, std::uint64_t bytes, int error) {
  if (message.peer == nullptr) { // it has failed
    std::erase_if(state().given_up, [&](const auto& each) { return each.get() == &message; });
    return;
  }
  state().tagged_bytes -= message.bytes;
  message.bytes_are = TaggedReceive::Bytes::here;
  const bool is_whole = error == 0 && bytes == message.bytes;
  if (is_whole && message.transfer != nullptr) end(message);
  if (is_whole) return;
  Peer& peer = *message.peer;
  const auto taken = take(message);
  if (taken->transfer != nullptr) finish(*taken->transfer, MPI_ERR_PROC_ABORTED);
  settle_lost(peer);
}

bool accept_unasked(Peer& peer, std::uint64_t cookie, Transfer& transfer) {
  const auto found = peer.tagged.find(cookie);
  if (found == peer.tagged.end()) { // the peer has failed before it had arrived completely
    finish(transfer, MPI_ERR_PROC_ABORTED);
    return true;
  }
  if (found->second->transfer != nullptr) return false;
  found->second->transfer = &transfer;
  if (found->second->bytes_are == TaggedReceive::Bytes::here) end(*found->second);
  return true;
}

bool fills_buffers(const Peer& peer) {
  return std::any_of(peer.tagged.begin(), peer.tagged.end(), [](const auto& entry) {
    const TaggedReceive& message = *entry.second;
    return message.bytes_are == TaggedReceive::Bytes::coming && message.stage == nullptr;
  });
}

void cancel_unasked(Peer& peer) {
  for (auto& [cookie, message] : peer.tagged)
    if (message->bytes_are == TaggedReceive::Bytes::coming) state().endpoint.cancel(*message);
}

std::vector<Transfer*> abandon_tagged(Peer& peer) {
  State& self = state();
  std::vector<Transfer*> ended;
  for (auto each = peer.tagged.begin(); each != peer.tagged.end();) {
    const auto current = each++;
    if (current->second->bytes_are == TaggedReceive::Bytes::here) continue; // it can still be received
    const bool is_coming = current->second->bytes_are == TaggedReceive::Bytes::coming;
    auto message = std::move(current->second);
    peer.tagged.erase(current);
    self.tagged_bytes -= message->bytes;
    if (message->transfer != nullptr) ended.push_back(message->transfer);
    message->peer = nullptr;
    if (!is_coming) continue;
    self.endpoint.cancel(*message);
    self.given_up.push_back(std::move(message));
  }
  return ended;
}

} // namespace near::ofi
