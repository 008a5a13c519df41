// The machines that an agent reaches for mpiexec, and their communication with mpiexec through it (machines/tree.h).
//
//   mpiexec <--- frames ---> agent <--- ssh ---> agent of a further machine
//
// It holds nothing back: an agent sends at most 1 MiB that mpiexec has not acknowledged, and receives no more either. So at most
// that much waits here for each machine behind this one, in each direction.
#pragma once

#include "launch/connection.h"
#include "machines/frames.h"
#include "os/poller.h"
#include "os/process.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

namespace near::launch {

class Relay {
public:
  /// Sends a frame to mpiexec.
  using Say = std::function<void(machines::Kind, std::string_view)>;
  /// Its keys begin with `key`; pass any event that the poller reports under them to dispatch().
  Relay(os::Poller& poller, std::uint64_t key, os::Bell& bell, Say say)
      : poller_(poller), key_(key), bell_(bell), say_(std::move(say)) {}

  /// Whether frames of this kind are orders for obey().
  static bool takes(machines::Kind kind);
  /// Carries out an order from mpiexec. Returns false if the frame is damaged, or names a machine that was never to be reached.
  bool obey(const machines::Frame& order);
  /// Hangs up on all machines, since mpiexec has gone.
  void abandon();

  void dispatch(std::uint64_t key);
  void reaped(const os::Ending& ending);
  /// Call after each wait for events.
  void check();
  /// The longest time to wait before the next check.
  int wait_ms() const;
  /// Whether no machine is connected any more.
  bool is_over() const;

private:
  struct Route {
    unsigned machine = 0;
    Connection connection;
    bool hangs_up = false;
    bool parted = false; ///< mpiexec knows that nothing more comes from there
  };
  bool reach(const machines::Frame& order);
  Route* find(unsigned machine);
  void part(Route& route, std::string_view why);

  os::Poller& poller_;
  const std::uint64_t key_;
  os::Bell& bell_;
  const Say say_;
  std::vector<std::unique_ptr<Route>> routes_; ///< in the order of their keys
};

} // namespace near::launch
