// Signals taken as messages: blocked, and read from a descriptor.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <span>
#include <string>

namespace near::os {

using base::Result;

/// The signals that a process wants to read instead of being interrupted by them.
class SignalInbox {
public:
  SignalInbox() = default;
  SignalInbox(const SignalInbox&) = delete;
  SignalInbox& operator=(const SignalInbox&) = delete;
  ~SignalInbox();
  /// Blocks them in the calling thread (and those that it starts) and opens the inbox, close-on-exec.
  Result open(std::span<const int> signals);
  void close();
  int descriptor() const { return descriptor_; }
  /// The next signal, without waiting; 0 when there is none. `sender` is 0 when the kernel sent it.
  int take(std::int32_t& sender);

private:
  int descriptor_ = -1;
};

/// "SIGKILL" for 9; "signal 70" for one without a name.
std::string signal_name(int signal);
/// Ignores a signal in this process (the processes that start_process makes get the default back).
void ignore_signal(int signal);
void send_signal(std::int32_t pid, int signal);
/// To the process group that `leader` leads.
void send_signal_to_group(std::int32_t leader, int signal);

} // namespace near::os
