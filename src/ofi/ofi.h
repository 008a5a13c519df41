// The network transport: reaches processes on other machines through libfabric. It runs beside the node transport, which
// is added first and so keeps the processes on this machine. doc/network.md describes its messages.
#pragma once

#include "ofi/endpoint.h"
#include "transport/registry.h"

#include <cstddef>
#include <span>
#include <vector>

namespace near::ofi {

/// What this process learns about others from the launcher.
class Directory {
public:
  virtual ~Directory() = default;
  /// Whether the process is on another machine, so that the network must reach it.
  virtual bool is_elsewhere(object::ProcessId process) = 0;
  /// Gets the address that the process has published. Fails if it has published none.
  virtual Result address_of(object::ProcessId process, std::vector<std::byte>& address) = 0;
  /// A count that increases after has_died() becomes true for another process. Called again and again, so it must be cheap.
  virtual std::uint32_t deaths() = 0;
  /// Whether the process is known to have died.
  virtual bool has_died(object::ProcessId process) = 0;
  /// All processes for which is_elsewhere() is true.
  virtual std::vector<object::ProcessId> processes_elsewhere() = 0;
  /// The first call says that this process has nothing left to send. Returns whether all processes of the job have said so:
  /// until then others may have messages for this one, which it must answer. Called again and again; does not wait.
  virtual bool all_leave() = 0;
};

/// How the transport starts.
struct Settings {
  object::ProcessId self;
  std::uint64_t secret = 0;       ///< of the job: messages without it are dropped
  Directory* directory = nullptr; ///< must live as long as this process
  /// How many messages a process may send beyond those that the peer has confirmed; the peer confirms half a window at a
  /// time. The same in all processes, and at most 2^15 - 64; tests use a smaller one.
  std::uint16_t window = 1 << 14;
};

/// Opens the network. Fails with Code::unsupported if there is none that `choice` admits.
Result open(const Choice& choice);
/// The address of this process's endpoint. From now on other processes can send to it.
std::span<const std::byte> own_address();
/// The part of such an address that is a socket's (sockaddr), if the network uses Internet addresses.
std::span<const std::byte> socket_address_in(std::span<const std::byte> address);
/// Registers the transport, once the network is open.
void start(const Settings& settings);
/// The network in use, for people: "tcp;ofi_rxm on eth0".
std::string network_name();
/// The distance of this process from the network's NIC: the kernel's distance between their NUMA nodes, 10 if they are on the
/// same one; 0 if unknown.
unsigned nic_distance();

} // namespace near::ofi
