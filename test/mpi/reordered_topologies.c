// Topologies whose ranks may be reordered: whoever has a rank knows its coordinates or neighbours, and exchanges data with them.
// Not more of the edges lead to other machines than in the old order. `reordered_topologies shuffled`: only among shuffled processes.
// `reordered_topologies disagree`: on two machines, in turns.
#include "check.h"

#include <string.h>

static int world_rank;

static int modulo(int value, int size) { return (value % size + size) % size; }

/// What a rank tells about itself: its rank in a topology, and its coordinates in a grid.
struct Self {
  int rank, coords[3];
};

/// The number of this rank's neighbours on other machines, summed up over all ranks. `neighbours`: ranks of `comm`.
static int between_machines(MPI_Comm comm, int count, const int* neighbours) {
  char name[MPI_MAX_PROCESSOR_NAME] = {0};
  int length, size, sum = 0;
  OK(MPI_Get_processor_name(name, &length));
  OK(MPI_Comm_size(comm, &size));
  char* names = malloc((size_t)size * sizeof name);
  OK(MPI_Allgather(name, sizeof name, MPI_CHAR, names, sizeof name, MPI_CHAR, comm));
  for (int i = 0; i < count; ++i)
    if (neighbours[i] != MPI_PROC_NULL)
      sum += memcmp(names + (size_t)neighbours[i] * sizeof name, name, sizeof name) != 0;
  free(names);
  OK(MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, comm));
  return sum;
}

/// All members of `whole` are in `part`, each once.
static void check_members(MPI_Comm whole, MPI_Comm part) {
  int result;
  OK(MPI_Comm_compare(whole, part, &result));
  CHECK(result == MPI_CONGRUENT || result == MPI_SIMILAR);
}

static void neighbours_in_grid(MPI_Comm grid, int ndims, int* neighbours) {
  for (int i = 0; i < ndims; ++i) OK(MPI_Cart_shift(grid, i, 1, &neighbours[2 * i], &neighbours[2 * i + 1]));
}

static void grid_of(MPI_Comm parent, int ndims, int periodic) {
  int size, dims[3] = {0, 0, 0}, periods[3] = {periodic, 0, periodic}, mapped, old_rank, kept[6],
            neighbours[6];
  OK(MPI_Comm_size(parent, &size));
  OK(MPI_Comm_rank(parent, &old_rank));
  OK(MPI_Dims_create(size, ndims, dims));
  MPI_Comm plain, grid;
  OK(MPI_Cart_create(parent, ndims, dims, periods, 0, &plain));
  OK(MPI_Cart_create(parent, ndims, dims, periods, 1, &grid));
  check_members(parent, grid);
  struct Self own, theirs[6];
  OK(MPI_Comm_rank(plain, &own.rank));
  CHECK(own.rank == old_rank);
  OK(MPI_Cart_map(parent, ndims, dims, periods, &mapped));
  OK(MPI_Comm_rank(grid, &own.rank));
  CHECK(mapped == own.rank);
  int got_dims[3], got_periods[3];
  OK(MPI_Cart_get(grid, ndims, got_dims, got_periods, own.coords));
  for (int r = 0; r < size; ++r) {
    int coords[3], back;
    OK(MPI_Cart_coords(grid, r, ndims, coords));
    OK(MPI_Cart_rank(grid, coords, &back));
    CHECK(back == r);
    if (r == own.rank) CHECK(memcmp(coords, own.coords, (size_t)ndims * sizeof(int)) == 0);
  }
  for (int i = 0; i < 6; ++i) theirs[i].rank = -1;
  OK(MPI_Neighbor_allgather(&own, sizeof own, MPI_BYTE, theirs, sizeof own, MPI_BYTE, grid));
  neighbours_in_grid(plain, ndims, kept);
  neighbours_in_grid(grid, ndims, neighbours);
  for (int n = 0; n < 2 * ndims; ++n) {
    const int along = n / 2, step = n % 2 ? 1 : -1, to = own.coords[along] + step;
    const int is_outside = !periods[along] && (to < 0 || to >= dims[along]);
    CHECK((neighbours[n] == MPI_PROC_NULL) == is_outside);
    CHECK(theirs[n].rank == (is_outside ? -1 : neighbours[n]));
    for (int i = 0; i < ndims && !is_outside; ++i)
      CHECK(theirs[n].coords[i] == (i == along ? modulo(to, dims[i]) : own.coords[i]));
  }
  CHECK(between_machines(grid, 2 * ndims, neighbours) <= between_machines(plain, 2 * ndims, kept));
  // A row or column of the grid, and a copy.
  int remain[3] = {1, 0, 0}, along;
  MPI_Comm line, copy;
  OK(MPI_Cart_sub(grid, remain, &line));
  OK(MPI_Comm_rank(line, &along));
  CHECK(along == own.coords[0]);
  OK(MPI_Comm_dup(grid, &copy));
  int same[6];
  neighbours_in_grid(copy, ndims, same);
  CHECK(memcmp(same, neighbours, 2 * (size_t)ndims * sizeof(int)) == 0);
  OK(MPI_Comm_free(&copy));
  OK(MPI_Comm_free(&line));
  OK(MPI_Comm_free(&grid));
  OK(MPI_Comm_free(&plain));
}

