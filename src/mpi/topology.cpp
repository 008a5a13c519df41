// Virtual topologies. Source: MPI 5.0, chapter 8.
#include "comm/comm.h"
#include "mpi/arguments.h"
#include "mpi/impl.h"

#include <algorithm>

namespace near::mpi::impl {

using comm::Neighbours;
using comm::neighbours_of;
using object::Topology;

namespace {

/// Finds the communicator's topology. Fails if it is not of this kind.
Result find(const Communicator& comm, int kind, const Topology*& topology) {
  topology = comm.topology.get();
  if (topology != nullptr && topology->kind == kind) return {};
  return base::fail(MPI_ERR_TOPOLOGY, "{} has no {} topology", object::describe(comm),
                    kind == MPI_CART ? "Cartesian" : (kind == MPI_GRAPH ? "graph" : "distributed graph"));
}

Result check_capacity(int capacity, std::size_t needed, const char* what) {
  if (capacity >= 0 && static_cast<std::size_t>(capacity) >= needed) return {};
  return base::fail(MPI_ERR_ARG, "there is space for {} {}, but there are {}", capacity, what, needed);
}

/// How many of `there` values fit in an array of `capacity` values.
std::size_t at_most(int capacity, std::size_t there) {
  return std::min(static_cast<std::size_t>(capacity), there);
}

Result check_array(int n, const int* values, const char* what) {
  if (n < 0) return base::fail(MPI_ERR_ARG, "there cannot be {} {}", n, what);
  if (n > 0 && values == nullptr) return base::fail(MPI_ERR_ARG, "{} is a null pointer", what);
  return {};
}

Result check_ranks(const Communicator& comm, std::span<const int> ranks, const char* what) {
  for (int rank : ranks)
    if (rank < 0 || rank >= comm.size)
      return base::fail(MPI_ERR_RANK, "{} names rank {}, outside {} of size {}", what, rank,
                        object::describe(comm), comm.size);
  return {};
}

Result check_weights(std::size_t n, const int* weights, const char* what) {
  if (n == 0 || weights == MPI_UNWEIGHTED) return {};
  if (weights == nullptr || weights == MPI_WEIGHTS_EMPTY)
    return base::fail(MPI_ERR_ARG, "{} is empty, but there are {} edges", what, n);
  for (std::size_t i = 0; i < n; ++i)
    if (weights[i] < 0)
      return base::fail(MPI_ERR_ARG, "{}[{}] is {}, which is negative", what, i, weights[i]);
  return {};
}

} // namespace

Result Topo_test(Communicator& comm, int* status) {
  *status = comm.topology != nullptr ? comm.topology->kind : MPI_UNDEFINED;
  return {};
}

// Cartesian

Result Dims_create(int nnodes, int ndims, int* dims) {
  return comm::choose_dims(nnodes, {dims, static_cast<std::size_t>(ndims)});
}

Result Cart_create(Communicator& comm_old, int ndims, const int* dims, const int* periods, int reorder,
                   Communicator*& comm_cart) {
  NEAR_TRY(check_is_intra(comm_old));
  return comm::create_cartesian(comm_old, as_span(ndims, dims), as_span(ndims, periods), reorder != 0,
                                comm_cart);
}

Result Cartdim_get(Communicator& comm, int* ndims) {
  const Topology* grid = nullptr;
  NEAR_TRY(find(comm, MPI_CART, grid));
  *ndims = static_cast<int>(grid->dims.size());
  return {};
}

Result Cart_get(Communicator& comm, int maxdims, int* dims, int* periods, int* coords) {
  const Topology* grid = nullptr;
  NEAR_TRY(find(comm, MPI_CART, grid));
  NEAR_TRY(check_capacity(maxdims, grid->dims.size(), "dimensions"));
  std::copy(grid->dims.begin(), grid->dims.end(), dims);
  std::copy(grid->periods.begin(), grid->periods.end(), periods);
  std::copy(grid->coords.begin(), grid->coords.end(), coords);
  return {};
}

Result Cart_rank(Communicator& comm, const int* coords, int* rank) {
  const Topology* grid = nullptr;
  NEAR_TRY(find(comm, MPI_CART, grid));
  int found = comm::rank_at(*grid, {coords, grid->dims.size()});
  if (found == MPI_PROC_NULL) {
    std::size_t i = 0;
    while (grid->periods[i] != 0 || (coords[i] >= 0 && coords[i] < grid->dims[i])) ++i;
    return base::fail(MPI_ERR_ARG, "coords[{}] is {}, outside a dimension of {} that is not periodic", i,
                      coords[i], grid->dims[i]);
  }
  *rank = found;
  return {};
}

Result Cart_coords(Communicator& comm, int rank, int maxdims, int* coords) {
  const Topology* grid = nullptr;
  NEAR_TRY(find(comm, MPI_CART, grid));
  NEAR_TRY(check_capacity(maxdims, grid->dims.size(), "dimensions"));
  comm::coords_of(*grid, rank, {coords, grid->dims.size()});
  return {};
}

Result Cart_shift(Communicator& comm, int direction, int disp, int* rank_source, int* rank_dest) {
  const Topology* grid = nullptr;
  NEAR_TRY(find(comm, MPI_CART, grid));
  if (direction < 0 || static_cast<std::size_t>(direction) >= grid->dims.size())
    return base::fail(MPI_ERR_ARG, "direction {} is outside the {} dimensions", direction, grid->dims.size());
  auto along = static_cast<std::size_t>(direction);
  auto shifted = [&](std::int64_t by) {
    std::int64_t at = grid->coords[along] + by, extent = grid->dims[along];
    if (grid->periods[along] != 0)
      at = (at % extent + extent) % extent;
    else if (at < 0 || at >= extent)
      return static_cast<int>(MPI_PROC_NULL);
    std::vector<int> coords = grid->coords;
    coords[along] = static_cast<int>(at);
    return comm::rank_at(*grid, coords);
  };
  *rank_source = shifted(-std::int64_t{disp});
  *rank_dest = shifted(disp);
  return {};
}

Result Cart_sub(Communicator& comm, const int* remain_dims, Communicator*& newcomm) {
  const Topology* grid = nullptr;
  NEAR_TRY(find(comm, MPI_CART, grid));
  return comm::cartesian_sub(comm, {remain_dims, grid->dims.size()}, newcomm);
}

Result Cart_map(Communicator& comm, int ndims, const int* dims, const int* periods, int* newrank) {
  NEAR_TRY(check_is_intra(comm));
  NEAR_TRY(check_array(ndims, periods, "periods"));
  return comm::rank_in_grid(comm, as_span(ndims, dims), as_span(ndims, periods), *newrank);
}

// Graphs

Result Graph_create(Communicator& comm_old, int nnodes, const int* index, const int* edges, int reorder,
                    Communicator*& comm_graph) {
  NEAR_TRY(check_is_intra(comm_old));
  NEAR_TRY(check_array(nnodes, index, "index"));
  int count = nnodes > 0 ? index[nnodes - 1] : 0;
  NEAR_TRY(check_array(count, edges, "edges"));
  return comm::create_graph(comm_old, as_span(nnodes, index), as_span(count, edges), reorder != 0,
                            comm_graph);
}

Result Graphdims_get(Communicator& comm, int* nnodes, int* nedges) {
  const Topology* graph = nullptr;
  NEAR_TRY(find(comm, MPI_GRAPH, graph));
  *nnodes = static_cast<int>(graph->index.size());
  *nedges = static_cast<int>(graph->edges.size());
  return {};
}

Result Graph_get(Communicator& comm, int maxindex, int maxedges, int* index, int* edges) {
  const Topology* graph = nullptr;
  NEAR_TRY(find(comm, MPI_GRAPH, graph));
  NEAR_TRY(check_capacity(maxindex, graph->index.size(), "nodes"));
  NEAR_TRY(check_capacity(maxedges, graph->edges.size(), "edges"));
  std::copy(graph->index.begin(), graph->index.end(), index);
  std::copy(graph->edges.begin(), graph->edges.end(), edges);
  return {};
}

Result Graph_neighbors_count(Communicator& comm, int rank, int* nneighbors) {
  const Topology* graph = nullptr;
  NEAR_TRY(find(comm, MPI_GRAPH, graph));
  *nneighbors = static_cast<int>(neighbours_of(*graph, rank).size());
  return {};
}

Result Graph_neighbors(Communicator& comm, int rank, int maxneighbors, int* neighbors) {
  const Topology* graph = nullptr;
  NEAR_TRY(find(comm, MPI_GRAPH, graph));
  std::span<const int> all = neighbours_of(*graph, rank);
  std::copy_n(all.begin(), at_most(maxneighbors, all.size()), neighbors);
  return {};
}

Result Graph_map(Communicator& comm, int nnodes, const int* index, const int* edges, int* newrank) {
  NEAR_TRY(check_is_intra(comm));
  NEAR_TRY(check_array(nnodes, index, "index"));
  int count = nnodes > 0 ? index[nnodes - 1] : 0;
  NEAR_TRY(check_array(count, edges, "edges"));
  return comm::rank_in_graph(comm, as_span(nnodes, index), as_span(count, edges), *newrank);
}

// Distributed graphs

Result Dist_graph_create_adjacent(Communicator& comm_old, int indegree, const int* sources,
                                  const int* sourceweights, int outdegree, const int* destinations,
                                  const int* destweights, Info* info, int reorder,
                                  Communicator*& comm_dist_graph) {
  NEAR_TRY(check_is_intra(comm_old));
  NEAR_TRY(check_array(indegree, sources, "sources"));
  NEAR_TRY(check_array(outdegree, destinations, "destinations"));
  Neighbours neighbours{as_span(indegree, sources), as_span(outdegree, destinations), sourceweights,
                        destweights, sourceweights != MPI_UNWEIGHTED && destweights != MPI_UNWEIGHTED};
  NEAR_TRY(check_ranks(comm_old, neighbours.sources, "sources"));
  NEAR_TRY(check_ranks(comm_old, neighbours.destinations, "destinations"));
  NEAR_TRY(check_weights(neighbours.sources.size(), sourceweights, "sourceweights"));
  NEAR_TRY(check_weights(neighbours.destinations.size(), destweights, "destweights"));
  return comm::create_adjacent_graph(comm_old, neighbours, info, reorder != 0, comm_dist_graph);
}

Result Dist_graph_create(Communicator& comm_old, int n, const int* sources, const int* degrees,
                         const int* destinations, const int* weights, Info* info, int reorder,
                         Communicator*& comm_dist_graph) {
  NEAR_TRY(check_is_intra(comm_old));
  NEAR_TRY(check_array(n, sources, "sources"));
  NEAR_TRY(check_array(n, degrees, "degrees"));
  std::int64_t edges = 0;
  for (int i = 0; i < n; ++i) {
    if (degrees[i] < 0) return base::fail(MPI_ERR_ARG, "degrees[{}] is {}, which is negative", i, degrees[i]);
    edges += degrees[i];
  }
  if (edges > 0 && destinations == nullptr) return base::fail(MPI_ERR_ARG, "destinations is a null pointer");
  std::span<const int> all{destinations, static_cast<std::size_t>(edges)};
  NEAR_TRY(check_ranks(comm_old, as_span(n, sources), "sources"));
  NEAR_TRY(check_ranks(comm_old, all, "destinations"));
  NEAR_TRY(check_weights(all.size(), weights, "weights"));
  return comm::create_distributed_graph(comm_old, as_span(n, sources), as_span(n, degrees), all, weights,
                                        weights != MPI_UNWEIGHTED, info, reorder != 0, comm_dist_graph);
}

Result Dist_graph_neighbors_count(Communicator& comm, int* indegree, int* outdegree, int* weighted) {
  const Topology* graph = nullptr;
  NEAR_TRY(find(comm, MPI_DIST_GRAPH, graph));
  *indegree = static_cast<int>(graph->sources.size());
  *outdegree = static_cast<int>(graph->destinations.size());
  *weighted = graph->weighted ? 1 : 0;
  return {};
}

Result Dist_graph_neighbors(Communicator& comm, int maxindegree, int* sources, int* sourceweights,
                            int maxoutdegree, int* destinations, int* destweights) {
  const Topology* graph = nullptr;
  NEAR_TRY(find(comm, MPI_DIST_GRAPH, graph));
  auto give = [&](const std::vector<int>& ranks, const std::vector<int>& weights, int capacity,
                  int* ranks_out, int* weights_out) {
    std::size_t count = at_most(capacity, ranks.size());
    std::copy_n(ranks.begin(), count, ranks_out);
    if (graph->weighted && weights_out != MPI_UNWEIGHTED) std::copy_n(weights.begin(), count, weights_out);
  };
  if (maxindegree < 0 || maxoutdegree < 0) return base::fail(MPI_ERR_ARG, "a degree cannot be negative");
  give(graph->sources, graph->source_weights, maxindegree, sources, sourceweights);
  give(graph->destinations, graph->destination_weights, maxoutdegree, destinations, destweights);
  return {};
}

} // namespace near::mpi::impl
