// Graph and distributed graph topologies: every process gets back the edges that were specified.
#include "check.h"

static int rank, size;

static void star(void) {
  // All processes are neighbours of process 0.
  int index[64], edges[128], count = 0, nodes, nedges, n, found[64], kind;
  for (int r = 1; r < size; ++r) edges[count++] = r;
  index[0] = count;
  for (int r = 1; r < size; ++r) {
    edges[count++] = 0;
    index[r] = count;
  }
  MPI_Comm graph;
  OK(MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &graph));
  OK(MPI_Topo_test(graph, &kind));
  CHECK(kind == MPI_GRAPH);
  OK(MPI_Graphdims_get(graph, &nodes, &nedges));
  CHECK(nodes == size && nedges == count);
  for (int r = 0; r < size; ++r) {
    OK(MPI_Graph_neighbors_count(graph, r, &n));
    CHECK(n == (r == 0 ? size - 1 : 1));
    OK(MPI_Graph_neighbors(graph, r, n, found));
    for (int i = 0; i < n; ++i) CHECK(found[i] == (r == 0 ? i + 1 : 0));
  }
  int index_back[64], edges_back[128];
  OK(MPI_Graph_get(graph, nodes, nedges, index_back, edges_back));
  for (int i = 0; i < nodes; ++i) CHECK(index_back[i] == index[i]);
  for (int i = 0; i < nedges; ++i) CHECK(edges_back[i] == edges[i]);
  int sum = 0;
  OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, graph));
  CHECK(sum == size * (size - 1) / 2);
  OK(MPI_Comm_free(&graph));
}

static void ring(int weighted) {
  int left = (rank + size - 1) % size, right = (rank + 1) % size, weight = rank * 10, in_weight = left * 10;
  int in, out, is_weighted, source = -1, destination = -1, sw = -1, dw = -1;
  MPI_Comm graph[2];
  OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &left, weighted ? &in_weight : MPI_UNWEIGHTED, 1,
                                    &right, weighted ? &weight : MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                    &graph[0]));
  // The same ring; each edge is given by the right neighbour of its destination.
  int from = (rank + size - 2) % size, to = left, degree = 1, edge_weight = from * 10;
  OK(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &from, &degree, &to, weighted ? &edge_weight : MPI_UNWEIGHTED,
                           MPI_INFO_NULL, 0, &graph[1]));
  for (int i = 0; i < 2; ++i) {
    OK(MPI_Dist_graph_neighbors_count(graph[i], &in, &out, &is_weighted));
    CHECK(in == 1 && out == 1 && !is_weighted == !weighted);
    OK(MPI_Dist_graph_neighbors(graph[i], 1, &source, weighted ? &sw : MPI_UNWEIGHTED, 1, &destination,
                                weighted ? &dw : MPI_UNWEIGHTED));
    CHECK(source == left && destination == right);
    if (weighted) CHECK(sw == left * 10 && dw == rank * 10);
    OK(MPI_Comm_free(&graph[i]));
  }
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  star();
  ring(0);
  ring(1);
  // Process 0 gives all edges of a complete graph; the other processes pass MPI_WEIGHTS_EMPTY.
  int sources[64], degrees[64], destinations[64 * 64], weights[64 * 64], count = 0;
  for (int s = 0; rank == 0 && s < size; ++s) {
    sources[s] = s;
    degrees[s] = size;
    for (int d = 0; d < size; ++d, ++count) {
      destinations[count] = d;
      weights[count] = s * 100 + d;
    }
  }
  MPI_Comm graph;
  OK(MPI_Dist_graph_create(MPI_COMM_WORLD, rank == 0 ? size : 0, sources, degrees, destinations,
                           rank == 0 ? weights : MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, 1, &graph));
  int in, out, weighted, here, from[64], to[64], in_weights[64], out_weights[64];
  OK(MPI_Comm_rank(graph, &here)); // on several machines, the ranks are in another order
  OK(MPI_Dist_graph_neighbors_count(graph, &in, &out, &weighted));
  CHECK(in == size && out == size && weighted);
  OK(MPI_Dist_graph_neighbors(graph, in, from, in_weights, out, to, out_weights));
  for (int i = 0; i < size; ++i) {
    CHECK(in_weights[i] == from[i] * 100 + here);
    CHECK(out_weights[i] == here * 100 + to[i]);
  }
  OK(MPI_Comm_free(&graph));
  int outside = size, one = 1, zero = 0;
  FAILS(MPI_ERR_RANK, MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &outside, &one, &zero,
                                            rank < 0 ? &one : MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph));
  OK(MPI_Finalize());
  return 0;
}
