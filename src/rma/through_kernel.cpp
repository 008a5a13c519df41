// Copies through the kernel (CMA) between processes that share no memory. See through_kernel.h.
#include "rma/through_kernel.h"

#include "copy/raw.h"
#include "p2p/p2p.h"

#include <string>
#include <vector>

namespace near::rma {

using base::Result;
using datatype::Buffer;

namespace {

/// The error for a copy that the kernel refused.
Result refused(transport::Peer& peer, std::uint64_t address) {
  const std::string why(base::failure_text());
  if (!transport::reaches_memory_of(peer)) return p2p::out_of_reach(why);
  return base::fail(MPI_ERR_RMA_RANGE, "the kernel does not reach the memory at {:#x} of the target: {}",
                    address, why);
}

/// The largest number of pieces that the kernel accepts on each side of a call (IOV_MAX).
constexpr std::size_t most_pieces_at_once = 1024;

/// The packed bytes of both buffers, from `at` on, that one system call moves, in pieces.
struct Batch {
  std::vector<datatype::Piece> here_pieces, there_pieces;
  std::vector<os::Run> here, there;
  MPI_Count bytes = 0;

  void fill_there(const Buffer& buffer, MPI_Count at, MPI_Count most) {
    there_pieces.clear();
    bytes = datatype::pieces(buffer, at, most, there_pieces, most_pieces_at_once);
  }
  /// Reduces the batch to the bytes that have pieces on this side too.
  void fill_here(const Buffer& buffer, MPI_Count at) {
    here_pieces.clear();
    MPI_Count covered = datatype::pieces(buffer, at, bytes, here_pieces, most_pieces_at_once);
    for (; bytes > covered; there_pieces.pop_back()) {
      auto last = static_cast<MPI_Count>(there_pieces.back().bytes);
      if (bytes - last >= covered) {
        bytes -= last;
        continue;
      }
      there_pieces.back().bytes = static_cast<std::size_t>(last - (bytes - covered));
      bytes = covered;
      break;
    }
    list(here_pieces, here);
    list(there_pieces, there);
  }
  static void list(const std::vector<datatype::Piece>& pieces, std::vector<os::Run>& runs) {
    runs.clear();
    for (const auto& piece : pieces) runs.push_back({piece.address, piece.bytes});
  }
  std::uint64_t address() const {
    return there_pieces.empty() ? 0 : reinterpret_cast<std::uint64_t>(there_pieces.front().address);
  }
};

/// Reads small pieces that lie close together in one run, including what lies between them. That costs the
/// kernel less than finding each piece.
class CoveringRead {
public:
  /// Reads the pieces of a batch. Returns false if they are too far apart, or if the memory between them
  /// cannot be read.
  bool read(transport::Peer& peer, const Batch& batch) {
    theirs_.clear();
    mine_.clear();
    places_.clear();
    std::size_t used = 0;
    std::uint64_t end = 0;
    for (const auto& piece : batch.there_pieces) {
      auto begin = reinterpret_cast<std::uint64_t>(piece.address);
      if (theirs_.empty() || begin < end || begin - end > most_between)
        theirs_.push_back({piece.address, 0});
      else
        used += begin - end;
      places_.push_back(used);
      used += piece.bytes;
      end = begin + piece.bytes;
      theirs_.back().bytes = end - reinterpret_cast<std::uint64_t>(theirs_.back().address);
      if (used > most_bytes) return false;
    }
    if (theirs_.size() > batch.there_pieces.size() / 4) return false;
    bytes_.resize(used);
    mine_.push_back({bytes_.data(), used});
    return transport::copy_from_peer(peer, theirs_, mine_);
  }
  void unpack(const Batch& batch, const Buffer& here, MPI_Count at) {
    // Moves each piece to its position among the packed bytes, which is never after its present one.
    std::size_t packed = 0;
    for (std::size_t i = 0; i < places_.size(); ++i) {
      const std::size_t bytes = batch.there_pieces[i].bytes;
      copy::raw_overlapping(bytes_.data() + packed, bytes_.data() + places_[i], bytes);
      packed += bytes;
    }
    datatype::unpack(here, at, bytes_.data(), batch.bytes);
  }

private:
  static constexpr std::uint64_t most_between = 512;
  static constexpr std::size_t most_bytes = 1u << 20;
  std::vector<os::Run> theirs_, mine_;
  std::vector<std::size_t> places_;
  std::vector<std::byte> bytes_;
};

} // namespace

Result store_through_kernel(const Buffer& here, const Buffer& there, transport::Peer& peer) {
  Batch batch;
  for (MPI_Count at = 0, bytes = there.bytes(); at < bytes; at += batch.bytes) {
    batch.fill_there(there, at, bytes - at);
    batch.fill_here(here, at);
    if (!transport::copy_to_peer(peer, batch.there, batch.here)) return refused(peer, batch.address());
  }
  return {};
}

Result load_through_kernel(const Buffer& here, const Buffer& there, transport::Peer& peer) {
  Batch batch;
  CoveringRead covering;
  for (MPI_Count at = 0, bytes = there.bytes(); at < bytes; at += batch.bytes) {
    batch.fill_there(there, at, bytes - at);
    if (covering.read(peer, batch)) {
      covering.unpack(batch, here, at);
      continue;
    }
    batch.fill_here(here, at);
    if (!transport::copy_from_peer(peer, batch.there, batch.here)) return refused(peer, batch.address());
  }
  return {};
}

} // namespace near::rma
