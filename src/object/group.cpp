// Groups are lists of processes. Small ones are searched linearly; a large one gets an index of its processes
// when a search first needs it, so set operations cost time proportional to the sizes.
#include "object/group.h"

#include <algorithm>
#include <bit>

namespace near::object {

namespace {

constinit Immortal<Pool<Group, Kind::group>> group_pool;
constinit ProcessId own{};

/// Up to here a linear search of 8-byte process ids is at least as fast as hashing.
constexpr int searched_through = 32;

std::uint64_t number(ProcessId process) {
  return static_cast<std::uint64_t>(process.rank) << 32 | process.job;
}

} // namespace

RankIndex::RankIndex(std::span<const ProcessId> members) {
  std::size_t size = std::bit_ceil(members.size() * 2 + 2);
  shift_ = 64 - static_cast<unsigned>(std::countr_zero(size));
  entries_.assign(size, -1);
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    std::size_t at = position(members[rank]);
    while (entries_[at] >= 0) at = (at + 1) & (size - 1);
    entries_[at] = static_cast<std::int32_t>(rank);
  }
}

std::size_t RankIndex::position(ProcessId process) const {
  // Fibonacci hashing: consecutive numbers, the usual case, are spread over the table.
  return static_cast<std::size_t>((number(process) * 0x9e3779b97f4a7c15u) >> shift_);
}

int RankIndex::find(std::span<const ProcessId> members, ProcessId process) const {
  for (std::size_t at = position(process);; at = (at + 1) & (entries_.size() - 1)) {
    std::int32_t rank = entries_[at];
    if (rank < 0) return MPI_UNDEFINED;
    if (members[static_cast<std::size_t>(rank)] == process) return rank;
  }
}

Pool<Group, Kind::group>& groups() { return group_pool.value; }

Group* empty_group() {
  static Group* const group = [] {
    auto* made = new Group;
    made->kind = Kind::group;
    made->predefined = true;
    made->handle = static_cast<HandleBits>(reinterpret_cast<std::uintptr_t>(MPI_GROUP_EMPTY));
    return made;
  }();
  return group;
}

Group* find_group(MPI_Group handle) {
  if (handle == MPI_GROUP_EMPTY) return empty_group();
  return group_pool.value.find(reinterpret_cast<std::uintptr_t>(handle));
}

Group* make_group(std::vector<ProcessId> members) {
  if (members.empty()) return keep(empty_group());
  Group* made = group_pool.value.make();
  if (made == nullptr) return nullptr;
  made->members = std::move(members);
  auto at = std::find(made->members.begin(), made->members.end(), own);
  if (at != made->members.end()) made->rank = static_cast<int>(at - made->members.begin());
  return made;
}

void release(Group* group) {
  if (group->predefined) return;
  if (group->references.add_relaxed(-1) == 1) group_pool.value.destroy(group);
}

ProcessId own_process() { return own; }
void set_own_process(ProcessId process) { own = process; }

int rank_of(const Group& group, ProcessId process) {
  if (process == own) return group.rank;
  if (group.size() <= searched_through) {
    for (int rank = 0; rank < group.size(); ++rank)
      if (group.members[static_cast<std::size_t>(rank)] == process) return rank;
    return MPI_UNDEFINED;
  }
  if (group.index == nullptr) group.index = std::make_unique<RankIndex>(group.members);
  return group.index->find(group.members, process);
}

Group* group_union(const Group& a, const Group& b) {
  std::vector<ProcessId> members = a.members;
  for (ProcessId process : b.members)
    if (rank_of(a, process) == MPI_UNDEFINED) members.push_back(process);
  return make_group(std::move(members));
}

Group* group_intersection(const Group& a, const Group& b) {
  std::vector<ProcessId> members;
  for (ProcessId process : a.members)
    if (rank_of(b, process) != MPI_UNDEFINED) members.push_back(process);
  return make_group(std::move(members));
}

Group* group_difference(const Group& a, const Group& b) {
  std::vector<ProcessId> members;
  for (ProcessId process : a.members)
    if (rank_of(b, process) == MPI_UNDEFINED) members.push_back(process);
  return make_group(std::move(members));
}

Group* group_include(const Group& group, std::span<const int> ranks) {
  std::vector<ProcessId> members;
  members.reserve(ranks.size());
  for (int rank : ranks) members.push_back(group.members[static_cast<std::size_t>(rank)]);
  return make_group(std::move(members));
}

Group* group_exclude(const Group& group, std::span<const int> ranks) {
  std::vector<bool> leaves(group.members.size(), false);
  for (int rank : ranks) leaves[static_cast<std::size_t>(rank)] = true;
  std::vector<ProcessId> members;
  for (std::size_t rank = 0; rank < leaves.size(); ++rank)
    if (!leaves[rank]) members.push_back(group.members[rank]);
  return make_group(std::move(members));
}

int group_compare(const Group& a, const Group& b) {
  if (a.members == b.members) return MPI_IDENT;
  if (a.size() != b.size()) return MPI_UNEQUAL;
  for (ProcessId process : a.members)
    if (rank_of(b, process) == MPI_UNDEFINED) return MPI_UNEQUAL;
  return MPI_SIMILAR;
}

int translate_rank(const Group& from, int rank, const Group& to) {
  if (rank == MPI_PROC_NULL) return MPI_PROC_NULL;
  ProcessId process = from.members[static_cast<std::size_t>(rank)];
  // Usually the groups begin with the same processes (MPI_COMM_WORLD and its copies).
  if (rank < to.size() && to.members[static_cast<std::size_t>(rank)] == process) return rank;
  return rank_of(to, process);
}

} // namespace near::object
