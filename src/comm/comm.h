// Communicator creation: everything that needs agreement. Source: MPI 5.0, sections 7.4 to 7.6 and chapter 8.
// One member (rank 0 of the new group) makes the context; the others get it along with data that they
// exchange anyway. So no allreduce is needed, and no context is ever reused. The caller has checked the
// arguments, unless a function says what it checks.
#pragma once

#include "coll/coll.h"

namespace near::comm {

using object::Communicator;
using object::Group;
using object::Info;
using object::Result;

/// MPI_Comm_dup, collective over `parent`. Calls the copy callbacks of the attributes, and copies the
/// topology. `hints` (null: none) are those of the new communicator; MPI_Comm_dup passes the parent's.
Result duplicate(Communicator& parent, const Info* hints, Communicator*& made);
/// The nonblocking form of duplicate(): `made` exists at once, and may be used after `request` has completed.
Result start_duplicate(Communicator& parent, const Info* hints, Communicator*& made, p2p::Request*& request);
/// MPI_Comm_create, collective over `parent`; `made` stays nullptr on processes outside `group`.
Result create(Communicator& parent, const Group& group, Communicator*& made);
/// MPI_Comm_create_group, collective over `group` alone. Calls match by `tag`, which is separate from the
/// tags of messages.
Result create_from_group(Communicator& parent, const Group& group, int tag, Communicator*& made);
/// MPI_Comm_split. If `color` is MPI_UNDEFINED, `made` stays nullptr. On an intercommunicator, makes one for
/// each color that occurs in both groups.
Result split(Communicator& parent, int color, int key, Communicator*& made);
/// MPI_Comm_split_type: MPI_COMM_TYPE_SHARED; guided types by "mpi_shared_memory", by parts of the machine
/// (hardware.h) or by process sets of this job; the unguided type by machines, or by the largest parts that
/// divide `parent`. `made` stays nullptr if this process is not bound within one such part, or if no part
/// divides `parent`. If an unguided split makes a communicator, it sets "mpi_hw_resource_type" in `info`.
/// Fails with MPI_ERR_ARG for an unknown type.
Result split_by_type(Communicator& parent, int type, int key, Info* info, Communicator*& made);
/// MPI_Comm_compare: MPI_IDENT, MPI_CONGRUENT, MPI_SIMILAR or MPI_UNEQUAL; local.
int compare(const Communicator& a, const Communicator& b);

/// MPI_Cart_create. `made` stays nullptr on processes outside the grid. With `reorder`, ranks may differ from those in `parent`,
/// so that neighbours run near each other (doc/topologies.md). Fails with MPI_ERR_DIMS if the grid is too large.
Result create_cartesian(Communicator& parent, std::span<const int> dims, std::span<const int> periods,
                        bool reorder, Communicator*& made);
/// MPI_Cart_map: the rank that create_cartesian() would give this process if it may reorder, or MPI_UNDEFINED. Local.
Result rank_in_grid(const Communicator& parent, std::span<const int> dims, std::span<const int> periods,
                    int& rank);
Result cartesian_sub(Communicator& parent, std::span<const int> remain, Communicator*& made);
/// MPI_Dims_create: fills the zeros of `dims` in non-increasing order, with the factorisation whose largest
/// and smallest extent differ least. Fails with MPI_ERR_DIMS if a given extent is negative or the given ones
/// do not divide `processes`.
Result choose_dims(int processes, std::span<int> dims);
/// The rank at these coordinates, which wrap around in periodic dimensions. MPI_PROC_NULL outside the grid.
int rank_at(const object::Topology& grid, std::span<const int> coords);
/// The coordinates of a rank; `coords` has one element for each dimension.
void coords_of(const object::Topology& grid, int rank, std::span<int> coords);

/// MPI_Graph_create; `made` stays nullptr on processes outside the graph. `index` is cumulative. Fails with
/// MPI_ERR_ARG or MPI_ERR_TOPOLOGY if the graph is not valid.
Result create_graph(Communicator& parent, std::span<const int> index, std::span<const int> edges,
                    bool reorder, Communicator*& made);
/// MPI_Graph_map: the rank that create_graph() would give this process if it may reorder, or MPI_UNDEFINED. Local.
Result rank_in_graph(const Communicator& parent, std::span<const int> index, std::span<const int> edges,
                     int& rank);
/// The neighbours of any rank of a graph made by MPI_Graph_create.
std::span<const int> neighbours_of(const object::Topology& graph, int rank);
/// The neighbours of the rank that the calling process has in the parent,
/// as described by that process. Weights are null for MPI_UNWEIGHTED.
struct Neighbours {
  std::span<const int> sources, destinations;
  const int* source_weights = nullptr;
  const int* destination_weights = nullptr;
  bool weighted = false;
};
Result create_adjacent_graph(Communicator& parent, const Neighbours& neighbours, const Info* hints,
                             bool reorder, Communicator*& made);
/// MPI_Dist_graph_create: any process may specify any edge. degrees[i] of the `destinations` belong to
/// sources[i].
Result create_distributed_graph(Communicator& parent, std::span<const int> sources,
                                std::span<const int> degrees, std::span<const int> destinations,
                                const int* weights, bool weighted, const Info* hints, bool reorder,
                                Communicator*& made);

/// MPI_Comm_create_from_group: collective over `group` alone, which must include this process; calls match by
/// `tag`.
Result create_by_string(const Group& group, std::string_view tag, const Info* hints,
                        object::ErrorHandler& handler, Communicator*& made);
/// MPI_Intercomm_create_from_groups; `remote` and `remote_leader` are used only at the local leader.
Result create_intercommunicator_by_string(const Group& local, int local_leader, const Group* remote,
                                          int remote_leader, std::string_view tag, const Info* hints,
                                          object::ErrorHandler& handler, Communicator*& made);

/// MPI_Intercomm_create; `peer` and `remote_leader` are used only at the local leader.
Result create_intercommunicator(Communicator& local, int local_leader, Communicator* peer, int remote_leader,
                                int tag, Communicator*& made);
/// MPI_Intercomm_merge: the group that passes `high` comes second.
Result merge(Communicator& inter, bool high, Communicator*& made);
using object::local_communicator;

/// Stores the hints in `info` that NearMPI knows and whose values are valid; ignores the others.
Result apply_hints(Communicator& communicator, const Info& info);
/// Makes an info object with all hints that NearMPI knows and their current values; nullptr if there is no
/// memory.
Info* hints_in_force(const Communicator& communicator);

/// MPI_Comm_free: calls the delete callbacks, then invalidates the handle. The communicator is destroyed when
/// its last operation has finished. If a callback fails, the communicator is unchanged.
Result free_communicator(Communicator& communicator);

} // namespace near::comm
