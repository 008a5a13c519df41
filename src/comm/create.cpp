// Communicators on parts of a communicator. Source: MPI 5.0, section 7.4.2.
#include "comm/exchange.h"

#include <algorithm>

namespace near::comm {

using object::Channel;

namespace {

/// What each process says in a split. `context` is used if it becomes rank 0 of the new group.
struct Claim {
  std::int32_t color, key;
  std::uint64_t context;
};
static_assert(sizeof(Claim) == 16);

std::vector<int> ranks_in(const Communicator& parent, const Group& group) {
  std::vector<int> ranks(group.members.size());
  for (int rank = 0; rank < group.size(); ++rank)
    ranks[static_cast<std::size_t>(rank)] = object::translate_rank(group, rank, *parent.group);
  return ranks;
}

Result create_on(Communicator& parent, const Group& group, int tag, Channel channel, Communicator*& made) {
  if (group.rank == MPI_UNDEFINED) return {};
  std::vector<int> ranks = ranks_in(parent, group);
  std::uint64_t context = group.rank == 0 ? object::new_context() : 0;
  NEAR_TRY(tell({parent, ranks, group.rank, group.size(), tag, channel}, context));
  return build(parent, object::make_group(group.members), context, made);
}

/// The ranks that claim this color, in the order of the new group.
std::vector<int> claimants(const std::vector<Claim>& claims, int color) {
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < claims.size(); ++rank)
    if (claims[rank].color == color) ranks.push_back(static_cast<int>(rank));
  std::sort(ranks.begin(), ranks.end(), [&](int a, int b) {
    int key_a = claims[static_cast<std::size_t>(a)].key, key_b = claims[static_cast<std::size_t>(b)].key;
    return key_a != key_b ? key_a < key_b : a < b;
  });
  return ranks;
}

Result split_inter(Communicator& parent, Claim mine, Communicator*& made) {
  Communicator* local = local_communicator(parent);
  if (local == nullptr) return base::fail(MPI_ERR_NO_MEM, "no memory for another communicator");
  std::vector<Claim> ours(static_cast<std::size_t>(parent.size)),
      theirs(static_cast<std::size_t>(parent.peers));
  NEAR_TRY(coll::all_gather(bytes_view(&mine, sizeof mine), bytes_view(ours.data(), sizeof mine), *local));
  int tag = next_tag(parent);
  datatype::View all_theirs = bytes_view(theirs.data(), theirs.size() * sizeof(Claim));
  if (parent.rank == 0) {
    p2p::Completion completion;
    NEAR_TRY(p2p::send_receive(bytes_view(ours.data(), ours.size() * sizeof(Claim)), 0, tag, all_theirs, 0,
                               tag, parent, completion, Channel::internal));
  }
  NEAR_TRY(coll::broadcast(all_theirs, 0, *local));
  if (mine.color == MPI_UNDEFINED) return {};
  std::vector<int> near_side = claimants(ours, mine.color), far_side = claimants(theirs, mine.color);
  if (far_side.empty()) return {};
  std::uint64_t context = decides(parent) ? ours[static_cast<std::size_t>(near_side[0])].context
                                          : theirs[static_cast<std::size_t>(far_side[0])].context;
  return build_inter(parent, object::group_include(*parent.group, near_side),
                     object::group_include(*parent.remote, far_side), context, made);
}

} // namespace

Result create(Communicator& parent, const Group& group, Communicator*& made) {
  if (parent.is_inter()) {
    Claim mine{group.rank == MPI_UNDEFINED ? MPI_UNDEFINED : 0, group.rank, object::new_context()};
    return split_inter(parent, mine, made);
  }
  return create_on(parent, group, next_tag(parent), Channel::internal, made);
}

Result create_from_group(Communicator& parent, const Group& group, int tag, Communicator*& made) {
  return create_on(parent, group, tag, Channel::tagged, made);
}

Result split(Communicator& parent, int color, int key, Communicator*& made) {
  Claim mine{color, key, object::new_context()};
  if (parent.is_inter()) return split_inter(parent, mine, made);
  std::vector<Claim> claims(static_cast<std::size_t>(parent.size));
  NEAR_TRY(coll::all_gather(bytes_view(&mine, sizeof mine), bytes_view(claims.data(), sizeof mine), parent));
  if (color == MPI_UNDEFINED) return {};
  std::vector<int> members = claimants(claims, color);
  return build(parent, object::group_include(*parent.group, members),
               claims[static_cast<std::size_t>(members[0])].context, made);
}

Result split_by_type(Communicator& parent, int type, int key, const Info* info, Communicator*& made) {
  auto value_of = [&](std::string_view name) -> std::string_view {
    const std::string* value = info != nullptr ? info->find(name) : nullptr;
    return value != nullptr ? std::string_view(*value) : std::string_view();
  };
  // All processes that share memory have their addresses in one segment.
  int segment = static_cast<int>(object::own_address().segment);
  switch (type) {
  case MPI_UNDEFINED: return split(parent, MPI_UNDEFINED, key, made);
  case MPI_COMM_TYPE_SHARED: return split(parent, segment, key, made);
  case MPI_COMM_TYPE_HW_GUIDED:
  case MPI_COMM_TYPE_RESOURCE_GUIDED: {
    std::string_view resource = value_of("mpi_hw_resource_type"), set = value_of("mpi_pset_name");
    int color = MPI_UNDEFINED;
    if (resource == "mpi_shared_memory")
      color = segment;
    else if (type == MPI_COMM_TYPE_RESOURCE_GUIDED && resource.empty() && set == "mpi://WORLD")
      color = 0;
    else if (type == MPI_COMM_TYPE_RESOURCE_GUIDED && resource.empty() && set == "mpi://SELF")
      color = parent.rank;
    return split(parent, color, key, made);
  }
  case MPI_COMM_TYPE_HW_UNGUIDED: {
    // Machines are the only hardware level looked at; where all share one, there is no proper part.
    Communicator* part = nullptr;
    NEAR_TRY(split(parent, segment, key, part));
    if (part != nullptr && part->size == parent.size && part->peers == parent.peers) {
      discard(part);
      return {};
    }
    made = part;
    return {};
  }
  default: return base::fail(MPI_ERR_ARG, "{} is no split type", type);
  }
}

} // namespace near::comm