/// A grid for some of the processes.
static void smaller_grid(MPI_Comm parent) {
  int size, cells, sum = 0, none = 0, mapped, own = MPI_UNDEFINED;
  OK(MPI_Comm_size(parent, &size));
  cells = (size + 1) / 2;
  MPI_Comm line;
  OK(MPI_Cart_create(parent, 1, &cells, &none, 1, &line));
  OK(MPI_Cart_map(parent, 1, &cells, &none, &mapped));
  const int is_member = line != MPI_COMM_NULL;
  OK(MPI_Allreduce(&is_member, &sum, 1, MPI_INT, MPI_SUM, parent));
  CHECK(sum == cells);
  if (is_member) {
    OK(MPI_Comm_size(line, &sum));
    CHECK(sum == cells);
    OK(MPI_Comm_rank(line, &own));
    OK(MPI_Barrier(line));
    OK(MPI_Comm_free(&line));
  }
  CHECK(mapped == own);
}

// A graph: each vertex has edges to those at these distances.
enum { distances = 2, most = 64 };
static int edge_from(int vertex, int i, int size) { return modulo(vertex + (i == 0 ? 1 : 5), size); }
static int edge_into(int vertex, int i, int size) { return modulo(vertex - (i == 0 ? 1 : 5), size); }
static int weight_of(int from, int to) { return 1 + (7 * from + to) % 5; }

static void graph(MPI_Comm parent) {
  int size, own, mapped, index[most], edges[2 * distances * most], count = 0, found[2 * distances],
                                                                   kept[2 * distances];
  OK(MPI_Comm_size(parent, &size));
  for (int v = 0; v < size; ++v) {
    for (int i = 0; i < distances; ++i) {
      edges[count++] = edge_from(v, i, size);
      edges[count++] = edge_into(v, i, size);
    }
    index[v] = count;
  }
  MPI_Comm plain, made;
  OK(MPI_Graph_create(parent, size, index, edges, 0, &plain));
  OK(MPI_Graph_create(parent, size, index, edges, 1, &made));
  check_members(parent, made);
  OK(MPI_Comm_rank(made, &own));
  OK(MPI_Graph_map(parent, size, index, edges, &mapped));
  CHECK(mapped == own);
  for (int v = 0; v < size; ++v) {
    OK(MPI_Graph_neighbors(made, v, 2 * distances, found));
    CHECK(memcmp(found, edges + 2 * distances * v, sizeof found) == 0);
  }
  int theirs[2 * distances];
  OK(MPI_Neighbor_allgather(&own, 1, MPI_INT, theirs, 1, MPI_INT, made));
  OK(MPI_Graph_neighbors(made, own, 2 * distances, found));
  CHECK(memcmp(found, theirs, sizeof found) == 0);
  int old_rank;
  OK(MPI_Comm_rank(plain, &old_rank));
  OK(MPI_Graph_neighbors(plain, old_rank, 2 * distances, kept));
  CHECK(between_machines(made, 2 * distances, found) <= between_machines(plain, 2 * distances, kept));
  OK(MPI_Comm_free(&made));
  OK(MPI_Comm_free(&plain));
}

