// The registered transports, and the peers that they have mapped.
#include "transport/registry.h"

#include "transport/polling.h"

#include <algorithm>
#include <array>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

namespace near::transport {

namespace {

struct Registry {
  std::array<const Transport*, 4> transports{};
  std::size_t count = 0;
  std::array<HandlerFunction, static_cast<std::size_t>(Handler::count_upper)> handlers{};
  Peer unmapped;              ///< stands for every process that is not mapped
  std::vector<Peer*> by_rank; ///< of this job; nullptr: not mapped
  std::map<std::pair<std::uint32_t, std::uint32_t>, Peer*> by_process; ///< of other jobs
  bool running = false;
};

/// Never destroyed: exit handlers and forked children may still use it.
object::Immortal<Registry> registry_storage;
Registry& registry() { return registry_storage.value; }

std::span<const Transport* const> transports() {
  return std::span(registry().transports).first(registry().count);
}

[[gnu::cold]] [[gnu::noinline]] Peer& map_peer(object::ProcessId process) {
  Registry& self = registry();
  // Make the entry first: nothing may fail once the transport has mapped the peer. Look it up again afterwards, because
  // a transport may map another peer on the way.
  auto entry = [&]() -> Peer*& {
    if (process.job != 0) return self.by_process[{process.job, process.rank}];
    if (self.by_rank.size() <= process.rank) self.by_rank.resize(process.rank + 1);
    return self.by_rank[process.rank];
  };
  entry();
  for (const Transport* transport : transports()) {
    Peer* made = transport->connect(process);
    if (made == nullptr) continue;
    made->process = process;
    made->send.peer = made->receive.peer = made;
    return *(entry() = made);
  }
  throw Unreachable(base::format("no transport reaches process {} of job {}", process.rank, process.job));
}

bool advance_each() {
  bool moved = false;
  for (const Transport* transport : transports())
    if (!transport->is_idle()) moved |= transport->advance();
  return moved;
}

} // namespace

void add(const Transport& transport) {
  Registry& self = registry();
  if (self.count == self.transports.size()) throw std::length_error("too many transports");
  object::unknown_process = &self.unmapped;
  self.transports[self.count++] = &transport;
  for (std::size_t i = 0; i < self.handlers.size(); ++i)
    if (self.handlers[i] != nullptr) transport.set_handler(static_cast<Handler>(i), self.handlers[i]);
  advance_all = self.count == 1 ? transport.advance : advance_each;
  if (self.count == 1) return;
  for (const Transport* each : transports())
    if (each->poll_always != nullptr) each->poll_always();
}

void set_handler(Handler handler, HandlerFunction function) {
  registry().handlers[static_cast<std::size_t>(handler)] = function;
  for (const Transport* transport : transports()) transport->set_handler(handler, function);
}

Peer* mapped_peer(object::ProcessId process) {
  const Registry& self = registry();
  if (process.job == 0) return process.rank < self.by_rank.size() ? self.by_rank[process.rank] : nullptr;
  auto found = self.by_process.find({process.job, process.rank});
  return found != self.by_process.end() ? found->second : nullptr;
}

Peer& peer_at(object::ProcessId process) {
  Peer* peer = mapped_peer(process);
  return peer != nullptr ? *peer : map_peer(process);
}

Peer& peer_of(const object::Communicator& communicator, int rank) {
  object::Process*& known = communicator.processes[static_cast<std::size_t>(rank)];
  Peer* peer = static_cast<Peer*>(known)->send.peer;
  if (peer != nullptr) [[likely]]
    return *peer;
  peer = &peer_at(communicator.process_ids[rank]);
  known = peer;
  return *peer;
}

void find_peer(const object::Communicator& communicator, int rank) {
  if (Peer* peer = mapped_peer(communicator.process_ids[rank]))
    communicator.processes[static_cast<std::size_t>(rank)] = peer;
}

bool has_transports() { return registry().count != 0; }

bool is_idle() {
  for (const Transport* transport : transports())
    if (!transport->is_idle()) return false;
  return true;
}

bool progress() {
  const bool moved = !is_idle() && make_progress();
  if (moved) ++moves;
  return moved;
}

bool has_arrived() {
  for (const Transport* transport : transports())
    if (transport->has_arrived()) return true;
  return false;
}

bool waits_for_flow_control() {
  for (const Transport* transport : transports())
    if (transport->waits_for_flow_control != nullptr && transport->waits_for_flow_control()) return true;
  return false;
}

void register_with_transports() {
  for (const Transport* transport : transports())
    if (transport->register_as_waiter != nullptr) transport->register_as_waiter();
}

std::size_t descriptors(std::span<int> found) {
  std::size_t count = 0;
  for (const Transport* transport : transports())
    if (transport->descriptor >= 0 && count < found.size()) found[count++] = transport->descriptor;
  return count;
}

bool any_is_silent() {
  const auto all = transports();
  return std::any_of(all.begin(), all.end(), [](const Transport* transport) { return transport->is_silent; });
}

std::uint64_t polling_ns() {
  std::uint64_t longest = 0;
  for (const Transport* transport : transports())
    if (transport->polling_ns != nullptr) longest = std::max(longest, transport->polling_ns());
  return longest;
}

void receive_no_more() {
  for (const Transport* transport : transports()) transport->receive_no_more();
}

bool sends_settled() {
  bool settled = true;
  for (const Transport* transport : transports()) settled &= transport->sends_settled();
  return settled;
}

void stop() {
  if (!registry().running) return;
  NEAR_KILL_POINT("finalize-entered");
  receive_no_more();
  wait_until(
      [](void*) {
        bool drained = sends_settled();
        for (const Transport* transport : transports()) drained &= transport->is_drained();
        return drained;
      },
      nullptr);
  for (const Transport* transport : transports()) transport->leave();
}

bool running() { return registry().running; }
void set_running(bool running) { registry().running = running; }

} // namespace near::transport
