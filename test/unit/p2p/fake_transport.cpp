// See fake_transport.h.
#include "fake_transport.h"

#include "p2p/fast.h"
#include "transport/polling.h"
#include "transport/registry.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>

namespace near::transport {

using fake::FakePeer;

namespace {

FakePeer& fake_of(Peer& peer) { return static_cast<FakePeer&>(peer); }

enum class State { unmatched, matched, gone };

/// An RTS and its message.
struct Rts {
  State state = State::unmatched;
  std::vector<std::byte> data; ///< of a message from a fake process
  Transfer* sender = nullptr;  ///< of a message from this process
};

struct Moving {
  std::uint64_t rts_number;
  Transfer* transfer;
};

struct Inner {
  HandlerFunction handlers[static_cast<int>(Handler::count_upper)] = {};
  std::deque<fake::Sent> to_self;
  std::map<std::uint64_t, Rts> rts_by_number;
  std::uint64_t next_rts = 1;
  std::map<std::uint64_t, std::vector<std::byte>> packets;
  std::uint64_t next_packet = 1;
  std::vector<Moving> moving;
  bool at_once = true;
};

fake::World the_world;
Inner inner;

void call(Handler handler, Arrival& arrival) { inner.handlers[static_cast<int>(handler)](arrival); }

void deliver_eager(FakePeer& from, const Envelope& envelope, const std::vector<std::byte>& data) {
  ++from.credits_out;
  Arrival arrival{&from, envelope, data.data(), data.size(), 0};
  if (data.size() <= 64) {
    std::vector<std::byte> passing = data; // the payload is invalid once the handler returns
    arrival.payload = passing.data();
    call(Handler::p2p_eager, arrival);
    return;
  }
  std::uint64_t packet = inner.next_packet++;
  auto& memory = inner.packets[packet] = data;
  arrival.payload = memory.data();
  arrival.packet = packet;
  ++from.packets_out;
  call(Handler::p2p_eager, arrival);
  if (arrival.packet != 0) give_back_packet(from, packet);
}

void deliver_rts(FakePeer& from, const Envelope& envelope, std::uint64_t number) {
  RtsHeader rts{};
  rts.words[0] = number;
  rts.may_come_early = the_world.may_come_early;
  Arrival arrival{&from, envelope, reinterpret_cast<const std::byte*>(&rts), sizeof rts, 0};
  call(Handler::p2p_rts, arrival);
}

void move(const Moving& what, int error) {
  Rts& entry = inner.rts_by_number[what.rts_number];
  Transfer& transfer = *what.transfer;
  entry.state = State::gone;
  if (error == MPI_SUCCESS && transfer.bytes != 0) {
    auto bytes = static_cast<MPI_Count>(transfer.bytes);
    if (entry.sender != nullptr)
      datatype::copy(entry.sender->buffer, transfer.buffer, bytes);
    else
      datatype::unpack(transfer.buffer, 0, entry.data.data(), bytes);
  }
  Transfer* sender = entry.sender;
  transfer.done(transfer, error);
  if (sender != nullptr) sender->done(*sender, MPI_SUCCESS);
}

Eager fake_send_eager(Peer& peer, const Envelope& envelope, const Buffer& buffer, Transfer*) {
  if (envelope.bytes > fast_path.eager_limit || the_world.eager_left == 0) return Eager::refused;
  --the_world.eager_left;
  fake::Sent sent;
  sent.to = &fake_of(peer);
  sent.envelope = envelope;
  sent.data.resize(envelope.bytes);
  if (envelope.bytes != 0)
    datatype::pack(buffer, 0, sent.data.data(), static_cast<MPI_Count>(envelope.bytes));
  (fake_of(peer).number == 0 ? inner.to_self.emplace_back() : the_world.sent.emplace_back()) =
      std::move(sent);
  return Eager::left;
}

Result fake_send_rts(Peer& peer, const Envelope& envelope, const Buffer& buffer, Transfer& transfer) {
  if (the_world.rts_left == 0) return base::fail(MPI_ERR_NO_MEM, "no descriptor is free");
  --the_world.rts_left;
  transfer.peer = &peer;
  transfer.buffer = buffer;
  transfer.bytes = envelope.bytes;
  fake::Sent sent;
  sent.to = &fake_of(peer);
  sent.envelope = envelope;
  sent.transfer = &transfer;
  sent.rts_number = transfer.cookie = inner.next_rts++;
  inner.rts_by_number[sent.rts_number].sender = &transfer;
  (fake_of(peer).number == 0 ? inner.to_self.emplace_back() : the_world.sent.emplace_back()) =
      std::move(sent);
  return {};
}

bool fake_cancel_rts(Transfer& transfer) {
  Rts& entry = inner.rts_by_number[transfer.cookie];
  if (entry.state != State::unmatched) return false;
  entry.state = State::gone;
  ++the_world.rts_left;
  return true;
}

bool fake_claim_rts(Peer&, RtsHeader& rts) {
  if (inner.rts_by_number[rts.words[0]].state != State::unmatched) return false;
  inner.rts_by_number[rts.words[0]].state = State::matched;
  rts.words[1] |= 1;
  return true;
}

bool fake_accept(Peer& peer, const RtsHeader& rts, std::uint64_t message_bytes, const Buffer& buffer,
                 Transfer& transfer) {
  if ((rts.words[1] & 1) == 0 && inner.rts_by_number[rts.words[0]].state != State::unmatched) return false;
  Rts& entry = inner.rts_by_number[rts.words[0]];
  entry.state = State::matched;
  if (entry.sender != nullptr) ++the_world.rts_left;
  transfer.buffer = buffer;
  transfer.bytes = std::min<std::uint64_t>(message_bytes, static_cast<std::uint64_t>(buffer.bytes()));
  if (has_failed(peer)) {
    transfer.done(transfer, MPI_ERR_PROC_ABORTED);
    return true;
  }
  Moving moving{rts.words[0], &transfer};
  if (inner.at_once)
    move(moving, MPI_SUCCESS);
  else
    inner.moving.push_back(moving);
  return true;
}

bool fake_rts_is_live(const Peer&, const RtsHeader& rts) {
  return inner.rts_by_number[rts.words[0]].state == State::unmatched;
}

void fake_give_back_packet(Peer& owner, std::uint64_t packet) {
  if (inner.packets.erase(packet) != 1) std::abort();
  --fake_of(owner).packets_out;
}
void fake_give_back_credit(Peer& peer, std::uint64_t) { --fake_of(peer).credits_out; }

void fake_abandon(Peer& peer) {
  for (fake::Sent& sent : the_world.sent) {
    Rts& entry = inner.rts_by_number[sent.rts_number];
    if (sent.to != &peer || sent.transfer == nullptr || entry.state == State::gone) continue;
    entry.state = State::gone;
    sent.transfer->done(*sent.transfer, MPI_ERR_PROC_ABORTED);
  }
}

const Operations operations = {
    .name = "fake",
    .send_eager = fake_send_eager,
    .send_rts = fake_send_rts,
    .cancel_rts = fake_cancel_rts,
    .claim_rts = fake_claim_rts,
    .rts_is_live = fake_rts_is_live,
    .accept = fake_accept,
    .give_back_packet = fake_give_back_packet,
    .give_back_credit = fake_give_back_credit,
    .hold_back = [](Peer&, bool) {},
    .has_ended = [](Peer&) { return false; },
    .abandon = fake_abandon,
    // It cannot access the memory of peers.
    .register_memory = nullptr,
    .deregister_memory = nullptr,
    .capabilities = nullptr,
    .get = nullptr,
    .put = nullptr,
    .atomic = nullptr,
    .flush = nullptr,
};

bool advance() {
  if (inner.to_self.empty()) return false;
  fake::Sent sent = std::move(inner.to_self.front());
  inner.to_self.pop_front();
  if (sent.transfer != nullptr)
    deliver_rts(*sent.to, sent.envelope, sent.rts_number);
  else
    deliver_eager(*sent.to, sent.envelope, sent.data);
  return true;
}

std::vector<std::byte> bytes_of(const std::string& text) {
  std::vector<std::byte> bytes(text.size());
  if (!text.empty()) std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

} // namespace

namespace fake {

World& world() { return the_world; }

void reset() {
  HandlerFunction eager = inner.handlers[0], rts = inner.handlers[1];
  the_world = World{};
  inner = Inner{};
  inner.handlers[0] = eager;
  inner.handlers[1] = rts;
  for (std::size_t i = 0; i < the_world.peers.size(); ++i) {
    FakePeer& peer = the_world.peers[i];
    peer.number = static_cast<int>(i);
    peer.process.rank = static_cast<std::uint32_t>(i);
    peer.operations = &operations;
    peer.send.peer = peer.receive.peer = &peer;
  }
  fast_path.eager_limit = 1024;
  answers_due.store_relaxed(0);
  advance_all = advance;
}

bool nothing_held() {
  for (const FakePeer& peer : the_world.peers)
    if (peer.credits_out != 0 || peer.packets_out != 0) return false;
  return inner.to_self.empty();
}

void arrive(int from, const Envelope& envelope, const std::string& text) {
  deliver_eager(the_world.peers[static_cast<std::size_t>(from)], envelope, bytes_of(text));
}

std::uint64_t arrive_rts(int from, const Envelope& envelope, const std::string& text) {
  std::uint64_t number = inner.next_rts++;
  inner.rts_by_number[number].data = bytes_of(text);
  deliver_rts(the_world.peers[static_cast<std::size_t>(from)], envelope, number);
  return number;
}

bool is_accepted(std::uint64_t rts_number) {
  return inner.rts_by_number[rts_number].state != State::unmatched;
}

void withdraw(std::uint64_t rts_number) { inner.rts_by_number[rts_number].state = State::gone; }

void move_at_once(bool at_once) { inner.at_once = at_once; }

void finish_moving(int error) {
  std::vector<Moving> now;
  now.swap(inner.moving);
  for (const Moving& each : now) move(each, error);
}

void finish_sent(std::size_t index, int error) {
  Sent& sent = the_world.sent[index];
  inner.rts_by_number[sent.rts_number].state = State::gone;
  ++the_world.rts_left;
  sent.transfer->done(*sent.transfer, error);
}

void match_sent(std::size_t index) {
  inner.rts_by_number[the_world.sent[index].rts_number].state = State::matched;
}

bool cancelled(std::size_t index) {
  return inner.rts_by_number[the_world.sent[index].rts_number].state == State::gone;
}

} // namespace fake

void set_handler(Handler handler, HandlerFunction function) {
  inner.handlers[static_cast<int>(handler)] = function;
}

WaitSettings wait_settings; // no effect: nothing here sleeps

void count_unexpected() { ++the_world.unexpected; }

Peer& peer_at(object::ProcessId process) { return the_world.peers[process.rank]; }
Peer& peer_of(const object::Communicator& communicator, int rank) {
  return peer_at(communicator.process_ids[rank]);
}
void find_peer(const object::Communicator&, int) {}
void receive_no_more() {}
bool sends_settled() {
  return std::none_of(inner.rts_by_number.begin(), inner.rts_by_number.end(), [](const auto& each) {
    return each.second.sender != nullptr && each.second.state != State::gone;
  });
}

bool progress() {
  ++the_world.looks;
  return make_progress();
}

void wake_waiting_threads() { ++the_world.wakes; }

void give_way() {
  ++the_world.yields;
  if (the_world.when_yielding) the_world.when_yielding();
}

bool give_way_between_polls(bool first) {
  the_world.first_yields += first;
  give_way();
  return false;
}

segment::StateLine& own_state_line() {
  static segment::StateLine line{};
  return line;
}

// No test waits for a lock.
AwaitedLock::AwaitedLock(base::Atomic<std::uint64_t>& waiters) : waiters_(waiters) {}
AwaitedLock::~AwaitedLock() = default;

void wait_until(bool (*done)(void*), void* argument, bool (*)(void*)) {
  for (int idle = 0; !done(argument);) {
    if (progress()) continue;
    if (++idle > 1000) {
      std::fprintf(stderr, "fake transport: a wait that nothing can end\n");
      std::abort();
    }
  }
}

} // namespace near::transport

// The fast path (p2p/fast.h): tests here only ask whether it is possible.
namespace near::shm {

bool is_idle() { return transport::inner.to_self.empty(); }
void receive_from_packet(const ReceiveState&, const MessageHeader&, void*) { std::abort(); }
void receive_from_packet(const ReceiveState&, const MessageHeader&, const datatype::Buffer&) { std::abort(); }
void wake_slot_waiters() { std::abort(); }

} // namespace near::shm