static int is_below(const void* one, const void* other) { return *(const int*)one - *(const int*)other; }

/// Whoever has a rank of `made` knows the edges of that vertex: in the order in which they were given, or in any.
static void check_distributed(MPI_Comm made, int weighted, int ordered) {
  int size, own, in, out, is_weighted;
  OK(MPI_Comm_size(made, &size));
  OK(MPI_Comm_rank(made, &own));
  OK(MPI_Dist_graph_neighbors_count(made, &in, &out, &is_weighted));
  CHECK(in == distances && out == distances && !is_weighted == !weighted);
  int from[distances], to[distances], from_weights[distances], to_weights[distances], theirs[distances];
  OK(MPI_Dist_graph_neighbors(made, distances, from, from_weights, distances, to, to_weights));
  for (int i = 0; i < distances && weighted; ++i)
    CHECK(from_weights[i] == weight_of(from[i], own) && to_weights[i] == weight_of(own, to[i]));
  OK(MPI_Neighbor_allgather(&own, 1, MPI_INT, theirs, 1, MPI_INT, made));
  CHECK(memcmp(theirs, from, sizeof from) == 0);
  int expected_from[distances], expected_to[distances];
  for (int i = 0; i < distances; ++i) {
    expected_from[i] = edge_into(own, i, size);
    expected_to[i] = edge_from(own, i, size);
  }
  if (!ordered) {
    qsort(from, distances, sizeof(int), is_below);
    qsort(to, distances, sizeof(int), is_below);
    qsort(expected_from, distances, sizeof(int), is_below);
    qsort(expected_to, distances, sizeof(int), is_below);
  }
  CHECK(memcmp(from, expected_from, sizeof from) == 0 && memcmp(to, expected_to, sizeof to) == 0);
}

static void distributed_graph(MPI_Comm parent, int weighted) {
  int size, rank, sources[distances], destinations[distances], in_weights[distances], out_weights[distances];
  OK(MPI_Comm_size(parent, &size));
  OK(MPI_Comm_rank(parent, &rank));
  for (int i = 0; i < distances; ++i) {
    sources[i] = edge_into(rank, i, size);
    destinations[i] = edge_from(rank, i, size);
    in_weights[i] = weight_of(sources[i], rank);
    out_weights[i] = weight_of(rank, destinations[i]);
  }
  MPI_Comm made;
  OK(MPI_Dist_graph_create_adjacent(parent, distances, sources, weighted ? in_weights : MPI_UNWEIGHTED,
                                    distances, destinations, weighted ? out_weights : MPI_UNWEIGHTED,
                                    MPI_INFO_NULL, 1, &made));
  check_members(parent, made);
  check_distributed(made, weighted, 1);
  OK(MPI_Comm_free(&made));

  // Each process gives the edges of the next vertex; hints are taken over.
  int vertex = (rank + 1) % size, degree = distances;
  for (int i = 0; i < distances; ++i) {
    destinations[i] = edge_from(vertex, i, size);
    out_weights[i] = weight_of(vertex, destinations[i]);
  }
  MPI_Info hints;
  OK(MPI_Info_create(&hints));
  OK(MPI_Info_set(hints, "mpi_assert_no_any_tag", "true"));
  OK(MPI_Dist_graph_create(parent, 1, &vertex, &degree, destinations, weighted ? out_weights : MPI_UNWEIGHTED,
                           hints, 1, &made));
  OK(MPI_Info_free(&hints));
  check_members(parent, made);
  check_distributed(made, weighted, 0);
  char value[8];
  int room = sizeof value, is_set;
  OK(MPI_Comm_get_info(made, &hints));
  OK(MPI_Info_get_string(hints, "mpi_assert_no_any_tag", &room, value, &is_set));
  CHECK(is_set && strcmp(value, "true") == 0);
  OK(MPI_Info_free(&hints));
  OK(MPI_Comm_free(&made));
}

