// What a launcher does for the processes of a job: it tells them who they are, keeps a table that they share, and ends the job
// on request. There is a class for each protocol: PMI-1 (pmi.h) and PMIx (pmix.h).
#pragma once

#include "base/result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace near::boot {

using base::Result;

/// The connection of this process to its launcher. connect() is the first call, and finalize() the last one.
class Table {
public:
  virtual ~Table() = default;

  /// Connects to the launcher named by the environment.
  virtual Result connect(char** environment) = 0;
  std::uint32_t rank() const { return rank_; }
  std::uint32_t size() const { return size_; }
  std::uint32_t application() const { return application_; }
  /// Finds out which processes share a machine: those whose ranks have the same number.
  virtual Result find_machines(std::vector<std::uint32_t>& machine_of) = 0;

  /// Adds a row to the table; others can read it after fence(). No other process may use this key, and neither text may
  /// contain spaces or `=`.
  virtual Result put(std::string_view key, std::string_view value) = 0;
  /// Waits until all processes of the job have called this.
  virtual Result fence() = 0;
  /// fence() in two steps: begins it, then tests without waiting whether it is over.
  virtual Result begin_fence() = 0;
  virtual Result look_at_fence(bool& over) = 0;
  /// Gets what this rank put under this key before the last fence(). Fails with Code::invalid if there is nothing.
  virtual Result get(std::uint32_t rank, std::string_view key, std::string& value) = 0;
  /// Says goodbye; without it, the launcher takes the end of this process for a failure.
  virtual Result finalize() = 0;
  /// From now on, calls `callback` in another thread when the connection to the launcher breaks, if the protocol reports that.
  virtual void when_lost(void (*callback)()) { (void)callback; }
  /// Asks the launcher to end the job with this status. Any thread may call this at any time.
  virtual void abort(int status) = 0;

protected:
  std::uint32_t rank_ = 0, size_ = 1, application_ = 0;
};

} // namespace near::boot
