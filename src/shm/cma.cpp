// Cross-memory attach: the receiver reads the sender's memory through the kernel, in one copy. If the message
// is long and the sender is inside MPI, the sender meanwhile writes chunks from the back
// (queue/cooperative_copy.h):
//
//   receiver                                         sender
//   cooperate(address, bytes)  ------------------>  adds the message to its cooperative sends; at each progress:
//   reads chunk 0, 1, 2 ...                         writes the last chunk, the one before ...
//   until none is left; waits for those written
//   FIN  ---------------------------------------->  removes it from the list
#include "shm/provider.h"

#include "base/kill_point.h"
#include "base/log.h"
#include "memory/segments.h"
#include "os/peer_memory.h"

#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>

namespace near::shm {

namespace {

/// Why the probe of each doubtful peer failed.
auto& doubts = *new std::unordered_map<const Peer*, std::string>; // never destroyed

/// Reports, once per job, why large messages use a slower protocol.
void explain_refusal(const Peer& peer, std::string_view why) {
  if (!segment::first_to_say(memory::space().segment.header(), segment::Notice::slow_copies)) return;
  base::log(base::Level::warning,
            "the kernel does not let ranks copy from each other ({}; first seen with rank {}): large "
            "messages take two "
            "copies through shared memory, which is slower",
            why, memory::process_in(peer.row).rank);
}

/// Reads a word whose value we know: one attempt shows whether seccomp, Yama, or user or pid namespaces
/// forbid it.
bool probe(Peer& peer) {
  std::uint64_t word = 0;
  std::size_t copied = 0;
  std::array<os::Run, 1> run = {{{&word, sizeof word}}};
  Result read =
      os::read_peer(static_cast<std::int32_t>(peer.control->pid), peer.control->probe_address, run, copied);
  NEAR_KILL_POINT("cma-probed");
  bool works = read.ok() && copied == sizeof word && word == peer.control->probe_value;
  peer.cma = works ? CmaState::works : CmaState::doubtful;
  // Reading from a process that has died fails in the same way, and the launcher may not have noticed its
  // death yet. The kernel has refused only if the peer answers later.
  if (!works)
    doubts[&peer] = read.ok() ? "process_vm_readv reads another process: pid namespaces differ"
                              : std::string(base::failure_text());
  return works;
}

/// The smallest message that both sides copy.
constexpr std::uint64_t worth_cooperating = 32u << 10;

/// The size of the chunks of such a message: small enough for both sides to end at about the same time, but large
/// compared with what a system call costs.
std::uint64_t chunk_bytes_of(std::uint64_t bytes) {
  constexpr std::uint64_t page = 4096;
  return std::clamp<std::uint64_t>((bytes / 2 + page - 1) / page * page, 16u << 10, 256u << 10);
}

std::uint32_t chunks_of(std::uint64_t bytes) {
  const std::uint64_t chunk_bytes = chunk_bytes_of(bytes);
  return static_cast<std::uint32_t>((bytes + chunk_bytes - 1) / chunk_bytes);
}

/// Removes this many bytes from the front of `runs`.
void drop(std::span<os::Run>& runs, std::size_t bytes) {
  while (!runs.empty() && bytes >= runs.front().bytes) {
    bytes -= runs.front().bytes;
    runs = runs.subspan(1);
  }
  if (bytes == 0) return;
  runs.front().address = static_cast<std::byte*>(runs.front().address) + bytes;
  runs.front().bytes -= bytes;
}

using Copy = base::Result(std::int32_t, std::span<const os::Run>, std::span<const os::Run>, std::size_t&);

bool copy_all(Copy* copy, const Peer& peer, std::span<os::Run> theirs, std::span<os::Run> mine) {
  auto pid = static_cast<std::int32_t>(peer.control->pid);
  while (!mine.empty()) {
    std::size_t copied = 0;
    NEAR_KILL_POINT("cma-begun");
    if (!copy(pid, theirs, mine, copied).ok() || copied == 0) return false;
    NEAR_KILL_POINT("cma-copied");
    drop(theirs, copied);
    drop(mine, copied);
  }
  return true;
}

bool read_all(const Peer& peer, std::uint64_t address, std::span<os::Run> runs) {
  std::size_t bytes = 0;
  for (const os::Run& run : runs) bytes += run.bytes;
  std::array<os::Run, 1> theirs = {{{reinterpret_cast<void*>(address), bytes}}};
  return copy_all(os::read_peer, peer, theirs, runs);
}

/// Reads into a layout with gaps: many pieces per call or, if the pieces are small, one run that is then
/// unpacked.
bool read_scattered(Peer& peer, std::uint64_t address, Transfer& transfer) {
  constexpr std::size_t most_pieces = 512;      // below the kernel's IOV_MAX of 1024
  constexpr std::size_t worthwhile_piece = 512; // bytes; smaller pieces are cheaper through the stage
  constexpr std::uint64_t stage_bytes = 256u << 10;
  std::vector<datatype::Piece> pieces;
  std::vector<os::Run> runs;
  std::unique_ptr<std::byte[]> stage;
  for (std::uint64_t at = 0; at < transfer.bytes;) {
    auto left = static_cast<MPI_Count>(transfer.bytes - at);
    pieces.clear();
    auto covered = static_cast<std::uint64_t>(
        datatype::pieces(transfer.buffer, static_cast<MPI_Count>(at), left, pieces, most_pieces));
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
    datatype::unpack(transfer.buffer, static_cast<MPI_Count>(at), stage.get(), static_cast<MPI_Count>(part));
    at += part;
  }
  return true;
}

bool read_chunk(Peer& peer, const NodeRts& rts, const Transfer& transfer, std::uint32_t chunk) {
  const std::uint64_t chunk_bytes = chunk_bytes_of(transfer.bytes), at = chunk * chunk_bytes;
  std::array<os::Run, 1> run = {
      {{transfer.buffer.contiguous_start() + at, std::min(chunk_bytes, transfer.bytes - at)}}};
  return read_all(peer, rts.address + at, run);
}

/// Reads from the front the chunks that the sender does not write from the back. Once this function has
/// returned, even with a failure, nothing more is written into the buffer.
bool read_cooperatively(Peer& peer, const NodeRts& rts, const Transfer& transfer) {
  auto& cooperation = descriptor_of(rts.descriptor).cooperation();
  const std::uint32_t chunks = chunks_of(transfer.bytes);
  CooperationRequest message{rts.cookie, reinterpret_cast<std::uint64_t>(transfer.buffer.contiguous_start()),
                             transfer.bytes, rts.descriptor, rts.generation};
  post_control(peer, static_cast<std::uint8_t>(InternalHandler::cooperate), {}, &message, sizeof message);
  NEAR_KILL_POINT("cooperation-asked");
  bool complete = true;
  std::uint32_t mine = 0, failed = cooperation.none;
  for (std::uint32_t chunk; (chunk = cooperation.claim_front(chunks)) != cooperation.none; ++mine)
    complete = complete && read_chunk(peer, rts, transfer, chunk);
  // At most one chunk is still being written: the sender is in the kernel, or dead.
  while (!cooperation.settled(chunks - mine, failed)) {
    if (has_left(peer)) return false;
    base::cpu_relax();
  }
  NEAR_KILL_POINT("cooperation-over");
  return complete && (failed == cooperation.none || read_chunk(peer, rts, transfer, failed));
}

/// Returns true if the kernel lets this process read the peer's memory.
bool is_readable(Peer& peer) {
  return peer.cma == CmaState::works || (peer.cma == CmaState::unknown && probe(peer));
}

} // namespace

void confirm_refusal(Peer& peer) {
  peer.cma = CmaState::refused;
  explain_refusal(peer, doubts[&peer]);
  doubts.erase(&peer);
}

bool reaches_private_memory(Peer& peer) {
  if (peer.cma == CmaState::refused || (peer.cma != CmaState::works && !probe(peer))) return false;
  // Reading and writing are two system calls, either of which may be forbidden. The write leaves the word as
  // it is.
  std::uint64_t word = peer.control->probe_value;
  std::array<os::Run, 1> run = {{{&word, sizeof word}}};
  std::array<os::Run, 1> theirs = {{{reinterpret_cast<void*>(peer.control->probe_address), sizeof word}}};
  return write_private_memory(peer, theirs, run);
}

bool read_private_memory(Peer& peer, std::span<os::Run> theirs, std::span<os::Run> mine) {
  return copy_all(os::read_peer, peer, theirs, mine);
}

bool write_private_memory(Peer& peer, std::span<os::Run> theirs, std::span<os::Run> mine) {
  return copy_all(os::write_peer, peer, theirs, mine);
}

bool cma_is_possible(Peer& peer, const NodeRts& rts) {
  // Memory in the segment is loaded without the kernel.
  return rts.address != 0 && rts.shared == 0 && is_readable(peer);
}

Pulled pull_cma(Peer& peer, const NodeRts& rts, Transfer& transfer) {
  bool complete;
  if (transfer.buffer.is_contiguous() && transfer.bytes >= worth_cooperating && !engine().oversubscribed &&
      peer.rts_out == nullptr) {
    complete = read_cooperatively(peer, rts, transfer);
  } else if (transfer.buffer.is_contiguous()) {
    std::array<os::Run, 1> run = {{{transfer.buffer.contiguous_start(), transfer.bytes}}};
    complete = read_all(peer, rts.address, run);
  } else {
    complete = read_scattered(peer, rts.address, transfer);
  }
  // The failure concerns this message alone (device memory, a hole): another provider takes it, and later
  // messages try CMA again.
  return complete ? Pulled::done : Pulled::refused;
}

void handle_cooperate(Arrival& arrival) {
  const auto& request = *reinterpret_cast<const CooperationRequest*>(arrival.payload);
  NEAR_KILL_POINT("cooperation-read");
  // A FIN left in the descriptor may have overtaken this request; then nothing remains to be done.
  if (!descriptor_of(request.descriptor).serves(request.generation)) return;
  engine().deferred_work = true;
  engine().cooperative_sends.push_back(
      {reinterpret_cast<Transfer*>(request.sender_cookie), request.address, request.bytes});
}

bool push_chunks() {
  auto& cooperative_sends = engine().cooperative_sends;
  for (std::size_t i = 0; i < cooperative_sends.size();) {
    const CooperativeSend& each = cooperative_sends[i];
    auto& cooperation = descriptor_of(each.transfer->descriptor).cooperation();
    std::uint32_t chunk = cooperation.claim_back(chunks_of(each.bytes));
    bool more = chunk != cooperation.none;
    if (more) {
      NEAR_KILL_POINT("push-claimed");
      const std::uint64_t chunk_bytes = chunk_bytes_of(each.bytes), at = chunk * chunk_bytes;
      std::array<os::Run, 1> run = {
          {{each.transfer->buffer.contiguous_start() + at, std::min(chunk_bytes, each.bytes - at)}}};
      std::size_t copied = 0;
      more = os::write_peer(static_cast<std::int32_t>(peer_of(*each.transfer).control->pid),
                            each.address + at, run, copied)
                 .ok() &&
             copied == run[0].bytes;
      NEAR_KILL_POINT("push-done");
      if (more)
        cooperation.brought_one();
      else
        cooperation.gave_up(chunk);
    }
    if (more) {
      ++i;
    } else {
      cooperative_sends[i] = cooperative_sends.back();
      cooperative_sends.pop_back();
    }
  }
  return true;
}

} // namespace near::shm
