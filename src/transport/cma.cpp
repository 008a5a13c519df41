// Cross-memory attach: the receiver reads the sender's memory through the kernel, in one copy.
#include "transport/provider.h"

#include "base/kill_point.h"
#include "base/log.h"
#include "os/peer_memory.h"

#include <array>

namespace near::transport {

namespace {

/// Says once per job why large messages take the slower way.
void explain_refusal(const Peer& peer, std::string_view why) {
  if (!segment::first_to_say(engine().segment.header(), segment::Notice::slow_copies)) return;
  base::log(base::Level::warning,
            "the kernel does not let ranks copy from each other ({}; first seen with rank {}): large "
            "messages take two "
            "copies through shared memory, which is slower",
            why, peer.slot);
}

/// Reads a word whose value we know: finds out about seccomp, Yama, user and pid namespaces in one try.
bool probe(Peer& peer) {
  std::uint64_t word = 0;
  std::size_t copied = 0;
  std::array<os::Run, 1> run = {{{&word, sizeof word}}};
  Result read =
      os::read_peer(static_cast<std::int32_t>(peer.control->pid), peer.control->probe_address, run, copied);
  NEAR_KILL_POINT("cma-probed");
  bool works = read.ok() && copied == sizeof word && word == peer.control->probe_value;
  peer.cma = works ? CmaState::works : CmaState::refused;
  if (!works)
    explain_refusal(peer, read.ok() ? "process_vm_readv reads another process: pid namespaces differ"
                                    : base::failure_text());
  return works;
}

bool read_all(Peer& peer, std::uint64_t address, std::span<os::Run> runs) {
  auto pid = static_cast<std::int32_t>(peer.control->pid);
  while (!runs.empty()) {
    std::size_t copied = 0;
    NEAR_KILL_POINT("cma-begun");
    if (!os::read_peer(pid, address, runs, copied).ok() || copied == 0) return false;
    NEAR_KILL_POINT("cma-copied");
    address += copied;
    while (!runs.empty() && copied >= runs.front().bytes) {
      copied -= runs.front().bytes;
      runs = runs.subspan(1);
    }
    if (copied != 0) {
      runs.front().address = static_cast<std::byte*>(runs.front().address) + copied;
      runs.front().bytes -= copied;
    }
  }
  return true;
}

/// A receiver's layout with gaps: read many pieces in one call, or, when they are small, a run that is then
/// unpacked.
bool read_scattered(Peer& peer, std::uint64_t address, Transfer& transfer) {
  constexpr std::size_t most_pieces = 512;      // below the kernel's IOV_MAX of 1024
  constexpr std::size_t worthwhile_piece = 512; // below this a copy through the stage is cheaper
  constexpr std::uint64_t stage_bytes = 256u << 10;
  std::vector<datatype::Piece> pieces;
  std::vector<os::Run> runs;
  std::unique_ptr<std::byte[]> stage;
  for (std::uint64_t at = 0; at < transfer.bytes;) {
    auto left = static_cast<MPI_Count>(transfer.bytes - at);
    pieces.clear();
    auto covered = static_cast<std::uint64_t>(
        datatype::pieces(transfer.view, static_cast<MPI_Count>(at), left, pieces, most_pieces));
    if (covered / std::max<std::size_t>(pieces.size(), 1) >= worthwhile_piece) {
      runs.clear();
      for (const auto& piece : pieces) runs.push_back({piece.address, piece.bytes});
      if (!read_all(peer, address + at, runs)) return false;
      at += covered;
      continue;
    }
    if (stage == nullptr) stage = std::make_unique_for_overwrite<std::byte[]>(stage_bytes);
    std::uint64_t part = std::min<std::uint64_t>(stage_bytes, transfer.bytes - at);
    std::array<os::Run, 1> run = {{{stage.get(), part}}};
    if (!read_all(peer, address + at, run)) return false;
    datatype::unpack(transfer.view, static_cast<MPI_Count>(at), stage.get(), static_cast<MPI_Count>(part));
    at += part;
  }
  return true;
}

} // namespace

bool cma_is_possible(Peer& peer, const OfferTicket& ticket) {
  // What lies in the segment can be loaded without the kernel.
  if (ticket.address == 0 || ticket.shared != 0 || peer.cma == CmaState::refused) return false;
  return peer.cma == CmaState::works || probe(peer);
}

Pulled pull_cma(Peer& peer, const OfferTicket& ticket, Transfer& transfer) {
  bool complete;
  if (transfer.view.is_dense()) {
    std::array<os::Run, 1> run = {{{transfer.view.dense_start(), transfer.bytes}}};
    complete = read_all(peer, ticket.address, run);
  } else {
    complete = read_scattered(peer, ticket.address, transfer);
  }
  // A fault on this message alone (device memory, a hole): the next provider takes it, later ones try again
  // here.
  return complete ? Pulled::done : Pulled::refused;
}

} // namespace near::transport
