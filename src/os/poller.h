// Waits for any of many descriptors, and a word that another thread can send to the waiting one.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <vector>

namespace near::os {

using base::Result;

/// epoll(7), level-triggered. A descriptor is known by the number that the caller gave it.
class Poller {
public:
  Poller() = default;
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;
  ~Poller();
  Result open();
  /// Reports `key` while `descriptor` is readable or has ended.
  Result add(int descriptor, std::uint64_t key);
  /// Before the descriptor is closed.
  void remove(int descriptor);
  /// Waits at most `timeout_ms` (-1: for ever) and replaces `keys` by those that are ready.
  void wait(int timeout_ms, std::vector<std::uint64_t>& keys);

private:
  int descriptor_ = -1;
};

/// A counter that makes its descriptor readable; any thread may ring it.
class Bell {
public:
  Bell() = default;
  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;
  ~Bell();
  Result open();
  int descriptor() const { return descriptor_; }
  void ring();
  void quiet();

private:
  int descriptor_ = -1;
};

} // namespace near::os
