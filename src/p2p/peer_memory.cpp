// Reads the memory of other ranks, for collectives that need not send messages.
#include "os/peer_memory.h"
#include "os/futex.h"
#include "p2p/p2p.h"
#include "transport/transport.h"

#include <algorithm>
#include <memory>
#include <new>
#include <string>

namespace near::p2p {
namespace {

/// Memory with gaps is filled through a stage of this many bytes, which stay in the cache.
constexpr MPI_Count stage_bytes = 256 << 10;

Result read_run(transport::Peer& peer, int rank, std::uint64_t address, std::byte* to, MPI_Count bytes) {
  const auto length = static_cast<std::size_t>(bytes);
  os::Run theirs{reinterpret_cast<void*>(address), length}, mine{to, length};
  if (transport::copy_from_peer(peer, {&theirs, 1}, {&mine, 1})) return {};
  const std::string why(base::failure_text());
  if (!transport::reaches_memory_of(peer)) return out_of_reach(why);
  return base::fail(MPI_ERR_BUFFER,
                    "{} bytes at {:#x} in the memory of rank {} of this communicator cannot be read: {}",
                    bytes, address, rank, why);
}

} // namespace

Result out_of_reach(std::string_view why) {
  constexpr std::uint64_t launcher_acts_ns = 2'000'000'000;
  // Makes no progress, because progress may be what has called this.
  std::uint32_t never_changes = 0;
  const std::uint64_t until = os::monotonic_ns() + launcher_acts_ns;
  for (std::uint64_t now = os::monotonic_ns(); now < until; now = os::monotonic_ns())
    os::futex_wait(&never_changes, 0, until - now);
  return base::fail(MPI_ERR_PROC_ABORTED,
                    "the target cannot be reached any more, as if its process had ended: {}", why);
}

bool reads_memory_of(const Communicator& communicator, int rank) {
  return transport::reaches_memory_of(transport::peer_of(communicator, rank));
}

Result read_memory(const Communicator& communicator, int rank, std::uint64_t address, const Buffer& into) {
  transport::Peer& peer = transport::peer_of(communicator, rank);
  const MPI_Count bytes = into.bytes();
  if (into.is_contiguous()) return read_run(peer, rank, address, into.contiguous_start(), bytes);
  const std::unique_ptr<std::byte[]> stage(new (std::nothrow) std::byte[stage_bytes]);
  if (stage == nullptr)
    return base::fail(MPI_ERR_NO_MEM, "no memory for {} bytes of a collective", stage_bytes);
  for (MPI_Count at = 0; at < bytes; at += stage_bytes) {
    const MPI_Count part = std::min(stage_bytes, bytes - at);
    NEAR_TRY(read_run(peer, rank, address + static_cast<std::uint64_t>(at), stage.get(), part));
    datatype::unpack(into, at, stage.get(), part);
  }
  return {};
}

} // namespace near::p2p
