// One endpoint of a network (FI_EP_RDM): reliable, unconnected, with messages and remote reads and writes. Other
// processes need its address to reach it. It reports completed operations in one completion queue.
#pragma once

#include "ofi/library.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace near::ofi {

/// Which network to use. Empty: any.
struct Choice {
  std::string provider = {}; ///< libfabric's name, such as "tcp" or "verbs;ofi_rxm"
  std::string domain = {};   ///< the interface, such as "eth0" or "mlx5_0"
  bool order_writes = true;  ///< request ordered writes; tests do not
  bool reorder = false;      ///< for tests: reports messages in another order than they were sent in
};

/// The first member of every object for which a libfabric operation is begun. When the operation has ended,
/// libfabric returns this address.
struct Operation {
  enum class What : std::uint8_t { receive, tagged_receive, send, access };
  fi_context2 context; ///< libfabric's own while the operation is under way
  What what;
};

/// A completed operation. `error` is 0 or libfabric's (positive) error number.
struct Completion {
  Operation* operation;
  std::size_t bytes; ///< for a receive
  int error;
};

/// Every network sends messages of up to this many bytes eagerly.
inline constexpr std::size_t least_eager = 16384;
/// The most completed operations that Endpoint::take() returns at a time, however much room there is.
inline constexpr std::size_t most_completions = 16;

class Endpoint {
public:
  Endpoint() = default;
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  /// Opens an endpoint of the best network that `choice` admits, at the nearest of several NICs that lead there. Fails with
  /// Code::unsupported if there is none.
  Result open(const Choice& choice);
  /// Closes the endpoint; nothing may be under way. Without this call it stays open until the process ends.
  void close();
  bool is_open() const { return endpoint_ != nullptr; }

  /// The address of this endpoint, with the kind of its network, to be passed to insert() in other processes.
  std::span<const std::byte> address() const { return address_; }
  /// Makes the endpoint with this address known, so that messages can be sent to it. Fails with Code::invalid if it belongs to
  /// a different kind of network.
  Result insert(std::span<const std::byte> address, fi_addr_t& peer);

  /// "tcp;ofi_rxm on eth0", for people.
  std::string name() const;
  /// os::distance_to_node() of the endpoint's NIC from the processors that this process could use when it was opened.
  unsigned nic_distance() const { return nic_distance_; }
  /// The longest message that inject() accepts.
  std::size_t inject_limit() const { return info_->tx_attr->inject_size; }
  /// Up to this length, two extra copies cost less than the two extra messages of a read.
  std::size_t longest_eager() const { return longest_eager_; }
  /// The longest read or write.
  std::size_t longest() const { return info_->ep_attr->max_msg_size; }
  /// Becomes readable when an operation completes, provided that can_sleep() was true before; -1 if no descriptor does.
  int descriptor() const { return descriptor_; }
  /// Whether nothing has completed yet. Also false if read() has work to do before a sleep.
  bool can_sleep();

