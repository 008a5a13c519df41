#include "launch/relay.h"

#include "machines/tree.h"
#include "os/clock.h"

#include <algorithm>
#include <string>
#include <utility>

namespace near::launch {

using machines::Frame;
using machines::Kind;

bool Relay::takes(Kind kind) {
  return kind == Kind::reach || kind == Kind::relayed || kind == Kind::hang_up || kind == Kind::cut;
}

bool Relay::obey(const Frame& order) {
  if (order.kind == Kind::reach) return reach(order);
  if (order.kind == Kind::relayed) {
    machines::Relayed relayed;
    if (!machines::Relayed::read(order.body, relayed)) return false;
    Route* const route = find(relayed.machine);
    if (route != nullptr) route->connection.put(machines::frame(relayed.frame.kind, relayed.frame.body));
    return route != nullptr;
  }
  unsigned machine = 0;
  if (!machines::read_machine(order.body, machine)) return false;
  Route* const route = find(machine);
  if (route == nullptr) return false;
  if (order.kind == Kind::hang_up) {
    route->hangs_up = true;
  } else {
    route->parted = true;
    route->connection.kill();
  }
  return true;
}

bool Relay::reach(const Frame& order) {
  machines::Reach reach;
  if (!machines::Reach::read(order.body, reach) || find(reach.machine) != nullptr) return false;
  const std::uint64_t key = key_ + 2 * routes_.size();
  Route& route = *routes_.emplace_back(std::make_unique<Route>());
  route.machine = reach.machine;
  route.connection.set_limit(reach.lost_after);
  constexpr unsigned each = 3, others = 64;
  (void)os::allow_descriptors(static_cast<unsigned>(routes_.size()) * each + others);
  if (!route.connection.start(reach.words, reach.directory, poller_, {key, key + 1}, bell_).ok())
    part(route, base::failure_text());
  return true;
}

Relay::Route* Relay::find(unsigned machine) {
  const auto found = std::find_if(routes_.begin(), routes_.end(),
                                  [&](const auto& each) { return each->machine == machine; });
  return found == routes_.end() ? nullptr : found->get();
}

void Relay::part(Route& route, std::string_view why) {
  route.parted = true;
  route.connection.kill();
  say_(Kind::parted, machines::Parted{route.machine, std::string(why)}.body());
}

void Relay::abandon() {
  for (const auto& route : routes_) {
    route->hangs_up = true;
    route->connection.hang_up();
  }
}

void Relay::dispatch(std::uint64_t key) {
  Route& route = *routes_[(key - key_) / 2];
  if ((key - key_) % 2 == 1) {
    route.connection.read_errors();
    return;
  }
  std::vector<Frame> frames;
  (void)route.connection.read(frames); // its end is noticed by check()
  if (route.parted) return;
  for (const Frame& frame : frames)
    if (frame.kind != Kind::alive)
      say_(Kind::relayed, machines::Relayed::body(route.machine, machines::frame(frame.kind, frame.body)));
}

void Relay::reaped(const os::Ending& ending) {
  for (const auto& route : routes_)
    if (route->connection.reaped(ending)) return;
}

void Relay::check() {
  const std::uint64_t now = os::monotonic_ns();
  for (const auto& route : routes_) {
    route->connection.keep_alive();
    if (route->hangs_up) route->connection.hang_up();
    if (route->parted) continue;
    if (const std::string why = route->connection.failure(now); !why.empty()) part(*route, why);
  }
}

int Relay::wait_ms() const {
  int wait_ms = 1000;
  for (const auto& route : routes_) wait_ms = std::min(wait_ms, route->connection.wait_ms());
  return wait_ms;
}

bool Relay::is_over() const {
  return std::all_of(routes_.begin(), routes_.end(),
                     [](const auto& each) { return each->parted || each->connection.is_over(); });
}

} // namespace near::launch
