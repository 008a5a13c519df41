// Messages from the network that contain the job's secret, with any contents: nothing is read or written outside packets and
// buffers, and no message makes another one arrive wrongly. The endpoint is this machine's own; answers go to this process.
#include "datatype/datatype.h"
#include "ofi/state.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

using namespace near;

namespace {

constexpr std::uint64_t secret = 42;
constexpr std::uint32_t size = 3;

class Alone : public ofi::Directory {
public:
  ofi::Result address_of(object::ProcessId, std::vector<std::byte>& address) override {
    const auto own = ofi::own_address();
    address.assign(own.begin(), own.end());
    return {};
  }
  bool is_elsewhere(object::ProcessId process) override { return process.job == 0 && process.rank < size; }
  std::uint32_t deaths() override { return 0; }
  bool has_died(object::ProcessId) override { return false; }
  std::vector<object::ProcessId> processes_elsewhere() override { return {}; }
  bool all_leave() override { return true; }
};

std::uint64_t sum; // what is read must be readable
std::vector<std::pair<transport::Peer*, transport::RtsHeader>> announced;
std::array<std::byte, 4096> memory;
std::array<transport::Transfer, 64> transfers;
std::size_t next_transfer;

void on_eager(transport::Arrival& arrival) {
  for (std::size_t i = 0; i < arrival.payload_bytes; ++i) sum += static_cast<unsigned>(arrival.payload[i]);
  transport::give_back_credit(*arrival.from, arrival.envelope.bytes);
}

void on_rts(transport::Arrival& arrival) { announced.emplace_back(arrival.from, arrival.rts()); }

/// Accepts announced messages, into memory that may be shorter than the message.
void accept_some() {
  while (!announced.empty()) {
    auto [peer, rts] = announced.back();
    announced.pop_back();
    transport::Transfer& transfer = transfers[next_transfer++ % transfers.size()];
    if (transfer.busy) continue;
    transfer.done = [](transport::Transfer&, int) {};
    rts.words[3] = 0; // the network would read addresses that no process has exposed
    (void)transport::accept(*peer, rts, 1u << 20,
                            {memory.data(), memory.size(), datatype::find_datatype(MPI_BYTE)}, transfer);
  }
}

/// Most messages have the sequence number that is due, as the context says; some are early, and some have any number.
std::uint64_t number_of(const ofi::Frame& frame) {
  const auto found = ofi::state().peers.find(frame.sender);
  const std::uint16_t expected = found == ofi::state().peers.end() ? 0 : found->second->expected;
  const std::uint64_t kind = frame.context % 8;
  return kind < 6    ? expected
         : kind == 6 ? static_cast<std::uint16_t>(expected + frame.context / 8 % 4)
                     : frame.sequence;
}

} // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  static Alone alone;
  if (!datatype::make_predefined_types().ok() || !ofi::open({.domain = "lo"}).ok()) {
    std::fprintf(stderr, "%s\n", std::string(base::failure_text()).c_str());
    std::abort();
  }
  transport::set_handler(transport::Handler::p2p_eager, on_eager);
  transport::set_handler(transport::Handler::p2p_rts, on_rts);
  ofi::Settings settings;
  settings.self = {.rank = size};
  settings.secret = secret;
  settings.directory = &alone;
  settings.window = 256; // early messages take memory
  ofi::start(settings);
  return 0;
}

/// The input is a series of messages: two bytes with the length, then that many bytes from the second word on.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t left) {
  ofi::State& self = ofi::state();
  while (left > 2) {
    const std::size_t bytes =
        std::min<std::size_t>((2 * (data[0] | data[1] << 8) + 1) % (ofi::packet_bytes() - 7), left - 2);
    ofi::Packet& packet = *self.packets.take();
    std::memcpy(packet.data, &secret, sizeof secret);
    std::memcpy(packet.data + sizeof secret, data + 2, bytes);
    if (bytes >= sizeof(ofi::Frame) - sizeof secret) {
      packet.frame().sender %= size + 1; // most inputs would name nobody
      packet.frame().sequence = number_of(packet.frame());
      if (packet.frame().message == ofi::Message::hello) packet.frame().message = ofi::Message::credit;
    }
    ++self.posted;
    ofi::arrived(packet, sizeof secret + bytes, 0);
    accept_some();
    data += 2 + bytes;
    left -= 2 + bytes;
  }
  // Announced messages now arrive, with arbitrary contents.
  for (auto& [rank, peer] : self.peers) {
    std::vector<ofi::TaggedReceive*> coming;
    for (auto& [cookie, message] : peer->tagged)
      if (message->bytes_are == ofi::TaggedReceive::Bytes::coming) coming.push_back(message.get());
    for (ofi::TaggedReceive* message : coming) ofi::bytes_are_here(*message, message->bytes, 0);
    peer->tagged.clear(); // messages that nobody accepted
    peer->unasked_credits = 0;
  }
  // Answers, which come back to this process, must not accumulate; nobody confirms them.
  for (auto& [rank, peer] : self.peers) peer->confirmed = peer->next_sequence;
  for (int i = 0; i < 100'000 && (!self.waiting.empty() || i < 4); ++i) (void)transport::progress();
  return 0;
}
