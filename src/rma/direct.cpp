// See direct.h.
#include "rma/direct.h"

#include "memory/segments.h"
#include "rma/remote.h"

#include <algorithm>

namespace near::rma {

namespace {

/// Shorter data go in messages. If the network needs the target's processor (TCP), a message wakes a target that sleeps
/// between two polls of the network, for up to 1 ms. A read does not; a write is followed by a message.
constexpr MPI_Count least_write = 16 << 10, least_read = 256 << 10;
/// The most pieces on each side, and their least average length if there are several.
constexpr std::size_t most_pieces = 64;
constexpr MPI_Count least_piece = 4096;

/// Lists the memory of a buffer. Returns false if it consists of many short pieces.
bool list(const Buffer& buffer, std::vector<os::Run>& runs) {
  if (buffer.is_contiguous()) {
    runs.push_back({buffer.contiguous_start(), static_cast<std::size_t>(buffer.bytes())});
    return true;
  }
  std::vector<datatype::Piece> pieces;
  const MPI_Count all = buffer.bytes();
  if (datatype::pieces(buffer, 0, all, pieces, most_pieces) != all) return false;
  if (pieces.size() > 1 && all / static_cast<MPI_Count>(pieces.size()) < least_piece) return false;
  for (const auto& piece : pieces) runs.push_back({piece.address, piece.bytes});
  return true;
}

} // namespace

std::unique_ptr<Direct> Direct::make(const Window& window, bool writes, const Buffer& here, int rank,
                                     const Buffer& there, const Pending& operation) {
  const Member& member = state_of(window).members[static_cast<std::size_t>(rank)];
  if (!member.registered || window.flavor == MPI_WIN_FLAVOR_DYNAMIC) return nullptr;
  if (there.bytes() < (writes ? least_write : least_read)) return nullptr;
  if (!transport::capabilities(peer_of(window, rank), member.key).copies) return nullptr;
  auto made = std::make_unique<Direct>();
  if (!list(there, made->theirs) || !list(here, made->mine)) return nullptr;
  made->operation = operation;
  made->rank = rank;
  made->writes = writes;
  return made;
}

void Direct::begin(std::unique_ptr<Direct> made, const Window& window) {
  made->done = [](transport::Access& access, int error) {
    const std::unique_ptr<Direct> ended(&static_cast<Direct&>(access));
    ended->over(*ended, error);
  };
  Direct& direct = *made.release();
  transport::Peer& peer = peer_of(window, direct.rank);
  const auto& key = state_of(window).members[static_cast<std::size_t>(direct.rank)].key;
  // Moved out because the object may be gone before the transport has read them.
  std::vector<os::Run> theirs = std::move(direct.theirs), mine = std::move(direct.mine);
  if (direct.writes)
    transport::put(peer, key, theirs, mine, direct);
  else
    transport::get(peer, key, theirs, mine, direct);
}

Result Remote::begin(std::unique_ptr<Direct> direct) {
  make_room(0);
  Target& its = activate(direct->rank);
  // The network reports puts as complete at the target only when no other access is under way.
  if (its.written.size() >= most_unanswered)
    p2p::wait_until([&its] { return its.written.size() < most_unanswered; });
  ++activate(direct->rank).direct;
  ++moving_;
  direct->over = [this](Direct& ended, int error) { direct_is_over(ended, error); };
  Direct::begin(std::move(direct), window_);
  return {};
}

void Remote::direct_is_over(Direct& direct, int error) {
  Target& its = target(direct.rank);
  --its.direct;
  --moving_;
  has_ended_ = true;
  if (error != MPI_SUCCESS || !direct.writes) return direct.operation->finish(Where::target, error);
  direct.operation->finish(Where::origin);
  its.written.push_back(direct.operation);
}

void expose(Window& window, Member& mine) {
  const object::Communicator& communicator = *window.communicator;
  if (mine.size == 0) return;
  for (int rank = 0; rank < communicator.size; ++rank) {
    if (memory::find_segment_of(communicator.process_ids[rank]) != nullptr) continue;
    transport::Peer& peer = peer_of(window, rank);
    transport::Registration made;
    const auto bytes = static_cast<std::size_t>(mine.size);
    if (!transport::register_memory(peer, reinterpret_cast<void*>(mine.address), bytes,
                                    copy::MemoryKind::host, made)
             .ok())
      return;
    state_of(window).exposure = std::make_unique<Exposure>(peer, made);
    mine.key = made.key;
    mine.registered = 1;
    return;
  }
}

Result reach_other_machines(Window& window) {
  State& state = state_of(window);
  const auto is_elsewhere = [](const Member& member) { return member.locks == nullptr; };
  if (std::none_of(state.members.begin(), state.members.end(), is_elsewhere)) return {};
  auto made = std::make_unique<Remote>(window);
  NEAR_TRY(made->start());
  state.remote = std::move(made);
  return {};
}

} // namespace near::rma
