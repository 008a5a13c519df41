// For the programs about neighbourhood collectives: communicators with topologies, the neighbours of a
// process as returned by the inquiry functions, and the reference: an exchange of blocks by plain messages.
#pragma once

#include "check.h"

enum { most = 40 }; // neighbours

struct neighbours {
  int in, out, sources[most], destinations[most], receive_tags[most], send_tags[most];
};

/// One block for each neighbour, described for all forms of the calls.
struct side {
  char* at;
  int n, counts[most], displacements[most]; // in elements
  MPI_Aint places[most];                    // in bytes
  MPI_Count large_counts[most];
  MPI_Aint large_displacements[most];
  MPI_Datatype types[most];
};

static inline void find_grid_neighbours(MPI_Comm comm, struct neighbours* found) {
  int dimensions;
  OK(MPI_Cartdim_get(comm, &dimensions));
  found->in = found->out = 2 * dimensions;
  for (int d = 0; d < dimensions; ++d) {
    int below, above;
    OK(MPI_Cart_shift(comm, d, 1, &below, &above));
    found->sources[2 * d] = found->destinations[2 * d] = below;
    found->sources[2 * d + 1] = found->destinations[2 * d + 1] = above;
    // Each direction has a tag: a message that is sent down arrives from above.
    found->send_tags[2 * d] = found->receive_tags[2 * d + 1] = 10 + 2 * d;
    found->send_tags[2 * d + 1] = found->receive_tags[2 * d] = 11 + 2 * d;
  }
}

static inline void find_neighbours(MPI_Comm comm, struct neighbours* found) {
  int kind, rank, weighted;
  OK(MPI_Topo_test(comm, &kind));
  if (kind == MPI_CART) {
    find_grid_neighbours(comm, found);
    return;
  }
  OK(MPI_Comm_rank(comm, &rank));
  if (kind == MPI_GRAPH) {
    OK(MPI_Graph_neighbors_count(comm, rank, &found->in));
    found->out = found->in;
    CHECK(found->in <= most);
    OK(MPI_Graph_neighbors(comm, rank, most, found->sources));
    OK(MPI_Graph_neighbors(comm, rank, most, found->destinations));
  } else {
    OK(MPI_Dist_graph_neighbors_count(comm, &found->in, &found->out, &weighted));
    CHECK(found->in <= most && found->out <= most);
    int in_weights[most], out_weights[most];
    OK(MPI_Dist_graph_neighbors(comm, found->in, found->sources, in_weights, found->out, found->destinations,
                                out_weights));
  }
  for (int i = 0; i < most; ++i) found->send_tags[i] = found->receive_tags[i] = 9;
}

/// Exchanges blocks by plain messages, one for each edge, in the order of both lists.
static inline void exchange_plainly(MPI_Comm comm, const struct neighbours* with, const struct side* out,
                                    const struct side* in) {
  MPI_Request requests[2 * most];
  int n = 0;
  for (int i = 0; i < with->in; ++i)
    OK(MPI_Irecv(in->at + in->places[i], in->counts[i], in->types[i], with->sources[i], with->receive_tags[i],
                 comm, &requests[n++]));
  for (int i = 0; i < with->out; ++i)
    OK(MPI_Isend(out->at + out->places[i], out->counts[i], out->types[i], with->destinations[i],
                 with->send_tags[i], comm, &requests[n++]));
  OK(MPI_Waitall(n, requests, MPI_STATUSES_IGNORE));
}

/// A graph with several edges between two processes and from a process to itself.
static inline MPI_Comm make_adjacent_graph(void) {
  int rank, size;
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  int right = (rank + 1) % size, left = (rank + size - 1) % size, far = (rank + size / 2) % size,
      near = (rank + size - size / 2) % size;
  int to[] = {right, rank, left, right, far, right}, from[] = {near, left, left, rank, right, left};
  int weights[] = {5, 4, 3, 2, 1, 0};
  MPI_Comm made;
  OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 6, from, weights, 6, to, weights, MPI_INFO_NULL, 0,
                                    &made));
  return made;
}

/// Process 0 gives all edges: from each process to the following ones, i times to the i-th. The last process
/// has only sources.
static inline MPI_Comm make_descending_graph(void) {
  int rank, size, n = 0, sources[3 * most], degrees[3 * most], destinations[3 * most], weights[3 * most];
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  for (int from = 0; rank == 0 && from < size; ++from)
    for (int i = 1; i <= 3 && from + i < size; ++i)
      for (int times = 0; times < i; ++times, ++n) {
        sources[n] = from;
        degrees[n] = 1;
        weights[n] = 10 - i;
        destinations[n] = from + i;
      }
  MPI_Comm made;
  OK(MPI_Dist_graph_create(MPI_COMM_WORLD, n, sources, degrees, destinations, weights, MPI_INFO_NULL, 0,
                           &made));
  return made;
}

/// Every process is a neighbour of process 0, `times` times; with `selves`, also of itself.
static inline MPI_Comm make_star(int times, int selves) {
  int size, index[most], edges[8 * most], n = 0;
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  for (int node = 0; node < size; ++node) {
    if (selves) edges[n++] = node;
    for (int t = 0; t < times; ++t)
      if (node > 0)
        edges[n++] = 0;
      else
        for (int other = 1; other < size; ++other) edges[n++] = other;
    index[node] = n;
  }
  MPI_Comm made;
  OK(MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &made));
  return made;
}

static inline MPI_Comm make_grid(int dimensions, const int* wanted, const int* periods) {
  int size, dims[3];
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  for (int d = 0; d < dimensions; ++d) dims[d] = wanted[d];
  OK(MPI_Dims_create(size, dimensions, dims));
  MPI_Comm made;
  OK(MPI_Cart_create(MPI_COMM_WORLD, dimensions, dims, periods, 0, &made));
  return made;
}

enum { topologies = 14 };

/// Topology number `which`; MPI_COMM_NULL on processes that are not in it.
static inline MPI_Comm make_topology(int which) {
  static const int free_dims[3] = {0, 0, 0}, flat[3] = {0, 1, 1}, all[3] = {1, 1, 1}, none[3] = {0, 0, 0},
                   first[3] = {1, 0, 0}, outer[3] = {1, 0, 1}, kept[2] = {0, 1};
  MPI_Comm parent, made;
  switch (which) {
  case 0: return make_grid(1, free_dims, all);
  case 1: return make_grid(1, free_dims, none);
  case 2: return make_grid(2, free_dims, all);
  case 3: return make_grid(2, free_dims, first);
  case 4: return make_grid(3, free_dims, all);
  case 5: return make_grid(3, free_dims, outer);
  case 6: return make_grid(3, flat, all); // two dimensions have extent 1
  case 7: OK(MPI_Cart_create(MPI_COMM_WORLD, 0, NULL, NULL, 0, &made)); return made;
  case 8: return make_star(1, 0);
  case 9: return make_star(3, 1);
  case 10: return make_adjacent_graph();
  case 11: return make_descending_graph();
  case 12:
    parent = make_grid(2, free_dims, all);
    OK(MPI_Cart_sub(parent, kept, &made));
    break;
  default:
    parent = make_adjacent_graph();
    OK(MPI_Comm_dup(parent, &made));
    break;
  }
  OK(MPI_Comm_free(&parent));
  return made;
}
