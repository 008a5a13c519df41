#include "os/signals.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <sys/signalfd.h>
#include <unistd.h>

namespace near::os {

SignalInbox::~SignalInbox() { close(); }

Result SignalInbox::open(std::span<const int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (int number : signals) sigaddset(&set, number);
  if (sigprocmask(SIG_BLOCK, &set, nullptr) != 0) return base::fail_system("sigprocmask", errno);
  descriptor_ = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
  if (descriptor_ < 0) return base::fail_system("signalfd", errno);
  return {};
}

void SignalInbox::close() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

int SignalInbox::take(std::int32_t& sender) {
  signalfd_siginfo info{};
  if (read(descriptor_, &info, sizeof info) != sizeof info) return 0;
  sender = info.ssi_code == SI_USER ? static_cast<std::int32_t>(info.ssi_pid) : 0;
  return static_cast<int>(info.ssi_signo);
}

std::string signal_name(int number) {
  const char* name = sigabbrev_np(number);
  return name != nullptr ? std::string("SIG") + name : "signal " + std::to_string(number);
}

void ignore_signal(int number) { std::signal(number, SIG_IGN); }
void send_signal(std::int32_t pid, int number) {
  if (pid > 1) kill(pid, number);
}

} // namespace near::os
