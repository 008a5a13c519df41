// Processes and groups. Source: MPI 5.0, section 7.3.
#pragma once

#include "object/error.h"
#include "object/object.h"

#include <memory>
#include <span>
#include <vector>

namespace near::object {

/// Names a process: its job, by this process's numbering of jobs, and its number in that job. While there is only one
/// job, the name is the same in all processes, and is sent as it is; ids of other jobs will have to be translated. For
/// processes started by mpiexec the number is the rank in MPI_COMM_WORLD; processes that a job spawns later get
/// further numbers.
struct ProcessId {
  std::uint32_t job = 0; ///< 0: this process's own job
  std::uint32_t rank = 0;
  bool operator==(const ProcessId&) const = default;
};
static_assert(sizeof(ProcessId) == 8);

/// A process as known to the transport layer. This layer only stores pointers to them, in communicators.
struct Process {};
/// Stands for every process that the transport has not met yet; set once by the engine at start, so that the
/// fast path need not ask whether a pointer is null.
inline constinit Process* unknown_process = nullptr;

/// Finds ranks by process in constant time; for groups that are too large for a linear search.
class RankIndex {
public:
  explicit RankIndex(std::span<const ProcessId> members);
  /// The rank of `process` in the members from which the index was made, or MPI_UNDEFINED.
  int find(std::span<const ProcessId> members, ProcessId process) const;

private:
  std::size_t position(ProcessId process) const;
  std::vector<std::int32_t> entries_; ///< ranks; open addressing; -1: empty
  unsigned shift_;
};

struct Group : Object {
  std::vector<ProcessId> members;           ///< by rank; does not change once it is shared
  mutable std::unique_ptr<RankIndex> index; ///< made when first needed
  int rank = MPI_UNDEFINED;                 ///< this process's rank, or MPI_UNDEFINED
  int size() const { return static_cast<int>(members.size()); }
};

Pool<Group, Kind::group>& groups();
/// Returns the live group with this handle, predefined or not; nullptr for MPI_GROUP_NULL and any other value.
Group* find_group(MPI_Group handle);
/// Makes a group with one reference; its `rank` is found from own_process().
Group* make_group(std::vector<ProcessId> members);
Group* empty_group();
/// Drops one reference; the last one destroys the group. Has no effect on MPI_GROUP_EMPTY.
void release(Group* group);
/// The rank of `process` in the group, or MPI_UNDEFINED if it is not a member.
int rank_of(const Group& group, ProcessId process);
/// This process; set once by the engine at start.
ProcessId own_process();
void set_own_process(ProcessId process);

// Set operations of MPI 5.0, 7.3.2, on processes. Inputs are validated by the caller.
Group* group_union(const Group& a, const Group& b);
Group* group_intersection(const Group& a, const Group& b);
Group* group_difference(const Group& a, const Group& b);
Group* group_include(const Group& group, std::span<const int> ranks);
Group* group_exclude(const Group& group, std::span<const int> ranks);
/// Compares two groups as MPI_Group_compare does: MPI_IDENT, MPI_SIMILAR or MPI_UNEQUAL.
int group_compare(const Group& a, const Group& b);
/// The rank in `to` of the process with rank `rank` in `from`; MPI_UNDEFINED if it is not a member.
/// MPI_PROC_NULL stays MPI_PROC_NULL.
int translate_rank(const Group& from, int rank, const Group& to);

inline MPI_Group public_handle(const Group& group) {
  return reinterpret_cast<MPI_Group>(static_cast<std::uintptr_t>(group.handle));
}

} // namespace near::object
