// Signals as messages: blocked, and read from a descriptor.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <span>
#include <string>

namespace near::os {

using base::Result;

/// A set of signals that a process reads from a descriptor instead of being interrupted.
class SignalInbox {
public:
  SignalInbox() = default;
  SignalInbox(const SignalInbox&) = delete;
  SignalInbox& operator=(const SignalInbox&) = delete;
  ~SignalInbox();
  /// Blocks the signals in the calling thread and in threads that it starts later, and opens the inbox,
  /// close-on-exec.
  Result open(std::span<const int> signals);
  void close();
  int descriptor() const { return descriptor_; }
  /// Reads the next signal without waiting; returns 0 if there is none. `sender` is 0 if the kernel sent the
  /// signal.
  int take(std::int32_t& sender);

private:
  int descriptor_ = -1;
};

/// The name of a signal, such as "SIGKILL"; "signal 70" if it has none.
std::string signal_name(int signal);
/// Ignores a signal in this process; processes made by start_process get the default action again.
void ignore_signal(int signal);
void send_signal(std::int32_t pid, int signal);

} // namespace near::os