  // Each begins an operation. Returns -FI_EAGAIN if the endpoint has no space for it now; then try again after
  // take(). Another negative result is an error. `local` is local_key() of the memory.
  std::int64_t inject(const void* message, std::size_t bytes, fi_addr_t to) {
    return fi_inject(endpoint_, message, bytes, to);
  }
  std::int64_t send(const void* message, std::size_t bytes, void* local, fi_addr_t to, Operation& operation) {
    return fi_send(endpoint_, message, bytes, local, to, &operation);
  }
  /// Sends a message in two parts; only if sends_parts().
  std::int64_t send_parts(std::span<const iovec, 2> parts, fi_addr_t to, Operation& operation) {
    return fi_sendv(endpoint_, parts.data(), nullptr, parts.size(), to, &operation);
  }
  /// Whether messages may consist of two parts, in memory that need not be registered.
  bool sends_parts() const {
    return info_->tx_attr->iov_limit >= 2 && (info_->domain_attr->mr_mode & FI_MR_LOCAL) == 0;
  }
  /// Sends a message that the peer receives by its tag, from memory that need not be registered; only if has_tags().
  std::int64_t send_tagged(const void* message, std::size_t bytes, fi_addr_t to, std::uint64_t tag,
                           Operation& operation) {
    return fi_tsend(endpoint_, message, bytes, nullptr, to, tag, &operation);
  }
  std::int64_t receive_tagged(void* into, std::size_t bytes, std::uint64_t tag, Operation& operation) {
    return fi_trecv(endpoint_, into, bytes, nullptr, FI_ADDR_UNSPEC, tag, 0, &operation);
  }
  /// Ends a receive with an error, unless its message has begun to arrive.
  void cancel(Operation& operation) { (void)fi_cancel(&endpoint_->fid, &operation); }
  /// Whether the network is a stream of bytes (TCP) that also supports tagged messages.
  bool has_tags() const { return has_tags_; }
  std::int64_t receive(void* into, std::size_t bytes, void* local, Operation& operation) {
    return fi_recv(endpoint_, into, bytes, local, FI_ADDR_UNSPEC, &operation);
  }
  std::int64_t read(void* into, std::size_t bytes, void* local, fi_addr_t from, std::uint64_t address,
                    std::uint64_t key, Operation& operation) {
    return fi_read(endpoint_, into, bytes, local, from, address, key, &operation);
  }
  /// Completes when `bytes_at` may be used again. If orders_writes(), messages sent later arrive after the bytes;
  /// otherwise the write completes only when the bytes have arrived.
  std::int64_t write(const void* bytes_at, std::size_t bytes, void* local, fi_addr_t to,
                     std::uint64_t address, std::uint64_t key, Operation& operation);

  /// Whether messages arrive after the bytes of earlier writes.
  bool orders_writes() const { return orders_writes_; }

  /// Lets peers read the memory and, if `writable`, write it. release() closes `memory`.
  Result expose(void* address, std::size_t bytes, bool writable, fid_mr*& memory);
  /// The address at which exposed memory begins for the peers: its address here, or 0.
  std::uint64_t remote_address(const void* address) const {
    return (info_->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0 ? reinterpret_cast<std::uint64_t>(address)
                                                                : 0;
  }
  /// Registers memory for operations of this process; `memory` stays null if that is not necessary.
  Result prepare(void* address, std::size_t bytes, fid_mr*& memory);
  static void release(fid_mr* memory);
  static void* local_key(fid_mr* memory) { return memory == nullptr ? nullptr : fi_mr_desc(memory); }

  /// Takes completed operations, and lets the network progress. Returns how many there are in `count`. Fails if the network does.
  Result take(std::span<Completion> into, std::size_t& count);

private:
  std::string kind_of_address() const;
  Result find(const Choice& choice);
  void reorder(std::span<Completion> into, std::size_t& count);
  void hold(std::span<Completion> from, std::size_t& count);
  bool replace(const Library& library, void (*change)(fi_info& hints));
  void order_writes(const Library& library);
  void take_tags(const Library& library);
  Result open_parts();
  Result register_memory(void* address, std::size_t bytes, std::uint64_t access, fid_mr*& memory);

  fi_info* info_ = nullptr;
  fid_fabric* fabric_ = nullptr;
  fid_domain* domain_ = nullptr;
  fid_av* addresses_ = nullptr;
  fid_cq* queue_ = nullptr;
  fid_ep* endpoint_ = nullptr;
  int descriptor_ = -1;
  std::size_t longest_eager_ = least_eager;
  unsigned nic_distance_ = 0;
  bool orders_writes_ = false, has_tags_ = false;
  bool reorders_ = false;
  std::vector<Completion> held_; ///< completions of messages, if it reorders
  std::uint64_t random_ = 1;
  std::vector<std::byte> address_;
};

} // namespace near::ofi
