#include "shm/provider.h"

#include "copy/copy.h"

#include <array>

namespace near::shm {

namespace {

bool is_self(Peer& peer, const NodeRts&) { return peer.row == engine().row; }
bool is_shared(Peer&, const NodeRts& rts) { return rts.shared != 0; }
bool always(Peer&, const NodeRts&) { return true; }

constexpr std::array<Provider, 4> all = {{
    {"self", segment::Path::direct, Protocol::count, is_self, pull_self},
    {"direct", segment::Path::direct, Protocol::direct, is_shared, pull_direct},
    {"cma", segment::Path::cma, Protocol::cma, cma_is_possible, pull_cma},
    {"pipelined", segment::Path::pipelined, Protocol::pipelined, always, pull_pipelined},
}};

} // namespace

std::span<const Provider> ladder() { return all; }

/// Sender and receiver are the same process: one typed copy.
Pulled pull_self(Peer&, const NodeRts& rts, Transfer& transfer) {
  const auto& sender = *reinterpret_cast<const Transfer*>(rts.cookie);
  datatype::copy(sender.buffer, transfer.buffer, static_cast<MPI_Count>(transfer.bytes));
  return Pulled::done;
}

/// The data lies in the segment: the receiver loads it.
Pulled pull_direct(Peer&, const NodeRts& rts, Transfer& transfer) {
  const auto* from = memory::space().segment.at<std::byte>(rts.shared);
  if (transfer.buffer.is_contiguous())
    copy::copy(transfer.buffer.contiguous_start(), from, transfer.bytes, copy::Store::cached);
  else
    datatype::unpack_arrived(transfer.buffer, 0, from, static_cast<MPI_Count>(transfer.bytes));
  return Pulled::done;
}

} // namespace near::shm
