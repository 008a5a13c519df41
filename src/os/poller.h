// Waiting for any of several descriptors, and a bell by which other threads wake the waiting thread.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <vector>

namespace near::os {

using base::Result;

/// Level-triggered epoll(7). Each descriptor is identified by a key of the caller's choice.
class Poller {
public:
  Poller() = default;
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;
  ~Poller();
  Result open();
  /// From now on wait() reports `key` while `descriptor` is readable or at its end.
  Result add(int descriptor, std::uint64_t key);
  /// Must be called before the descriptor is closed.
  void remove(int descriptor);
  /// Waits for at most `timeout_ms` (-1: without limit), and replaces `keys` by those of the ready
  /// descriptors.
  void wait(int timeout_ms, std::vector<std::uint64_t>& keys);

private:
  int descriptor_ = -1;
};

/// A counter whose descriptor is readable after ring(), until quiet(). Any thread may call ring().
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
