// Writes output of the ranks to the standard output or standard error of mpiexec, or to files. A thread
// does the writing, because a full pipe, terminal or file system blocks the writer, and the launcher must
// continue to watch its ranks.
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
  /// Starts the thread. `bell` rings when there is room again, when everything was written, and when
  /// writing failed.
  base::Result start(os::Bell& bell);

  /// Queues text for a descriptor. The caller checks has_room() first.
  void put(int descriptor, std::string_view text);
  bool has_room() const;
  /// Whether everything that was queued has been written, or can never be.
  bool idle() const;
  /// Whether nothing more can be written: the reader has gone, or writing failed.
  bool broken() const;
  /// Why writing failed; empty if it has not, or if the reader has gone, which is not a failure.
  std::string failure() const;
  /// The descriptor that could not be written to; -1 if failure() is empty.
  int failed_descriptor() const;

private:
  void run();

  // How much may be queued: enough to keep a pipe busy, and little enough that a rank which writes faster
  // than the reader reads is stopped soon.
  static constexpr std::size_t capacity = 1u << 20;

  os::Bell* bell_ = nullptr;
  mutable std::mutex mutex_;
  std::condition_variable filled_;
  std::map<int, std::string> waiting_; ///< queued text by descriptor
  std::size_t waiting_bytes_ = 0;
  bool writing_ = false;
  bool broken_ = false;
  std::string failure_;
  int failed_descriptor_ = -1;
};

} // namespace near::launch
