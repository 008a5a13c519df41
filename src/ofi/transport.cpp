// The network as a transport: peers, progress, shutdown.
#include "ofi/state.h"

#include "base/log.h"
#include "os/clock.h"
#include "os/socket.h"

#include <algorithm>
#include <stdexcept>

namespace near::ofi {

State& state() {
  static State& made = *new State;
  return made;
}

namespace {

/// A poll of the network costs a system call with TCP, as much as several messages within the machine. After this many
/// polls in a row that found nothing, and with nothing under way, the network is polled only after this time.
constexpr std::uint32_t polls_until_quiet = 1024;
constexpr std::uint64_t quiet_interval_ns = 20'000;

/// For how long, and for at least how many polls, the network may continue with the operations of a lost peer. A connection that
/// was reset delivers what had arrived, and ends the operations; a silent one does not end them, but delivers nothing either.
constexpr std::uint64_t longest_release_ns = 100'000'000;
constexpr std::uint32_t least_releasing_looks = 64;
/// After this time and half as many polls, receives whose messages have not begun to arrive are cancelled: nothing else ends them.
/// Not earlier, since a message that nobody receives blocks those that have arrived after it.
constexpr std::uint64_t until_cancelled_ns = 20'000'000;

void abandon(transport::Peer& failed) {
  Peer& peer = own(failed);
  peer.failed = peer.closed = state().some_will_not_be_received = true;
  state().unsent -= std::exchange(peer.unsent, 0); // the network may never report that it has given up
  drop_waiting(peer);
  abandon_awaited(peer);
  abandon_messages(peer);
  abandon_accesses(peer);
}

const transport::Operations operations = {
    .name = "ofi",
    .send_eager = send_eager,
    .send_rts = send_rts,
    .cancel_rts = cancel_rts,
    .claim_rts = claim_rts,
    .rts_is_live = rts_is_live,
    .accept = accept,
    .give_back_packet = [](transport::Peer&, std::uint64_t packet) { give_back_packet(packet); },
    .give_back_credit = give_back_credit,
    .hold_back = [](transport::Peer&, bool) {},
    .has_ended = [](transport::Peer& peer) { return own(peer).closed; },
    .abandon = abandon,
    .register_memory = register_memory,
    .deregister_memory = deregister_memory,
    .capabilities = capabilities,
    .get = get,
    .put = put,
    .atomic = apply_atomic,
    .flush = flush,
};

/// Sends the first messages to a new peer.
void greet(Peer& peer, bool knows_us) {
  State& self = state();
  const auto address = self.endpoint.address();
  if (!knows_us) send(peer, Message::hello, address.data(), address.size());
  if (self.receives_no_more) send(peer, Message::closed);
  if (self.leaving_told) send(peer, Message::leaving);
}

/// Makes a peer for a process that has died before anything was sent to it.
Peer& make_dead_peer(object::ProcessId process) {
  State& self = state();
  auto made = std::make_unique<Peer>();
  made->operations = &operations;
  made->process = process;
  made->lost = self.looks_for_deaths = true; // it fails once it is mapped
  return *(self.peers[process.rank] = std::move(made));
}

transport::Peer* connect(object::ProcessId process) {
  State& self = state();
  if (!self.settings.directory->is_elsewhere(process)) return nullptr;
  if (self.settings.directory->has_died(process)) return &make_dead_peer(process);
  const auto told = self.told_addresses.find(process.rank);
  std::vector<std::byte> address;
  if (told != self.told_addresses.end())
    address = told->second;
  else if (!self.settings.directory->address_of(process, address).ok())
    throw transport::Unreachable(std::string(base::failure_text()));
  auto made = std::make_unique<Peer>();
  if (!self.endpoint.insert(address, made->address).ok())
    throw transport::Unreachable(std::string(base::failure_text()));
  made->operations = &operations;
  made->process = process;
  Peer& peer = *made;
  self.peers[process.rank] = std::move(made);
  greet(peer, told != self.told_addresses.end());
  return &peer;
}

void handle(const Completion& completion) {
  switch (completion.operation->what) {
  case Operation::What::receive:
    return arrived(static_cast<Packet&>(*completion.operation), completion.bytes, completion.error);
  case Operation::What::tagged_receive:
    return bytes_are_here(static_cast<TaggedReceive&>(*completion.operation), completion.bytes,
                          completion.error);
  case Operation::What::send: return sent(static_cast<Packet&>(*completion.operation), completion.error);
  case Operation::What::access:
    return piece_is_over(static_cast<Copy::Piece&>(*completion.operation), completion.error);
  }
}

/// Whether the network may still read or write buffers of the program for this peer.
bool uses_buffers(const Peer& peer) {
  const auto is_under_way = [&](const auto& entry) {
    const Copy& copy = *entry.second;
    return copy.peer == &peer && copy.ended != copy.begun;
  };
  return sends_from_buffers(peer) || fills_buffers(peer) ||
         std::any_of(state().copies.begin(), state().copies.end(), is_under_way);
}

/// Whether a lost peer may fail, which releases all buffers: the network has finished with them, or it is silent.
bool is_released(Peer& peer) {
  peer.lost = true; // nothing more is sent to it
  if (!uses_buffers(peer)) return true;
  const std::uint64_t now = os::monotonic_ns();
  if (peer.releasing_looks++ == 0) peer.releasing_since = now;
  const std::uint64_t for_ns = now - peer.releasing_since;
  if (for_ns >= until_cancelled_ns && peer.releasing_looks >= least_releasing_looks / 2) cancel_unasked(peer);
  return for_ns >= longest_release_ns && peer.releasing_looks >= least_releasing_looks;
}

/// Finds peers that have died since the last call. A process that died before this one has sent it anything becomes a peer
/// now, since receives may wait for it.
void look_for_deaths() {
  State& self = state();
  Directory& directory = *self.settings.directory;
  self.looks_for_deaths = false;
  if (const std::uint32_t deaths = directory.deaths(); deaths != self.deaths) {
    self.deaths = deaths;
    for (const object::ProcessId process : directory.processes_elsewhere())
      if (directory.has_died(process)) (void)peer_with(process.rank);
  }
  std::vector<Peer*> released;
  for (auto& [rank, peer] : self.peers) {
    if (peer->is_gone() || (!peer->lost && !directory.has_died(peer->process))) continue;
    if (is_released(*peer))
      released.push_back(peer.get());
    else
      self.looks_for_deaths = true;
  }
  for (Peer* peer : released)
    if (!peer->is_gone()) transport::fail(*peer); // the failure of another peer may have made progress
}

bool has_work(const State& self) {
  return self.unsent != 0 || !self.waiting.empty() || !self.unbegun.empty() || !self.pushed.empty() ||
         !self.copies.empty() || self.tagged_bytes != 0 || !self.sends.empty() || !self.receives.empty() ||
         !self.atomics.empty();
}

/// Whether this poll need not poll the network.
bool may_skip(State& self) {
  if (self.quiet <= polls_until_quiet) {
    ++self.quiet;
    return false;
  }
  const std::uint64_t now = os::monotonic_ns();
  if (now - self.looked_ns < quiet_interval_ns && !has_work(self)) return true;
  self.looked_ns = now;
  return false;
}

bool advance() {
  State& self = state();
  if (may_skip(self)) return false;
  std::array<Completion, most_completions> some;
  std::size_t count = 0;
  if (!self.endpoint.take(some, count).ok()) throw transport::Unreachable(std::string(base::failure_text()));
  self.over.insert(self.over.end(), some.begin(), some.begin() + static_cast<std::ptrdiff_t>(count));
  bool moved = count != 0;
  // A handler may make progress and so call this again, which continues with the next operation.
  while (!self.over.empty()) {
    const Completion next = self.over.front();
    self.over.pop_front();
    if (next.operation != nullptr) handle(next);
    moved = true;
  }
  note_arrivals();
  if (!self.waiting.empty()) moved |= send_waiting();
  if (!self.unbegun.empty()) moved |= begin_waiting();
  if (!self.pushed.empty()) moved |= push();
  if (self.some_not_received) moved |= receive_waiting();
  post_packets();
  if (self.looks_for_deaths || self.settings.directory->deaths() != self.deaths) look_for_deaths();
  if (moved) self.quiet = 0;
  return moved;
}

/// The bytes of the first entries of a table. A program may have tens of thousands of messages under way.
template <class Table, class Bytes>
std::uint64_t sum_of_some(const Table& table, Bytes&& bytes) {
  std::uint64_t sum = 0;
  int left = 64;
  for (const auto& [key, entry] : table) {
    if (left-- == 0) break;
    sum += bytes(entry);
  }
  return sum;
}

/// TCP moves a long message only while both processes poll, and nothing reports that a part of it has moved. So they poll for
/// as long as it takes at half a gigabyte a second, and without a descriptor at least until a nap (1/16 of the time) is
/// longer than it takes to fall asleep and wake up.
std::uint64_t polling_ns() {
  const State& self = state();
  constexpr std::uint64_t ns_for_byte = 2, until_naps_are_worth_it = 16ull * 32'000;
  const std::uint64_t bytes =
      sum_of_some(self.copies, [](const auto& copy) { return copy->pieces.front().bytes; }) +
      sum_of_some(self.sends, [](const Sending& sending) { return sending.transfer->bytes; }) +
      sum_of_some(self.receives, [](const Receiving& receiving) { return receiving.left; });
  return ns_for_byte * (bytes + self.tagged_bytes) +
         (self.endpoint.descriptor() < 0 ? until_naps_are_worth_it : 0);
}

bool has_arrived() {
  const transport::EngineLock lock;
  state().quiet = 0; // after the sleep, the next poll covers the network
  return !state().over.empty() || state().some_not_received || state().looks_for_deaths ||
         !state().endpoint.can_sleep();
}

template <class Condition>
bool all_peers(Condition&& condition) {
  return std::all_of(state().peers.begin(), state().peers.end(),
                     [&](const auto& entry) { return condition(*entry.second); });
}

void tell_all(Message message) {
  for (auto& [rank, peer] : state().peers) send(*peer, message);
}

/// Everything has been sent when the peers have answered that it arrived: the network discards what it holds for a
/// process that has ended.
bool is_drained() {
  State& self = state();
  const bool copies = std::any_of(self.copies.begin(), self.copies.end(),
                                  [](const auto& entry) { return !entry.first->peer->failed; });
  if (self.unsent != 0 || !self.waiting.empty() || !self.pushed.empty() || copies) return false;
  if (!std::exchange(self.leaving_told, true)) {
    tell_all(Message::leaving);
    return false;
  }
  if (!all_peers([](const Peer& peer) { return peer.is_gone() || peer.seen; })) return false;
  return self.settings.directory->all_leave();
}

transport::Transport network = {
    .name = "ofi",
    .connect = connect,
    .set_handler =
        [](Handler handler, HandlerFunction function) {
          state().handlers[static_cast<std::size_t>(handler)] = function;
        },
    .is_idle = [] { return false; },
    .advance = advance,
    .has_arrived = has_arrived,
    .waits_for_flow_control = nullptr,
    .register_as_waiter = nullptr,
    .descriptor = -1,
    .polling_ns = polling_ns,
    .poll_always = nullptr,
    .receive_no_more =
        [] {
          if (!std::exchange(state().receives_no_more, true)) tell_all(Message::closed);
        },
    .sends_settled = sends_settled,
    .is_drained = is_drained,
    .leave = [] {},
};

} // namespace

Peer* peer_with(std::uint32_t rank) {
  State& self = state();
  auto found = self.peers.find(rank);
  if (found != self.peers.end()) return found->second.get();
  const object::ProcessId process{.rank = rank};
  if (!self.settings.directory->is_elsewhere(process)) return nullptr;
  transport::peer_at(process);
  found = self.peers.find(rank);
  return found == self.peers.end() ? nullptr : found->second.get();
}

void settle_lost(Peer& peer) {
  if (!peer.is_gone()) peer.lost = state().looks_for_deaths = true;
}

Result open(const Choice& choice) { return state().endpoint.open(choice); }

void start(const Settings& settings) {
  State& self = state();
  self.settings = settings;
  network.descriptor = self.endpoint.descriptor();
  network.is_silent = network.descriptor < 0;
  post_first_packets();
  std::uint64_t& limit = transport::fast_path.eager_limit; // shared by all transports
  limit = limit == 0 ? least_eager : std::min<std::uint64_t>(limit, longest_body());
  // A limit below the default says that few messages should be sent before they are received.
  if (limit >= least_eager)
    transport::fast_path.longest_eager =
        std::max<std::uint64_t>(transport::longest_eager(), longest_without_rts());
  transport::wait_settings.may_yield_to_learn = true;
  transport::add(network);
  transport::set_running(true);
}

std::span<const std::byte> socket_address_in(std::span<const std::byte> address) {
  const auto kind_ends = std::find(address.begin(), address.end(), std::byte{});
  if (kind_ends == address.end()) return {};
  const auto rest = address.subspan(static_cast<std::size_t>(kind_ends - address.begin()) + 1);
  return os::is_socket_address(rest) ? rest : std::span<const std::byte>();
}
std::span<const std::byte> own_address() { return state().endpoint.address(); }
std::string network_name() { return state().endpoint.name(); }
unsigned nic_distance() { return state().endpoint.nic_distance(); }

} // namespace near::ofi