/// A graph without edges, and one of which process 0 knows all.
static void unusual_graphs(MPI_Comm parent) {
  int size, rank, in, out, weighted;
  OK(MPI_Comm_size(parent, &size));
  OK(MPI_Comm_rank(parent, &rank));
  MPI_Comm made;
  OK(MPI_Dist_graph_create_adjacent(parent, 0, NULL, MPI_WEIGHTS_EMPTY, 0, NULL, MPI_WEIGHTS_EMPTY,
                                    MPI_INFO_NULL, 1, &made));
  OK(MPI_Dist_graph_neighbors_count(made, &in, &out, &weighted));
  CHECK(in == 0 && out == 0 && weighted);
  OK(MPI_Comm_free(&made));
  int sources[most], degrees[most], destinations[most], weights[most];
  for (int v = 0; v < size; ++v) {
    sources[v] = v;
    degrees[v] = 1;
    destinations[v] = v == size - 1 ? v : v + 1; // with a loop at the last vertex
    weights[v] = 0;
  }
  OK(MPI_Dist_graph_create(parent, rank == 0 ? size : 0, sources, degrees, destinations,
                           rank == 0 ? weights : MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, 1, &made));
  int own, from[2] = {-1, -1}, to = -1, from_weights[2], to_weight;
  OK(MPI_Comm_rank(made, &own));
  OK(MPI_Dist_graph_neighbors_count(made, &in, &out, &weighted));
  CHECK(in == (own > 0) + (own == size - 1) && out == 1 && weighted);
  OK(MPI_Dist_graph_neighbors(made, 2, from, from_weights, 1, &to, &to_weight));
  CHECK(to == (own == size - 1 ? own : own + 1));
  if (own > 0) CHECK(from[0] == own - 1 || from[1] == own - 1);
  OK(MPI_Comm_free(&made));
}

/// The processes of one machine describe a chain, those of the other one two pairs of which each could be on one machine.
static void disagree(void) {
  int chain[] = {1, 3, 5, 6}, chain_edges[] = {1, 0, 2, 1, 3, 2}, pairs[] = {1, 2, 3, 4},
      pairs_edges[] = {2, 3, 0, 1};
  const int is_even = world_rank % 2 == 0;
  MPI_Comm made;
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  FAILS(MPI_ERR_TOPOLOGY, MPI_Graph_create(MPI_COMM_WORLD, 4, is_even ? chain : pairs,
                                           is_even ? chain_edges : pairs_edges, 1, &made));
  CHECK(made == MPI_COMM_NULL);
}

static void all_of(MPI_Comm parent) {
  for (int ndims = 1; ndims <= 3; ++ndims)
    for (int periodic = 0; periodic < 2; ++periodic) grid_of(parent, ndims, periodic);
  smaller_grid(parent);
  graph(parent);
  distributed_graph(parent, 0);
  distributed_graph(parent, 1);
  unusual_graphs(parent);
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &world_rank));
  if (argc > 1 && strcmp(argv[1], "disagree") == 0) {
    disagree();
    OK(MPI_Finalize());
    return 0;
  }
  if (argc == 1) all_of(MPI_COMM_WORLD);
  MPI_Comm shuffled;
  OK(MPI_Comm_split(MPI_COMM_WORLD, 0, 7 * world_rank % 5, &shuffled));
  all_of(shuffled);
  OK(MPI_Comm_free(&shuffled));
  // Without one of them.
  OK(MPI_Comm_split(MPI_COMM_WORLD, world_rank == 1 || argc > 1 ? MPI_UNDEFINED : 0, -world_rank, &shuffled));
  if (shuffled != MPI_COMM_NULL) {
    all_of(shuffled);
    OK(MPI_Comm_free(&shuffled));
  }
  OK(MPI_Finalize());
  return 0;
}
