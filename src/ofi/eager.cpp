// Eager messages: copied behind their frame, or read by the network from the program's buffer.
#include "ofi/state.h"

#include <algorithm>

namespace near::ofi {

namespace {

void write_head(Frame& frame, Peer& peer, const Envelope& envelope) {
  fill(frame, peer, Message::eager, envelope.bytes);
  frame.context = envelope.context;
  frame.source = envelope.source;
  frame.tag = envelope.tag;
}

/// The most bytes that each of a message's credits stands for.
std::uint64_t bytes_for_credit(std::uint64_t bytes) { return std::min(bytes, credit_bytes); }

/// Whether the network reads the message from the program's buffer: copying it would take longer than a request that waits until
/// it has been sent. Shorter ones must be sent without a request, too.
bool may_borrow(const Buffer& buffer, std::uint64_t bytes) {
  return bytes > transport::eager_limit() && state().endpoint.sends_parts() && is_in_place(buffer);
}

/// Whether the message may stay in this process for a while: until the first message has got through,
/// which takes calls on both sides; behind others that have not been sent; or because the connection
/// is full. Its sender must wait for it, since a program that stops calling MPI moves no message. No
/// network reports how full a connection is: a kernel is assumed to hold 64 KiB for each.
bool may_stay(const Peer& peer, std::uint64_t bytes) {
  constexpr std::uint64_t surely_leaves = 64 << 10,
                          kernels_record = 1024; // kept by a kernel for a message in addition to its bytes
  if (!peer.reached || !peer.out.empty() || !is_open(peer) || peer.unsent != 0) return true;
  const std::uint64_t credits = all_credits - peer.credits_left + credits_for(bytes);
  const std::uint64_t widest = std::max(peer.widest_credit, bytes_for_credit(bytes));
  return credits * (widest + kernels_record) > surely_leaves;
}

/// Sends a message for which `waiter` waits: one in the program's buffer, or a copy.
void send_awaited(Peer& peer, const Envelope& envelope, const Buffer& buffer, bool borrow, Transfer& waiter) {
  Packet& packet = *state().packets.take();
  if (borrow)
    packet.elsewhere = buffer.contiguous_start();
  else if (envelope.bytes != 0)
    datatype::pack(buffer, 0, packet.body(), static_cast<MPI_Count>(envelope.bytes));
  peer.awaited.insert(&packet);
  packet.transfer = &waiter;
  waiter.peer = &peer;
  waiter.bytes = envelope.bytes;
  waiter.busy = true;
  write_head(packet.frame(), peer, envelope);
  spend_credits(peer, envelope);
  send(peer, packet, envelope.bytes);
}

} // namespace

void spend_credits(Peer& peer, const Envelope& envelope) {
  peer.credits_left -= credits_for(envelope.bytes);
  peer.widest_credit = std::max(peer.widest_credit, bytes_for_credit(envelope.bytes));
  transport::count_sent_elsewhere(envelope.bytes);
}

bool affords(const Peer& peer, std::uint32_t credits) {
  return peer.credits_left >= (credits == 1 ? 1 : credits + reserved_credits);
}

Eager send_eager(transport::Peer& to, const Envelope& envelope, const Buffer& buffer, Transfer* waiter) {
  Peer& peer = own(to);
  // A lost peer soon fails, and so does the message once it is announced.
  if (peer.lost && !peer.is_gone()) return Eager::refused;
  if (envelope.bytes > longest_body()) return send_unasked(peer, envelope, buffer, waiter);
  if (!affords(peer, credits_for(envelope.bytes))) return Eager::refused;
  State& self = state();
  const bool borrow = may_borrow(buffer, envelope.bytes);
  if ((borrow || may_stay(peer, envelope.bytes)) && !peer.is_gone()) {
    if (waiter == nullptr) return Eager::refused; // the caller tries again, with a request
    send_awaited(peer, envelope, buffer, borrow, *waiter);
    return Eager::waits;
  }
  auto write = [&](Frame& frame, std::byte* body) {
    write_head(frame, peer, envelope);
    if (envelope.bytes != 0) datatype::pack(buffer, 0, body, static_cast<MPI_Count>(envelope.bytes));
  };
  constexpr std::size_t longest = 256;
  const std::size_t bytes = sizeof(Frame) + envelope.bytes;
  // A peer that has left may be lost, too, and have no address; providers do not check for that.
  if (bytes <= std::min(longest, self.endpoint.inject_limit()) && peer.out.empty() && is_open(peer) &&
      !peer.lost) {
    alignas(Frame) std::array<std::byte, longest> message;
    auto& frame = *reinterpret_cast<Frame*>(message.data());
    const std::uint32_t due = peer.credits_due;
    write(frame, message.data() + sizeof frame);
    frame.sequence = peer.next_sequence;
    if (self.endpoint.inject(message.data(), bytes, peer.address) == 0) {
      ++peer.next_sequence;
      spend_credits(peer, envelope);
      return Eager::left;
    }
    peer.credits_due = due;
    if (waiter == nullptr) return Eager::refused;
    send_awaited(peer, envelope, buffer, false, *waiter);
    return Eager::waits;
  }
  Packet& packet = *self.packets.take();
  write(packet.frame(), packet.body());
  spend_credits(peer, envelope);
  send(peer, packet, envelope.bytes);
  return Eager::left;
}

bool sends_from_buffers(const Peer& peer) {
  return std::any_of(peer.awaited.begin(), peer.awaited.end(), [](const Packet* packet) {
    return packet->under_way && packet->elsewhere != nullptr && packet->packed == nullptr;
  });
}

void abandon_awaited(Peer& peer) {
  std::vector<Transfer*> ended;
  for (Packet* packet : peer.awaited) {
    Transfer* const transfer = std::exchange(packet->transfer, nullptr);
    transfer->busy = false;
    ended.push_back(transfer);
    if (packet->is_tagged) state().tagged_bytes -= packet->body_bytes();
    if (!packet->under_way) give_back(*packet); // otherwise the network does, or nobody
  }
  peer.awaited.clear();
  for (Transfer* transfer : ended) transfer->done(*transfer, MPI_ERR_PROC_ABORTED);
}

} // namespace near::ofi
