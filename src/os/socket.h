// TCP connections that show whether their other end is alive: the kernel answers for a process that computes or is stopped,
// and closes the connections of one that has ended.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace near::os {

using base::Result;

/// Whether `bytes` are a socket's address in the form of the kernel and libfabric (sockaddr_in or sockaddr_in6).
bool is_socket_address(std::span<const std::byte> bytes);

/// Listens at this address, on a free port. From then on the kernel accepts connections, whatever the process does.
/// Close-on-exec, non-blocking.
Result listen_at(std::span<const std::byte> address, int& descriptor, std::uint16_t& port);
/// Accepts the next connection; -1 if there is none. Close-on-exec, non-blocking.
int accept_from(int listener);
/// Connects to this port of an address, within `timeout_ns`. Close-on-exec, non-blocking.
Result connect_to(std::span<const std::byte> address, std::uint16_t port, std::uint64_t timeout_ns,
                  int& descriptor);

/// Lets the kernel probe the other end of an idle connection every `interval` seconds. After `unanswered` probes in a row
/// without an answer, the connection has ended.
void probe_when_idle(int descriptor, int interval, int unanswered);

/// How a connection ended.
enum class Ended {
  no,
  closed, ///< by the other end, or by its kernel when the process ended
  silent, ///< the other end does not answer
};
/// Reads at most bytes.size() bytes without waiting.
Ended receive_now(int descriptor, std::span<std::byte> bytes, std::size_t& got);
/// Sends as much as possible without waiting.
void send_now(int descriptor, std::span<const std::byte> bytes);

} // namespace near::os
