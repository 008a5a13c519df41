// The network transport: reaches processes on other machines through libfabric. It runs beside the node transport, which
// is added first and so keeps the processes of this machine. doc/network.md describes its messages.
#pragma once

#include "ofi/endpoint.h"
#include "transport/registry.h"

#include <cstddef>
#include <span>
#include <vector>

namespace near::ofi {

/// What this process learns of others by way of the launcher.
class Directory {
public:
  virtual ~Directory() = default;
  /// Whether the process is on another machine, so that the network must reach it.
  virtual bool is_elsewhere(object::ProcessId process) = 0;
  /// Gets the address that the process has published. Fails if it has published none.
  virtual Result address_of(object::ProcessId process, std::vector<std::byte>& address) = 0;
  /// Rises when has_died() has become true for another process. Called again and again, so it must be cheap.
  virtual std::uint32_t deaths() = 0;
  /// Whether the process is known to have died.
  virtual bool has_died(object::ProcessId process) = 0;
  /// All processes that is_elsewhere() is true for.
  virtual std::vector<object::ProcessId> processes_elsewhere() = 0;
  /// The first call says that this process has nothing left to send. Returns whether all processes of the job have said so:
  /// until then others may have messages for this one, which it must answer. Called again and again; does not wait.
  virtual bool all_leave() = 0;
};

/// How the transport starts.
struct Settings {
  object::ProcessId self;
  std::uint64_t secret = 0;       ///< of the job: messages without it are dropped
  Directory* directory = nullptr; ///< lives as long as this process
  /// How many messages a process may send beyond those that the peer has confirmed, which it does by halves. The same in all
  /// processes, and at most 2^15 - 64; tests have a smaller one.
  std::uint16_t window = 1 << 14;
};

/// Opens the network. Fails with Code::unsupported if there is none that `choice` admits.
Result open(const Choice& choice);
/// The address of this process's endpoint: other processes can send to it from now on.
std::span<const std::byte> own_address();
/// The part of such an address that is a socket's (sockaddr), if the network has the Internet protocol's addresses.
std::span<const std::byte> socket_address_in(std::span<const std::byte> address);
/// Registers the transport, once the network is open.
void start(const Settings& settings);
/// Which network was taken, for people: "tcp;ofi_rxm on eth0".
std::string network_name();
/// How far this process is from the NIC of the network: the kernel's distance between their NUMA nodes, 10 if they are on the
/// same one; 0 if it is unknown.
unsigned nic_distance();

} // namespace near::ofi
