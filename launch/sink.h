// What mpiexec writes for its ranks: to its own standard output or standard error, or to files. A thread of
// its own writes, because a pipe, a terminal or a file system that is full stops the writer, and the launcher
// must go on watching its ranks meanwhile.
#pragma once

#include "base/result.h"
#include "os/poller.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace near::launch {

class Sink {
public:
  Sink() = default;
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;
  /// Starts the thread. `bell` rings when room appeared, everything was written, or writing failed.
  base::Result start(os::Bell& bell);

  /// Queues text for a descriptor; it is the caller's part to look at has_room() first.
  void put(int descriptor, std::string_view text);
  bool has_room() const;
  /// Everything that was put has been written, or never can be.
  bool idle() const;
  /// Nothing more can be written: the reader has gone, or writing failed.
  bool broken() const;
  /// Why writing failed; empty as long as it has not, and when the reader has gone, which is no failure.
  std::string failure() const;
  /// What could not be written to; -1 where failure() is empty.
  int failed_descriptor() const;

private:
  void run();

  // What may wait to be written: enough to keep a pipe busy, little enough that a rank which writes faster
  // than the reader reads is stopped soon.
  static constexpr std::size_t capacity = 1u << 20;

  os::Bell* bell_ = nullptr;
  mutable std::mutex mutex_;
  std::condition_variable filled_;
  std::map<int, std::string> waiting_; ///< by descriptor
  std::size_t waiting_bytes_ = 0;
  bool writing_ = false;
  bool broken_ = false;
  std::string failure_;
  int failed_descriptor_ = -1;
};

} // namespace near::launch
