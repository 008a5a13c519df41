// Communicators on parts of a communicator. Source: MPI 5.0, section 7.4.2.
#include "comm/exchange.h"
#include "comm/hardware.h"
#include "memory/space.h"
#include "transport/transport.h"

#include <algorithm>

namespace near::comm {

using object::Channel;

namespace {

/// The contribution of one process to a split. Processes with the same color get one communicator.
struct Claim {
  std::int64_t color;
  std::uint64_t context; ///< the context of the new communicator if this process is its rank 0
  std::int32_t key;
  segment::Location location;
  std::uint16_t machine; ///< number of the process's machine
};
static_assert(sizeof(Claim) == 32);

/// The color of a process that lets the hardware choose; replaced when the claims of all processes are known.
constexpr std::int64_t by_hardware = -1;
static_assert(by_hardware != MPI_UNDEFINED); // colors of the program are not negative

constexpr std::string_view resource_key = "mpi_hw_resource_type";
/// The name of the parts that color_of() uses without a resource.
constexpr std::string_view whole_machine = "mpi_shared_memory";
bool names_machine(std::string_view name) {
  return name == whole_machine || name == machine_resource || name == machine_resource.substr(scheme.size());
}

Claim claim(std::int64_t color, int key) {
  auto machine = static_cast<std::uint16_t>(memory::space().machine);
  return {color, object::new_context(), key, transport::own_location(), machine};
}

/// The color of a process in a split by one kind of part, or by whole machines if `resource` is nullptr.
/// MPI_UNDEFINED if the process is not bound within one part.
std::int64_t color_of(const Claim& claim, const Resource* resource) {
  std::int64_t machine = std::int64_t{claim.machine} << 16;
  if (resource == nullptr) return machine;
  std::uint16_t part = claim.location.*resource->part;
  return part == segment::Location::several ? MPI_UNDEFINED : machine | part;
}

/// Replaces the color by_hardware: splits these processes by machines, or else by the largest parts that
/// divide them, and returns the name of that kind. If none divides them, their color is MPI_UNDEFINED and the
/// name "". Every process has the same claims and so finds the same result.
std::string_view divide_by_hardware(std::span<Claim> ours, std::span<Claim> theirs = {}) {
  std::vector<Claim*> all;
  for (auto side : {ours, theirs})
    for (Claim& each : side)
      if (each.color == by_hardware) all.push_back(&each);
  auto divides = [&](const Resource* resource) {
    bool some = false, same = true;
    for (const Claim* each : all) {
      std::int64_t color = color_of(*each, resource);
      some |= color != MPI_UNDEFINED;
      same &= color == color_of(*all.front(), resource);
    }
    return some && !same;
  };
  auto give = [&](const Resource* resource) {
    for (Claim* each : all) each->color = color_of(*each, resource);
    return resource != nullptr ? resource->name : whole_machine;
  };
  if (divides(nullptr)) return give(nullptr);
  for (const Resource& resource : resources())
    if (divides(&resource)) return give(&resource);
  for (Claim* each : all) each->color = MPI_UNDEFINED;
  return {};
}

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

/// The ranks with this color, in the order of the new group.
std::vector<int> claimants(const std::vector<Claim>& claims, std::int64_t color) {
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < claims.size(); ++rank)
    if (claims[rank].color == color) ranks.push_back(static_cast<int>(rank));
  std::sort(ranks.begin(), ranks.end(), [&](int a, int b) {
    int key_a = claims[static_cast<std::size_t>(a)].key, key_b = claims[static_cast<std::size_t>(b)].key;
    return key_a != key_b ? key_a < key_b : a < b;
  });
  return ranks;
}

/// split_as() for intercommunicators.
Result split_inter(Communicator& parent, Claim mine, std::string_view& parts, Communicator*& made) {
  Communicator* local = local_communicator(parent);
  if (local == nullptr) return base::fail(MPI_ERR_NO_MEM, "no memory for another communicator");
  std::vector<Claim> ours(static_cast<std::size_t>(parent.size)),
      theirs(static_cast<std::size_t>(parent.peers));
  NEAR_TRY(coll::all_gather(byte_buffer(&mine, sizeof mine), byte_buffer(ours.data(), sizeof mine), *local));
  int tag = next_tag(parent);
  datatype::Buffer all_theirs = byte_buffer(theirs.data(), theirs.size() * sizeof(Claim));
  if (parent.rank == 0) {
    p2p::Completion completion;
    NEAR_TRY(p2p::send_receive(byte_buffer(ours.data(), ours.size() * sizeof(Claim)), 0, tag, all_theirs, 0,
                               tag, parent, completion, Channel::internal));
  }
  NEAR_TRY(coll::broadcast(all_theirs, 0, *local));
  parts = divide_by_hardware(ours, theirs);
  mine.color = ours[static_cast<std::size_t>(parent.rank)].color;
  if (mine.color == MPI_UNDEFINED) return {};
  std::vector<int> near_side = claimants(ours, mine.color), far_side = claimants(theirs, mine.color);
  if (far_side.empty()) return {};
  std::uint64_t context = decides(parent) ? ours[static_cast<std::size_t>(near_side[0])].context
                                          : theirs[static_cast<std::size_t>(far_side[0])].context;
  return build_inter(parent, object::group_include(*parent.group, near_side),
                     object::group_include(*parent.remote, far_side), context, made);
}

/// Exchanges the claims and makes the communicator. `parts` receives the name of the parts by which the
/// processes were divided.
Result split_as(Communicator& parent, Claim mine, std::string_view& parts, Communicator*& made) {
  if (parent.is_inter()) return split_inter(parent, mine, parts, made);
  std::vector<Claim> claims(static_cast<std::size_t>(parent.size));
  NEAR_TRY(
      coll::all_gather(byte_buffer(&mine, sizeof mine), byte_buffer(claims.data(), sizeof mine), parent));
  parts = divide_by_hardware(claims);
  mine.color = claims[static_cast<std::size_t>(parent.rank)].color;
  if (mine.color == MPI_UNDEFINED) return {};
  std::vector<int> members = claimants(claims, mine.color);
  return build(parent, object::group_include(*parent.group, members),
               claims[static_cast<std::size_t>(members[0])].context, made);
}

Result split_as(Communicator& parent, const Claim& mine, Communicator*& made) {
  std::string_view parts;
  return split_as(parent, mine, parts, made);
}

} // namespace

