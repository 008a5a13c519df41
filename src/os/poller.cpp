#include "os/poller.h"

#include <array>
#include <cerrno>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace near::os {

Poller::~Poller() {
  if (descriptor_ >= 0) close(descriptor_);
}

Result Poller::open() {
  descriptor_ = epoll_create1(EPOLL_CLOEXEC);
  if (descriptor_ < 0) return base::fail_system("epoll_create1", errno);
  return {};
}

Result Poller::add(int descriptor, std::uint64_t key) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = key;
  if (epoll_ctl(descriptor_, EPOLL_CTL_ADD, descriptor, &event) != 0)
    return base::fail_system("epoll_ctl", errno);
  return {};
}

void Poller::remove(int descriptor) { epoll_ctl(descriptor_, EPOLL_CTL_DEL, descriptor, nullptr); }

void Poller::wait(int timeout_ms, std::vector<std::uint64_t>& keys) {
  std::array<epoll_event, 64> events;
  int count = epoll_wait(descriptor_, events.data(), static_cast<int>(events.size()), timeout_ms);
  keys.clear();
  for (int i = 0; i < count; ++i) keys.push_back(events[static_cast<std::size_t>(i)].data.u64);
}

Bell::~Bell() {
  if (descriptor_ >= 0) close(descriptor_);
}

Result Bell::open() {
  descriptor_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (descriptor_ < 0) return base::fail_system("eventfd", errno);
  return {};
}

void Bell::ring() {
  std::uint64_t one = 1;
  (void)!write(descriptor_, &one, sizeof one);
}

void Bell::quiet() {
  std::uint64_t count = 0;
  (void)!read(descriptor_, &count, sizeof count);
}

} // namespace near::os
