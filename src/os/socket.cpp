#include "os/socket.h"

#include "os/clock.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace near::os {

namespace {

/// A copy of an address with another port.
struct Address {
  sockaddr_storage storage{};
  socklen_t bytes = 0;

  Address(std::span<const std::byte> from, std::uint16_t port) : bytes(static_cast<socklen_t>(from.size())) {
    std::memcpy(&storage, from.data(), from.size());
    auto set = [&](std::size_t at) {
      const std::uint16_t value = htons(port);
      std::memcpy(reinterpret_cast<std::byte*>(&storage) + at, &value, sizeof value);
    };
    set(storage.ss_family == AF_INET ? offsetof(sockaddr_in, sin_port) : offsetof(sockaddr_in6, sin6_port));
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

Result check(std::span<const std::byte> address) {
  if (is_socket_address(address)) return {};
  return base::fail(base::Code::unsupported, "the network has no addresses of the Internet protocol");
}

int make_socket(const Address& address) {
  return socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/// Waits until a connection attempt has succeeded or failed; returns its error.
int wait_for_connection(int descriptor, std::uint64_t timeout_ns) {
  const std::uint64_t until = monotonic_ns() + timeout_ns;
  for (;;) {
    const std::uint64_t now = monotonic_ns();
    if (now >= until) return ETIMEDOUT;
    pollfd asked{descriptor, POLLOUT, 0};
    if (poll(&asked, 1, static_cast<int>((until - now) / 1'000'000 + 1)) <= 0) continue;
    int error = 0;
    socklen_t bytes = sizeof error;
    getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &bytes);
    return error;
  }
}

} // namespace

bool is_socket_address(std::span<const std::byte> bytes) {
  sa_family_t family = AF_UNSPEC;
  if (bytes.size() < sizeof family) return false;
  std::memcpy(&family, bytes.data(), sizeof family);
  return (family == AF_INET && bytes.size() == sizeof(sockaddr_in)) ||
         (family == AF_INET6 && bytes.size() == sizeof(sockaddr_in6));
}

Result listen_at(std::span<const std::byte> address, int& descriptor, std::uint16_t& port) {
  NEAR_TRY(check(address));
  Address own(address, 0);
  const int made = make_socket(own);
  if (made < 0) return base::fail_system("socket", errno);
  if (bind(made, own.get(), own.bytes) != 0 || listen(made, SOMAXCONN) != 0 ||
      getsockname(made, reinterpret_cast<sockaddr*>(&own.storage), &own.bytes) != 0) {
    const int error = errno;
    close(made);
    return base::fail_system("listen", error);
  }
  port = ntohs(own.storage.ss_family == AF_INET ? reinterpret_cast<sockaddr_in&>(own.storage).sin_port
                                                : reinterpret_cast<sockaddr_in6&>(own.storage).sin6_port);
  descriptor = made;
  return {};
}

int accept_from(int listener) { return accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK); }

Result connect_to(std::span<const std::byte> address, std::uint16_t port, std::uint64_t timeout_ns,
                  int& descriptor) {
  NEAR_TRY(check(address));
  const Address to(address, port);
  const int made = make_socket(to);
  if (made < 0) return base::fail_system("socket", errno);
  int error = connect(made, to.get(), to.bytes) == 0 ? 0 : errno;
  if (error == EINPROGRESS) error = wait_for_connection(made, timeout_ns);
  if (error != 0) {
    close(made);
    return base::fail_system("connect", error);
  }
  descriptor = made;
  return {};
}

void probe_when_idle(int descriptor, int interval, int unanswered) {
  // The last option applies while data that was sent is not yet acknowledged: then the kernel does not probe.
  const std::array<std::array<int, 3>, 5> options{
      {{IPPROTO_TCP, TCP_KEEPIDLE, interval},
       {IPPROTO_TCP, TCP_KEEPINTVL, interval},
       {IPPROTO_TCP, TCP_KEEPCNT, unanswered},
       {SOL_SOCKET, SO_KEEPALIVE, 1},
       {IPPROTO_TCP, TCP_USER_TIMEOUT, interval * (unanswered + 1) * 1000}}};
  for (const auto& [level, name, value] : options) setsockopt(descriptor, level, name, &value, sizeof value);
}

Ended receive_now(int descriptor, std::span<std::byte> bytes, std::size_t& got) {
  got = 0;
  ssize_t count;
  do count = recv(descriptor, bytes.data(), bytes.size(), MSG_DONTWAIT);
  while (count < 0 && errno == EINTR);
  if (count > 0) got = static_cast<std::size_t>(count);
  if (count > 0 || (count < 0 && errno == EAGAIN)) return Ended::no;
  return count == 0 || errno == ECONNRESET || errno == EPIPE ? Ended::closed : Ended::silent;
}

void send_now(int descriptor, std::span<const std::byte> bytes) {
  (void)!send(descriptor, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

} // namespace near::os