Result create(Communicator& parent, const Group& group, Communicator*& made) {
  if (parent.is_inter()) {
    return split_as(parent, claim(group.rank == MPI_UNDEFINED ? MPI_UNDEFINED : 0, group.rank), made);
  }
  return create_on(parent, group, next_tag(parent), Channel::internal, made);
}

Result create_from_group(Communicator& parent, const Group& group, int tag, Communicator*& made) {
  return create_on(parent, group, tag, Channel::tagged, made);
}

Result split(Communicator& parent, int color, int key, Communicator*& made) {
  return split_as(parent, claim(color, key), made);
}

// All processes take the same steps for every type, because a caller that passes MPI_UNDEFINED does not know
// the other callers' types.
Result split_by_type(Communicator& parent, int type, int key, Info* info, Communicator*& made) {
  auto value_of = [&](std::string_view name) -> std::string_view {
    const std::string* value = info != nullptr ? info->find(name) : nullptr;
    return value != nullptr ? std::string_view(*value) : std::string_view();
  };
  Claim mine = claim(MPI_UNDEFINED, key);
  switch (type) {
  case MPI_UNDEFINED: break;
  case MPI_COMM_TYPE_SHARED: mine.color = color_of(mine, nullptr); break;
  case MPI_COMM_TYPE_HW_GUIDED:
  case MPI_COMM_TYPE_RESOURCE_GUIDED: {
    std::string_view name = value_of(resource_key), set = value_of("mpi_pset_name");
    const Resource* resource = find_resource(name);
    if (resource != nullptr || names_machine(name))
      mine.color = color_of(mine, resource);
    else if (type == MPI_COMM_TYPE_RESOURCE_GUIDED && name.empty() && set == "mpi://WORLD")
      mine.color = 0;
    else if (type == MPI_COMM_TYPE_RESOURCE_GUIDED && name.empty() && set == "mpi://SELF")
      mine.color = parent.rank;
    break;
  }
  case MPI_COMM_TYPE_HW_UNGUIDED: mine.color = by_hardware; break;
  default: return base::fail(MPI_ERR_ARG, "{} is not a split type", type);
  }
  std::string_view parts;
  NEAR_TRY(split_as(parent, mine, parts, made));
  if (type == MPI_COMM_TYPE_HW_UNGUIDED && info != nullptr && made != nullptr) info->set(resource_key, parts);
  return {};
}

} // namespace near::comm
