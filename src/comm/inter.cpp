// Intercommunicators: creation and merging. Source: MPI 5.0, section 7.6.
#include "comm/exchange.h"

namespace near::comm {

using object::Channel;
using object::ProcessId;

namespace {

/// The leaders exchange these first, then the members of their groups.
struct Side {
  std::int64_t count; ///< processes of the group; -1 if its leader has failed
  std::uint64_t context;
  std::int64_t high; ///< for merging
};

Result swap(datatype::Buffer out, datatype::Buffer in, int with, int tag, Communicator& over,
            Channel channel) {
  p2p::Completion completion;
  return p2p::send_receive(out, with, tag, in, with, tag, over, completion, channel);
}

/// Both leaders have proposed a context. Contexts are never equal, so both sides choose the smaller one.
std::uint64_t chosen(const Side& a, const Side& b) { return a.context < b.context ? a.context : b.context; }

/// The leader's part: exchanges sizes, then members, with the remote leader.
Result meet(Communicator& local, Communicator& peer, int remote_leader, int tag, Side& ours, Side& theirs,
            std::vector<ProcessId>& members) {
  NEAR_TRY(swap(byte_buffer(&ours, sizeof ours), byte_buffer(&theirs, sizeof theirs), remote_leader, tag,
                peer, Channel::tagged));
  members.resize(static_cast<std::size_t>(theirs.count));
  return swap(byte_buffer(local.group->members.data(), local.group->members.size() * sizeof(ProcessId)),
              byte_buffer(members.data(), members.size() * sizeof(ProcessId)), remote_leader, tag, peer,
              Channel::tagged);
}

} // namespace

Result create_intercommunicator(Communicator& local, int local_leader, Communicator* peer, int remote_leader,
                                int tag, Communicator*& made) {
  Side ours{local.size, 0, 0}, theirs{-1, 0, 0};
  std::vector<ProcessId> members;
  Result met;
  if (local.rank == local_leader) {
    ours.context = object::new_context();
    met = meet(local, *peer, remote_leader, tag, ours, theirs, members);
    if (!met.ok()) theirs.count = -1;
    theirs.context = chosen(ours, theirs);
  }
  NEAR_TRY(coll::broadcast(byte_buffer(&theirs, sizeof theirs), local_leader, local));
  if (!met.ok()) return met;
  if (theirs.count < 0)
    return base::fail(MPI_ERR_COMM, "rank {}, the local leader, could not reach the remote one",
                      local_leader);
  members.resize(static_cast<std::size_t>(theirs.count));
  NEAR_TRY(
      coll::broadcast(byte_buffer(members.data(), members.size() * sizeof(ProcessId)), local_leader, local));
  Group* remote = object::make_group(std::move(members));
  // All members see the same two groups, so they all fail here.
  if (remote != nullptr)
    for (ProcessId process : local.group->members)
      if (object::rank_of(*remote, process) != MPI_UNDEFINED) {
        object::release(remote);
        return base::fail(MPI_ERR_COMM,
                          "the two groups of an intercommunicator must have no process in common");
      }
  return build_inter(local, keep(local.group), remote, theirs.context, made);
}

Result merge(Communicator& inter, bool high, Communicator*& made) {
  Communicator* local = local_communicator(inter);
  if (local == nullptr) return base::fail(MPI_ERR_NO_MEM, "no memory for another communicator");
  int tag = next_tag(inter);
  Side theirs{};
  if (inter.rank == 0) {
    Side ours{inter.size, object::new_context(), high ? 1 : 0};
    NEAR_TRY(swap(byte_buffer(&ours, sizeof ours), byte_buffer(&theirs, sizeof theirs), 0, tag, inter,
                  Channel::internal));
    theirs.context = chosen(ours, theirs);
    // All members of a group pass the same `high`; if both groups pass the same, decides() chooses the order.
    bool first = ours.high != theirs.high ? ours.high == 0 : decides(inter);
    theirs.high = first ? 1 : 0;
  }
  NEAR_TRY(coll::broadcast(byte_buffer(&theirs, sizeof theirs), 0, *local));
  bool first = theirs.high == 1;
  const Group &low = first ? *inter.group : *inter.remote, &upper = first ? *inter.remote : *inter.group;
  std::vector<ProcessId> members = low.members;
  members.insert(members.end(), upper.members.begin(), upper.members.end());
  return build(inter, object::make_group(std::move(members)), theirs.context, made);
}

} // namespace near::comm
