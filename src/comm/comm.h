// Communicator creation: everything that needs agreement. Source: MPI 5.0, sections 7.4 to 7.6 and chapter 8.
// A context is made by one member (rank 0 of the new group) and told to the others along with what they
// exchange anyway, so no allreduce is needed and none is ever reused. Arguments are valid already unless a
// function says what it checks.
#pragma once

#include "coll/coll.h"

namespace near::comm {

using object::Communicator;
using object::Group;
using object::Info;
using object::Result;

/// Collective over `parent`. Attributes are copied by their callbacks; the topology too. `hints` (null: none)
/// are the new communicator's: MPI_Comm_dup passes the parent's.
Result duplicate(Communicator& parent, const Info* hints, Communicator*& made);
/// The nonblocking form: `made` exists at once and may be used when `request` has completed.
Result start_duplicate(Communicator& parent, const Info* hints, Communicator*& made, p2p::Request*& request);
/// Collective over `parent`; `made` stays nullptr on processes outside `group`.
Result create(Communicator& parent, const Group& group, Communicator*& made);
/// Collective over `group` alone. Matches by `tag`, apart from all messages.
Result create_from_group(Communicator& parent, const Group& group, int tag, Communicator*& made);
/// `color` MPI_UNDEFINED gives nullptr. On an intercommunicator: one for each color that both groups have.
Result split(Communicator& parent, int color, int key, Communicator*& made);
/// MPI_COMM_TYPE_SHARED; guided types by "mpi_shared_memory", the parts of the machine (hardware.h) and the
/// process sets of this job; unguided by machines, or by the largest parts that divide `parent`. nullptr on a
/// process that is not bound within one such part, and where nothing divides. An unguided split that gives a
/// communicator sets "mpi_hw_resource_type" in `info`. An unknown type is MPI_ERR_ARG.
Result split_by_type(Communicator& parent, int type, int key, Info* info, Communicator*& made);
/// MPI_IDENT, MPI_CONGRUENT, MPI_SIMILAR or MPI_UNEQUAL; local.
int compare(const Communicator& a, const Communicator& b);

/// Cartesian topologies; processes beyond the grid get nullptr. A grid that is too large is MPI_ERR_DIMS.
Result create_cartesian(Communicator& parent, std::span<const int> dims, std::span<const int> periods,
                        bool reorder, Communicator*& made);
Result cartesian_sub(Communicator& parent, std::span<const int> remain, Communicator*& made);
/// MPI_Dims_create: fills the zeros of `dims` with the factorisation whose largest and smallest extent differ
/// least, in non-increasing order.
/// MPI_ERR_DIMS when the given ones are negative or do not divide `processes`.
Result choose_dims(int processes, std::span<int> dims);
/// The rank at these coordinates; those of periodic dimensions wrap. MPI_PROC_NULL outside the grid.
int rank_at(const object::Topology& grid, std::span<const int> coords);
/// The inverse, into `coords`, one for each dimension.
void coords_of(const object::Topology& grid, int rank, std::span<int> coords);

/// Graph topologies; processes beyond the graph get nullptr. `index` is cumulative. Checks the graph
/// (MPI_ERR_ARG, MPI_ERR_TOPOLOGY).
Result create_graph(Communicator& parent, std::span<const int> index, std::span<const int> edges,
                    Communicator*& made);
/// What each process says of its own neighbours. Weights are null for MPI_UNWEIGHTED.
struct Neighbours {
  std::span<const int> sources, destinations;
  const int* source_weights = nullptr;
  const int* destination_weights = nullptr;
  bool weighted = false;
};
Result create_adjacent_graph(Communicator& parent, const Neighbours& neighbours, const Info* hints,
                             Communicator*& made);
/// Any process may name any edge: from sources[i], degrees[i] destinations each.
Result create_distributed_graph(Communicator& parent, std::span<const int> sources,
                                std::span<const int> degrees, std::span<const int> destinations,
                                const int* weights, bool weighted, const Info* hints, Communicator*& made);

/// Collective over `group` alone, which this process is in; matches by `tag` (MPI_Comm_create_from_group).
Result create_by_string(const Group& group, std::string_view tag, const Info* hints,
                        object::ErrorHandler& handler, Communicator*& made);
/// The same for an intercommunicator; `remote` and `remote_leader` count at the local leader only.
Result create_intercommunicator_by_string(const Group& local, int local_leader, const Group* remote,
                                          int remote_leader, std::string_view tag, const Info* hints,
                                          object::ErrorHandler& handler, Communicator*& made);

/// `peer` and `remote_leader` count at the local leader only (MPI_Intercomm_create).
Result create_intercommunicator(Communicator& local, int local_leader, Communicator* peer, int remote_leader,
                                int tag, Communicator*& made);
/// An intracommunicator of both groups; the group that says `high` comes second.
Result merge(Communicator& inter, bool high, Communicator*& made);
using object::local_communicator;

/// Keeps those hints of `info` that NearMPI knows and that have a valid value; ignores the others.
Result apply_hints(Communicator& communicator, const Info& info);
/// A new info with all hints that NearMPI knows and the values in force. nullptr: no memory.
Info* hints_in_force(const Communicator& communicator);

/// Runs the delete callbacks; then the handle is stale, and the communicator goes when the last operation on
/// it is finished. A failing callback leaves all as it is.
Result free_communicator(Communicator& communicator);

} // namespace near::comm
