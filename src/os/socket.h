// TCP connections that tell whether their other end lives: the kernel answers for a process that computes or is stopped, and
// closes the connections of one that has ended.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace near::os {

using base::Result;

/// A socket's address as the kernel and libfabric write it (sockaddr_in or sockaddr_in6). Whether `bytes` are one.
bool is_socket_address(std::span<const std::byte> bytes);

/// Listens at this address, at a port that is free. The kernel accepts connections from then on, whatever the process does.
/// Close-on-exec, non-blocking.
Result listen_at(std::span<const std::byte> address, int& descriptor, std::uint16_t& port);
/// Takes the next connection; -1 if there is none. Close-on-exec, non-blocking.
int accept_from(int listener);
/// Connects to this port of an address, within `timeout_ns`. Close-on-exec, non-blocking.
Result connect_to(std::span<const std::byte> address, std::uint16_t port, std::uint64_t timeout_ns,
                  int& descriptor);

/// Lets the kernel ask the other end of an idle connection every `interval` seconds whether it is there. After `unanswered`
/// questions in a row the connection has ended.
void probe_when_idle(int descriptor, int interval, int unanswered);

/// How a connection ended.
enum class Ended {
  no,
  closed, ///< by the other end, or by its kernel when the process ended
  silent, ///< the other end does not answer
};
/// Reads at most bytes.size() bytes without waiting.
Ended receive_now(int descriptor, std::span<std::byte> bytes, std::size_t& got);
/// Sends, as far as that is possible without waiting.
void send_now(int descriptor, std::span<const std::byte> bytes);

} // namespace near::os
