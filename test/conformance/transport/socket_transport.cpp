#include "socket_state.h"

#include <algorithm>
#include <array>
#include <sys/socket.h>

namespace near::test::sockets {

State& state() {
  static State& made = *new State;
  return made;
}

void write_out(Peer& peer) {
  std::array<char, 1 << 16> chunk;
  while (!peer.out.empty() && !peer.deaf) {
    const std::size_t bytes = std::min(chunk.size(), peer.out.size());
    std::copy_n(peer.out.begin(), bytes, reinterpret_cast<std::byte*>(chunk.data()));
    const ssize_t sent = ::send(peer.descriptor, chunk.data(), bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) peer.deaf = true;
    if (sent <= 0) break;
    peer.out.erase(peer.out.begin(), peer.out.begin() + sent);
    peer.written += static_cast<std::uint64_t>(sent);
  }
  if (peer.deaf) peer.out.clear();
  while (!peer.waiters.empty() && (peer.deaf || peer.waiters.front().first <= peer.written)) {
    Transfer& transfer = *peer.waiters.front().second;
    peer.waiters.pop_front();
    transfer.done(transfer, MPI_SUCCESS);
  }
}

void put_frame(Peer& peer, const Frame& frame, const Buffer* buffer) {
  const auto* head = reinterpret_cast<const std::byte*>(&frame);
  peer.out.insert(peer.out.end(), head, head + sizeof frame);
  if (buffer != nullptr && frame.payload != 0) {
    std::vector<std::byte> packed(frame.payload);
    datatype::pack(*buffer, 0, packed.data(), static_cast<MPI_Count>(frame.payload));
    peer.out.insert(peer.out.end(), packed.begin(), packed.end());
  }
  peer.queued += sizeof frame + frame.payload;
}

void put_frame(Peer& peer, const Frame& frame, const std::vector<std::byte>& payload) {
  put_frame(peer, frame);
  peer.out.insert(peer.out.end(), payload.begin(), payload.end());
}

namespace {

constexpr std::size_t eager_limit = 4096, kept_from = 64, most_waiting = 1 << 16;

void forget(Peer& peer, Transfer& transfer) {
  (transfer.previous != nullptr ? transfer.previous->next : peer.sends) = transfer.next;
  if (transfer.next != nullptr) transfer.next->previous = transfer.previous;
}

void handle(Peer& peer, const Frame& frame, const std::byte* payload) {
  State& self = state();
  switch (frame.what) {
  case What::eager: {
    Arrival arrival{&peer, frame.envelope, payload, frame.payload, 0};
    std::unique_ptr<std::byte[]> copy;
    if (frame.payload >= kept_from) {
      copy = std::make_unique<std::byte[]>(frame.payload);
      std::memcpy(copy.get(), payload, frame.payload);
      arrival.payload = copy.get();
      arrival.packet = self.next_packet++;
    }
    const std::uint64_t packet = arrival.packet;
    self.handlers[static_cast<int>(Handler::p2p_eager)](arrival);
    if (packet != 0 && arrival.packet == 0) self.kept[packet] = std::move(copy);
    break;
  }
  case What::credit: ++peer.credits_left; break;
  case What::rts: {
    RtsHeader rts{};
    rts.words[0] = frame.sender_cookie;
    Arrival arrival{&peer, frame.envelope, reinterpret_cast<const std::byte*>(&rts), sizeof rts, 0};
    self.handlers[static_cast<int>(Handler::p2p_rts)](arrival);
    break;
  }
  case What::cts: {
    auto& transfer = *reinterpret_cast<Transfer*>(frame.sender_cookie);
    Frame answer{What::data, static_cast<std::uint32_t>(frame.envelope.bytes), {}, 0, frame.receiver_cookie};
    put_frame(peer, answer, &transfer.buffer);
    forget(peer, transfer);
    transfer.busy = false;
    transfer.done(transfer, MPI_SUCCESS); // packed: the program may use the buffer again
    break;
  }
  case What::data: {
    auto& transfer = *reinterpret_cast<Transfer*>(frame.receiver_cookie);
    std::erase(peer.receives, &transfer);
    datatype::unpack(transfer.buffer, 0, payload, static_cast<MPI_Count>(frame.payload));
    transfer.busy = false;
    transfer.done(transfer, MPI_SUCCESS);
    break;
  }
  case What::closed: peer.closed = true; break;
  case What::put:
  case What::get:
  case What::atomic:
  case What::answer: handle_memory(peer, frame, payload); break;
  }
}

bool read_in(Peer& peer) {
  bool moved = false;
  std::array<std::byte, 1 << 16> chunk;
  for (int round = 0; round < 16 && !peer.gone; ++round) {
    const ssize_t got = ::recv(peer.descriptor, chunk.data(), chunk.size(), MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) peer.gone = peer.deaf = true;
    if (got <= 0) break;
    peer.in.insert(peer.in.end(), chunk.begin(), chunk.begin() + got);
    moved = true;
  }
  std::size_t at = 0;
  for (Frame frame{}; peer.in.size() - at >= sizeof frame;) {
    std::memcpy(&frame, peer.in.data() + at, sizeof frame);
    if (peer.in.size() - at - sizeof frame < frame.payload) break;
    // A copy, since the handler may make progress and so re-enter this function.
    std::vector<std::byte> payload(peer.in.begin() + static_cast<std::ptrdiff_t>(at + sizeof frame),
                                   peer.in.begin() +
                                       static_cast<std::ptrdiff_t>(at + sizeof frame + frame.payload));
    at += sizeof frame + frame.payload;
    handle(peer, frame, payload.data());
  }
  peer.in.erase(peer.in.begin(), peer.in.begin() + static_cast<std::ptrdiff_t>(at));
  return moved;
}

Eager send_eager(transport::Peer& to, const Envelope& envelope, const Buffer& buffer, Transfer* waiter) {
  Peer& peer = own(to);
  const bool full = peer.out.size() > most_waiting;
  if (envelope.bytes > eager_limit || peer.credits_left == 0 || (full && waiter == nullptr))
    return Eager::refused;
  --peer.credits_left;
  put_frame(peer, {What::eager, static_cast<std::uint32_t>(envelope.bytes), envelope}, &buffer);
  if (!full) {
    write_out(peer);
    return Eager::left; // the payload has been packed
  }
  peer.waiters.emplace_back(peer.queued, waiter);
  return Eager::waits;
}

Result send_rts(transport::Peer& to, const Envelope& envelope, const Buffer& buffer, Transfer& transfer) {
  Peer& peer = own(to);
  transfer.peer = &to;
  transfer.buffer = buffer;
  transfer.bytes = envelope.bytes;
  transfer.busy = true;
  transfer.previous = nullptr;
  transfer.next = peer.sends;
  if (peer.sends != nullptr) peer.sends->previous = &transfer;
  peer.sends = &transfer;
  put_frame(peer, {What::rts, 0, envelope, reinterpret_cast<std::uint64_t>(&transfer)});
  write_out(peer);
  return {};
}

bool accept(transport::Peer& from, const RtsHeader& rts, std::uint64_t message_bytes, const Buffer& buffer,
            Transfer& transfer) {
  Peer& peer = own(from);
  transfer.peer = &from;
  transfer.buffer = buffer;
  transfer.bytes = std::min<std::uint64_t>(message_bytes, static_cast<std::uint64_t>(buffer.bytes()));
  transfer.busy = true;
  if (transport::has_failed(from)) {
    transfer.busy = false;
    transfer.done(transfer, MPI_ERR_PROC_ABORTED);
    return true;
  }
  Frame frame{What::cts, 0, {}, rts.words[0], reinterpret_cast<std::uint64_t>(&transfer)};
  frame.envelope.bytes = transfer.bytes;
  peer.receives.push_back(&transfer);
  put_frame(peer, frame);
  write_out(peer);
  return true;
}

void give_back_credit(transport::Peer& to, std::uint64_t) {
  if (own(to).deaf) return;
  put_frame(own(to), Frame{.what = What::credit});
  write_out(own(to));
}

void abandon(transport::Peer& failed) {
  Peer& peer = own(failed);
  peer.out.clear();
  for (const auto& [at, transfer] : std::exchange(peer.waiters, {})) {
    transfer->busy = false;
    transfer->done(*transfer, MPI_ERR_PROC_ABORTED);
  }
  while (Transfer* transfer = peer.sends) {
    forget(peer, *transfer);
    transfer->busy = false;
    transfer->done(*transfer, MPI_ERR_PROC_ABORTED);
  }
  std::vector<Transfer*> receives;
  receives.swap(peer.receives);
  for (Transfer* transfer : receives) {
    transfer->busy = false;
    transfer->done(*transfer, MPI_ERR_PROC_ABORTED);
  }
  abandon_accesses(peer);
}

const transport::Operations operations = {
    .name = "sockets",
    .send_eager = send_eager,
    .send_rts = send_rts,
    .cancel_rts = [](Transfer&) { return false; },
    .claim_rts = [](transport::Peer&, RtsHeader&) { return true; },
    .rts_is_live = [](const transport::Peer&, const RtsHeader&) { return true; },
    .accept = accept,
    .give_back_packet = [](transport::Peer&, std::uint64_t packet) { state().kept.erase(packet); },
    .give_back_credit = give_back_credit,
    .hold_back = [](transport::Peer&, bool) {},
    .has_ended = [](transport::Peer& peer) { return own(peer).closed || own(peer).deaf; },
    .abandon = abandon,
    .register_memory = register_memory,
    .deregister_memory = deregister_memory,
    .capabilities = capabilities,
    .get = get,
    .put = put,
    .atomic = apply_atomic,
    .flush = flush,
};

bool can_be_read() {
  char byte;
  const Peer& peer = state().peer;
  return !peer.gone && (::recv(peer.descriptor, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || errno != EAGAIN);
}

void tell_closed() {
  State& self = state();
  if (self.receives_no_more) return;
  self.receives_no_more = true;
  put_frame(self.peer, Frame{.what = What::closed});
  write_out(self.peer);
}

bool sends_settled() {
  Peer& peer = state().peer;
  if (!peer.closed && !peer.deaf) return peer.sends == nullptr;
  peer.sends = nullptr; // it will not receive any of them
  return true;
}

transport::Transport sockets = {
    .name = "sockets",
    .connect = [](object::ProcessId process) -> transport::Peer* {
      return process == state().other ? &state().peer : nullptr;
    },
    .set_handler = [](Handler handler,
                      HandlerFunction function) { state().handlers[static_cast<int>(handler)] = function; },
    .is_idle = [] { return state().peer.out.empty() && !can_be_read(); },
    .advance =
        [] {
          Peer& peer = state().peer;
          const std::uint64_t before = peer.written;
          const bool read = read_in(peer);
          write_out(peer);
          // A process that ends normally announces it first.
          if (peer.gone && !peer.closed) transport::fail(peer);
          return read || peer.written != before;
        },
    .has_arrived = can_be_read,
    .waits_for_flow_control = nullptr,
    .register_as_waiter = nullptr,
    .descriptor = -1,
    .poll_always = nullptr,
    .receive_no_more = tell_closed,
    .sends_settled = sends_settled,
    .is_drained = [] { return state().peer.out.empty(); },
    .leave = [] { ::shutdown(state().peer.descriptor, SHUT_WR); },
};

} // namespace

void start(int descriptor, object::ProcessId other) {
  State& self = state();
  self.other = other;
  self.peer.descriptor = sockets.descriptor = descriptor;
  self.peer.operations = &operations;
  std::uint64_t& limit = transport::fast_path.eager_limit; // shared by all transports
  limit = limit == 0 ? eager_limit : std::min<std::uint64_t>(limit, eager_limit);
  transport::add(sockets);
  transport::set_running(true);
}

} // namespace near::test::sockets
