// Long messages: announced by an RTS. If both sides are contiguous the receiver reads the bytes from the sender's memory
// (fi_read), otherwise the sender packs them into data messages once the receiver has asked for them.
//
//   sender                                           receiver
//   rts: cookie, address, key  ------------------->  matched: reads, piece by piece
//   done  <---------------------------------  fin    done
//
//   rts: cookie  --------------------------------->  matched
//                <---------------------------------  cts: cookies, bytes
//   data: position, bytes  ----------------------->  unpacks each
//   done when the last one is packed                 done when the last one is unpacked
#include "ofi/state.h"

#include <algorithm>

namespace near::ofi {

namespace {

/// The longest piece of a read, in bytes.
constexpr std::uint64_t longest_read = 64 << 20;
/// How many packets may be occupied in total by messages that are sent in pieces.
constexpr std::uint32_t packets_for_pieces = 32;

enum RtsWord { cookie, address, key, readable, claimed }; // RtsHeader::kind is 1 if the message left unasked

/// Removes the entry and returns what it held.
template <class Table>
auto take(Table& table, typename Table::iterator found) {
  auto held = std::move(found->second);
  table.erase(found);
  return held;
}

void end_sending(std::unordered_map<std::uint64_t, Sending>::iterator found, int error) {
  const Sending ended = take(state().sends, found);
  Endpoint::release(ended.memory);
  finish(*ended.transfer, error);
}

/// Reads the bytes of an announced message into the buffer of `transfer`.
void read_message(Peer& peer, const RtsHeader& rts, Transfer& transfer) {
  const std::uint64_t longest = std::min<std::uint64_t>(longest_read, state().endpoint.longest());
  auto copy = std::make_unique<Copy>();
  copy->peer = &peer;
  copy->key = rts.words[key];
  copy->transfer = &transfer;
  copy->sender_cookie = rts.words[cookie];
  for (std::uint64_t at = 0; at < transfer.bytes; at += longest) {
    Copy::Piece& piece = copy->pieces.emplace_back();
    piece.mine = transfer.buffer.contiguous_start() + at;
    piece.theirs = rts.words[address] + at;
    piece.bytes = std::min(longest, transfer.bytes - at);
  }
  begin(std::move(copy));
}

/// Sends one more piece of a message. Returns whether it was the last one: the transfer ends when that piece has been sent, and no
/// longer belongs to `sending`.
bool send_piece(Sending& sending) {
  Transfer& transfer = *sending.transfer;
  Peer& peer = own(*transfer.peer);
  const DataBody head{sending.receiver_cookie, sending.position};
  const std::uint64_t bytes =
      std::min<std::uint64_t>(sending.wanted - sending.position, piece_bytes - sizeof head);
  Packet& packet = *state().packets.take();
  fill(packet.frame(), peer, Message::data, sizeof head + bytes);
  std::memcpy(packet.body(), &head, sizeof head);
  datatype::pack(transfer.buffer, static_cast<MPI_Count>(sending.position), packet.body() + sizeof head,
                 static_cast<MPI_Count>(bytes));
  sending.position += bytes;
  const bool is_last = sending.position == sending.wanted;
  if (is_last) {
    peer.awaited.insert(&packet);
    packet.transfer = &transfer;
  }
  send(peer, packet, sizeof head + bytes);
  return is_last;
}

} // namespace

Result send_rts(transport::Peer& to, const Envelope& envelope, const Buffer& buffer, Transfer& transfer) {
  State& self = state();
  Peer& peer = own(to);
  transfer.peer = &to;
  transfer.buffer = buffer;
  transfer.bytes = envelope.bytes;
  transfer.cookie = self.next_cookie++;
  transfer.busy = true;
  Sending sending{.transfer = &transfer};
  RtsBody body{.bytes = envelope.bytes};
  body.rts.words[cookie] = transfer.cookie;
  body.rts.may_come_early = transfer.may_come_early;
  if (envelope.bytes != 0 && is_in_place(buffer)) {
    void* begin = buffer.contiguous_start();
    // If the network cannot register that much memory, the message is sent in pieces.
    if (self.endpoint.expose(begin, envelope.bytes, false, sending.memory).ok()) {
      body.rts.words[address] = self.endpoint.remote_address(begin);
      body.rts.words[key] = fi_mr_key(sending.memory);
      body.rts.words[readable] = 1;
    }
  }
  Packet& packet = *self.packets.take();
  fill(packet.frame(), peer, Message::rts, sizeof body);
  packet.frame().context = envelope.context;
  packet.frame().source = envelope.source;
  packet.frame().tag = envelope.tag;
  std::memcpy(packet.body(), &body, sizeof body);
  self.sends[transfer.cookie] = sending;
  if (peer.closed) self.some_will_not_be_received = true;
  send(peer, packet, sizeof body);
  transport::count_sent_elsewhere(envelope.bytes);
  return {};
}

/// Waits for the receiver's answer, since only the receiver knows whether it has matched the message. A receiver that leaves
/// has answered before, or will never match it.
bool cancel_rts(Transfer& transfer) {
  State& self = state();
  struct Question {
    std::uint64_t cookie;
    const Peer& receiver;
    bool is_over() const {
      const auto found = state().sends.find(cookie);
      return found == state().sends.end() || found->second.refused || found->second.cancelled ||
             receiver.leaves;
    }
  };
  Question question{transfer.cookie, own(*transfer.peer)};
  auto found = self.sends.find(question.cookie);
  if (found == self.sends.end() || found->second.asked || found->second.withdraws) return false;
  found->second.withdraws = true;
  send(own(*transfer.peer), Message::withdraw, &question.cookie, sizeof question.cookie);
  transport::wait_until([](void* at) { return static_cast<const Question*>(at)->is_over(); }, &question);
  found = self.sends.find(question.cookie);
  if (found == self.sends.end() || found->second.refused) return false;
  const Sending ended = take(self.sends, found);
  Endpoint::release(ended.memory);
  transfer.busy = false;
  return true;
}

void handle_withdraw(Peer& peer, std::uint64_t number) {
  const WithdrawnBody answer{number, peer.tagged.contains(number) ? 0 : peer.announced.erase(number)};
  send(peer, Message::withdrawn, &answer, sizeof answer);
}

void handle_withdrawn(Peer& peer, const WithdrawnBody& body) {
  const auto found = state().sends.find(body.cookie);
  if (found == state().sends.end() || found->second.transfer->peer != &peer || !found->second.withdraws)
    return;
  (body.cancelled != 0 ? found->second.cancelled : found->second.refused) = true;
}

static void hand_up(Peer& peer, const Envelope& envelope, const RtsHeader& rts) {
  peer.announced.insert(rts.words[cookie]);
  Arrival arrival{&peer, envelope, reinterpret_cast<const std::byte*>(&rts), sizeof rts, 0};
  state().handlers[static_cast<std::size_t>(Handler::p2p_rts)](arrival);
}

void announce(Peer& peer, const Envelope& envelope, RtsHeader rts) {
  rts.words[claimed] = rts.kind = 0; // only meaningful in this process
  hand_up(peer, envelope, rts);
}

void announce_unasked(Peer& peer, const Envelope& envelope, std::uint64_t number) {
  RtsHeader rts{};
  rts.words[cookie] = number;
  rts.kind = 1;
  hand_up(peer, envelope, rts);
}

bool rts_is_live(const transport::Peer& from, const RtsHeader& rts) {
  return static_cast<const Peer&>(from).announced.contains(rts.words[cookie]);
}

bool claim_rts(transport::Peer& from, RtsHeader& rts) {
  rts.words[claimed] = own(from).announced.erase(rts.words[cookie]);
  return rts.words[claimed] != 0;
}

bool accept(transport::Peer& from, const RtsHeader& rts, std::uint64_t message_bytes, const Buffer& buffer,
            Transfer& transfer) {
  Peer& peer = own(from);
  if (rts.words[claimed] == 0 && peer.announced.erase(rts.words[cookie]) == 0) return false;
  transfer.peer = &from;
  transfer.buffer = buffer;
  transfer.bytes = std::min<std::uint64_t>(message_bytes, static_cast<std::uint64_t>(buffer.bytes()));
  transfer.busy = true;
  if (rts.kind != 0) return accept_unasked(peer, rts.words[cookie], transfer);
  if (transfer.bytes == 0) {
    send(peer, Message::fin, &rts.words[cookie], sizeof rts.words[cookie]);
    finish(transfer, MPI_SUCCESS);
  } else if (peer.failed) {
    finish(transfer, MPI_ERR_PROC_ABORTED);
  } else if (rts.words[readable] != 0 && is_in_place(buffer)) {
    read_message(peer, rts, transfer);
  } else {
    State& self = state();
    transfer.cookie = self.next_cookie++;
    self.receives[transfer.cookie] = {&transfer, transfer.bytes};
    const CtsBody body{rts.words[cookie], transfer.cookie, transfer.bytes};
    send(peer, Message::cts, &body, sizeof body);
  }
  return true;
}

void message_was_read(Copy& copy) {
  // After an error the sender is informed as well, so that it does not wait; the error is the receiver's.
  send(*copy.peer, Message::fin, &copy.sender_cookie, sizeof copy.sender_cookie);
  finish(*copy.transfer, copy.error);
}

void handle_fin(Peer& peer, std::uint64_t number) {
  const auto found = state().sends.find(number);
  if (found != state().sends.end() && found->second.transfer->peer == &peer) end_sending(found, MPI_SUCCESS);
}

void handle_cts(Peer& peer, const CtsBody& body) {
  State& self = state();
  const auto found = self.sends.find(body.sender_cookie);
  if (found == self.sends.end() || found->second.transfer->peer != &peer || found->second.asked) return;
  Sending& sending = found->second;
  sending.asked = true;
  sending.receiver_cookie = body.receiver_cookie;
  sending.wanted = std::min(body.bytes, sending.transfer->bytes);
  self.pushed.push_back(body.sender_cookie);
}

bool push() {
  State& self = state();
  bool moved = false;
  while (!self.pushed.empty() && self.unsent < packets_for_pieces) {
    const std::uint64_t number = self.pushed.front();
    self.pushed.pop_front();
    const auto found = self.sends.find(number);
    if (found == self.sends.end()) continue; // its receiver has failed
    if (!own(*found->second.transfer->peer).out.empty()) {
      self.pushed.push_back(number);
      break; // the network has no space
    }
    moved = true;
    if (send_piece(found->second))
      Endpoint::release(take(self.sends, found).memory);
    else
      self.pushed.push_back(number); // alternates with the others
  }
  return moved;
}

void handle_data(Peer& peer, const DataBody& head, const std::byte* bytes, std::size_t count) {
  State& self = state();
  const auto found = self.receives.find(head.receiver_cookie);
  if (found == self.receives.end() || found->second.transfer->peer != &peer) return;
  Receiving& receiving = found->second;
  Transfer& transfer = *receiving.transfer;
  if (count > receiving.left || head.position > transfer.bytes - count) return;
  datatype::unpack(transfer.buffer, static_cast<MPI_Count>(head.position), bytes,
                   static_cast<MPI_Count>(count));
  receiving.left -= count;
  if (receiving.left != 0) return;
  self.receives.erase(found);
  finish(transfer, MPI_SUCCESS);
}

bool sends_settled() {
  State& self = state();
  // Called at every poll while this process waits, so it must not examine each message every time.
  if (!std::exchange(self.some_will_not_be_received, false)) return self.sends.empty();
  for (auto each = self.sends.begin(); each != self.sends.end();) {
    const auto current = each++;
    if (!own(*current->second.transfer->peer).closed || current->second.asked) continue;
    Endpoint::release(current->second.memory); // the receiver will not receive this message
    self.sends.erase(current);
  }
  return self.sends.empty();
}

void abandon_messages(Peer& peer) {
  State& self = state();
  std::vector<Transfer*> ended = abandon_tagged(peer);
  auto is_with_peer = [&](const auto& entry) { return entry.second.transfer->peer == &peer; };
  auto collect = [&](auto& table) {
    for (auto each = table.begin(); each != table.end();) {
      const auto current = each++;
      if (!is_with_peer(*current)) continue;
      ended.push_back(current->second.transfer);
      if constexpr (requires { current->second.memory; }) Endpoint::release(current->second.memory);
      table.erase(current);
    }
  };
  collect(self.sends);
  collect(self.receives);
  for (auto& [key_of_copy, copy] : self.copies)
    if (copy->peer == &peer && copy->transfer != nullptr)
      ended.push_back(std::exchange(copy->transfer, nullptr));
  for (Transfer* transfer : ended) finish(*transfer, MPI_ERR_PROC_ABORTED);
}

} // namespace near::ofi
