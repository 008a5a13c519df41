// Shared by the tests of the suite: messages as they arrive, sides of a rendezvous, and the fixture.
#pragma once

#include "kind.h"
#include "processes.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <vector>

namespace near::test {

const std::vector<std::string>& kind_names();

using transport::Arrival;
using transport::Buffer;
using transport::Eager;
using transport::Envelope;
using transport::Handler;
using transport::Peer;
using transport::RtsHeader;
using transport::Transfer;
using Bytes = std::vector<unsigned char>;

/// A message as it arrived. An eager message is released at once unless the test holds credits back.
struct Arrived {
  Peer* from = nullptr;
  Envelope envelope;
  Bytes data;
  bool is_rts = false;
  RtsHeader rts{};
  std::uint64_t packet = 0; ///< a packet that is kept
  const std::byte* kept = nullptr;
};
inline std::deque<Arrived> inbox;
inline bool hold_credits = false, keep_packets = false;

inline void on_eager(Arrival& arrival) {
  Arrived& made = inbox.emplace_back();
  made.from = arrival.from;
  made.envelope = arrival.envelope;
  const auto* bytes = reinterpret_cast<const unsigned char*>(arrival.payload);
  made.data.assign(bytes, bytes + arrival.payload_bytes);
  if (keep_packets && arrival.packet != 0) {
    made.packet = arrival.packet;
    made.kept = arrival.payload;
    transport::keep_packet(arrival);
  }
  if (!hold_credits) transport::give_back_credit(*arrival.from, arrival.envelope.bytes);
}

inline void on_rts(Arrival& arrival) {
  Arrived& made = inbox.emplace_back();
  made.from = arrival.from;
  made.envelope = arrival.envelope;
  made.is_rts = true;
  made.rts = arrival.rts();
}

template <class Done>
void wait_for(Done&& done) {
  transport::wait_until([](void* at) -> bool { return (*static_cast<std::remove_reference_t<Done>*>(at))(); },
                        &done);
}

inline Buffer buffer_of(void* at, std::size_t bytes) {
  return {at, static_cast<MPI_Count>(bytes), datatype::find_datatype(MPI_BYTE)};
}

inline Bytes pattern(std::size_t bytes, unsigned seed) {
  Bytes data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<unsigned char>(i * 7 + seed + (i >> 9));
  return data;
}

/// A side of a rendezvous that records its completion.
struct Side : Transfer {
  bool finished = false;
  int error = -1;
  Side() {
    done = [](Transfer& transfer, int its_error) {
      auto& self = static_cast<Side&>(transfer);
      require(!self.finished, "done() is called once");
      self.finished = true;
      self.error = its_error;
    };
  }
};

inline void send_eager(Peer& to, int tag, Bytes data) {
  const Buffer buffer = buffer_of(data.data(), data.size());
  const Envelope envelope{5, 0, tag, data.size()};
  if (transport::try_send_eager(to, envelope, buffer)) return;
  // Again, as p2p does, with a request that can wait.
  Side side;
  Eager sent = Eager::refused;
  wait_for([&] {
    sent = transport::send_eager(to, envelope, buffer, &side);
    return sent != Eager::refused;
  });
  if (sent == Eager::waits) wait_for([&] { return side.finished; });
}

inline void announce(Peer& to, int tag, const Buffer& buffer, Side& side) {
  const auto bytes = static_cast<std::uint64_t>(buffer.bytes());
  require(transport::send_rts(to, {5, 0, tag, bytes}, buffer, side).ok(), "an RTS can be sent");
}

inline Arrived next() {
  wait_for([] { return !inbox.empty(); });
  Arrived first = std::move(inbox.front());
  inbox.pop_front();
  return first;
}

inline void take(const Arrived& message, const Buffer& buffer, Side& side) {
  require(message.is_rts, "the message is an RTS");
  require(transport::accept(*message.from, message.rts, message.envelope.bytes, buffer, side),
          "it can be accepted");
}

class Conformance : public testing::TestWithParam<std::string> {
protected:
  Kind& kind() { return kind_of(GetParam()); }
  void run(const std::function<void(Part&)>& body, bool receiver_dies = false) {
    kind().run(
        [&](Part& part) {
          inbox.clear();
          hold_credits = keep_packets = false;
          transport::set_handler(Handler::p2p_eager, on_eager);
          transport::set_handler(Handler::p2p_rts, on_rts);
          body(part);
        },
        receiver_dies);
  }
};

} // namespace near::test
