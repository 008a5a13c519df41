// A breadth-first search of a Kronecker graph, in which few vertices have many edges. The vertices are assigned to the
// ranks round-robin. In each level a rank visits the neighbours of its newest vertices; those that others own travel in
// batches by MPI_Isend. A rank finds batches by MPI_Iprobe, while it visits and while it waits. An empty batch from
// every other rank ends the level, and MPI_Allreduce says whether there is another one. (The levels of bench/polling.c
// end by MPI_Ibarrier.) Source: the graph and the simple search of the Graph500 benchmark.
//
// Each rank compares the distances of its vertices with those of a search of the whole graph. Alone, it visits the
// vertices that have arrived last, level by level.
#include "program.h"

enum { scale = 13, vertices = 1 << scale, edges = 8 * vertices, batch = 64, room = 32, unknown = -1 };

struct graph {
  int *end, *neighbour; // the neighbours of vertex i begin at end[i - 1] and end at end[i]
};

struct search {
  struct world world;
  struct graph graph; // the whole one, for the check
  int *distance, *expected;
  int *queue, reached, level; // this rank's vertices, in the order in which they were reached
  int *arrived, arrivals;     // the vertices that others have sent, in all levels
  int *arrivals_at, levels;   // the end of each level
  int ended;                  // ranks whose last batch of the level has arrived
  int (*filling)[batch], *filled;
  int outgoing[room][batch], next; // a ring
  MPI_Request departures[room];
};

// ---- the graph ----

/// Permutes the numbers of the vertices, so that those with many edges, whose numbers are small or have few bits, are
/// spread over all ranks.
static int scatter(int vertex) {
  vertex ^= vertex >> scale / 2;
  vertex = vertex * 0x9e5 % vertices; // an odd factor: the vertices only change places
  return vertex ^ vertex >> scale / 2;
}

static void find_ends(int edge, int ends[2]) {
  ends[0] = ends[1] = 0;
  for (int bit = 0; bit < scale; ++bit) {
    uint64_t number = random_number((uint64_t)edge * scale + (uint64_t)bit) % 100;
    ends[0] = 2 * ends[0] + (number >= 57 + 19);
    ends[1] = 2 * ends[1] + (number >= 57 && (number < 57 + 19 || number >= 57 + 19 + 19));
  }
  ends[0] = scatter(ends[0]);
  ends[1] = scatter(ends[1]);
}

static struct graph make_graph(void) {
  struct graph graph = {allocate(vertices, sizeof(int)), allocate((size_t)2 * edges, sizeof(int))};
  int ends[2], begin = 0;
  for (int edge = 0; edge < edges; ++edge) {
    find_ends(edge, ends);
    ++graph.end[ends[0]];
    ++graph.end[ends[1]];
  }
  for (int vertex = 0; vertex < vertices; ++vertex) {
    int degree = graph.end[vertex];
    graph.end[vertex] = begin;
    begin += degree;
  }
  for (int edge = 0; edge < edges; ++edge) {
    find_ends(edge, ends);
    graph.neighbour[graph.end[ends[0]]++] = ends[1];
    graph.neighbour[graph.end[ends[1]]++] = ends[0];
  }
  return graph;
}

static void search_whole_graph(const struct graph* graph, int* distance, int* queue) {
  int reached = 0;
  for (int vertex = 0; vertex < vertices; ++vertex) distance[vertex] = unknown;
  distance[scatter(0)] = 0;
  queue[reached++] = scatter(0);
  for (int begin = 0; begin < reached; ++begin) {
    int vertex = queue[begin];
    for (int at = vertex ? graph->end[vertex - 1] : 0; at < graph->end[vertex]; ++at) {
      int next = graph->neighbour[at];
      if (distance[next] != unknown) continue;
      distance[next] = distance[vertex] + 1;
      queue[reached++] = next;
    }
  }
}

// ---- the search ----

static int owner_of(const struct search* search, int vertex) { return vertex % search->world.size; }

static void visit(struct search* search, int vertex, int distance) {
  if (search->distance[vertex] != unknown) return;
  search->distance[vertex] = distance;
  search->queue[search->reached++] = vertex;
}

static void visit_arrived(struct search* search, int begin, int end) {
  for (int at = begin; at < end; ++at) visit(search, search->arrived[at], search->level + 1);
}

/// Takes a batch, if one has arrived.
static void receive_batch(struct search* search) {
  int there, count, begin = search->arrivals;
  MPI_Status status;
  MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &there, &status);
  if (!there) return;
  MPI_Get_count(&status, MPI_INT, &count);
  MPI_Recv(search->arrived + begin, count, MPI_INT, status.MPI_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (count == 0) ++search->ended;
  search->arrivals += count;
  visit_arrived(search, begin, search->arrivals);
}

/// Sends what there is for `rank`, which may be nothing.
static void send_batch(struct search* search, int rank) {
  int slot = search->next, count = search->filled[rank], departed;
  search->next = (slot + 1) % room;
  for (;;) {
    MPI_Test(&search->departures[slot], &departed, MPI_STATUS_IGNORE);
    if (departed) break;
    receive_batch(search);
  }
  memcpy(search->outgoing[slot], search->filling[rank], (size_t)count * sizeof(int));
  MPI_Isend(search->outgoing[slot], count, MPI_INT, rank, 0, MPI_COMM_WORLD, &search->departures[slot]);
}

static void visit_neighbours(struct search* search, int vertex, bool alone) {
  const struct graph* graph = &search->graph;
  for (int at = vertex ? graph->end[vertex - 1] : 0; at < graph->end[vertex]; ++at) {
    int next = graph->neighbour[at], owner = owner_of(search, next);
    if (owner == search->world.rank) {
      visit(search, next, search->level + 1);
      continue;
    }
    search->filling[owner][search->filled[owner]++] = next;
    if (search->filled[owner] < batch) continue;
    if (!alone) {
      send_batch(search, owner);
      receive_batch(search);
    }
    search->filled[owner] = 0;
  }
}

static void end_level(struct search* search) {
  const struct world* world = &search->world;
  for (int i = 1; i < world->size; ++i) {
    int rank = (world->rank + i) % world->size;
    if (search->filled[rank] > 0) send_batch(search, rank);
    search->filled[rank] = 0;
    send_batch(search, rank);
  }
  while (search->ended < world->size - 1) receive_batch(search);
  search->ended = 0;
  search->arrivals_at[search->level] = search->arrivals;
}

/// The same as the end of this level in the last complete run, without calls of MPI.
static void end_level_alone(struct search* search) {
  memset(search->filled, 0, (size_t)search->world.size * sizeof(int));
  visit_arrived(search, search->level ? search->arrivals_at[search->level - 1] : 0,
                search->arrivals_at[search->level]);
}

/// Has any rank reached a vertex in this level?
static bool is_there_more(struct search* search, int before, bool alone) {
  if (alone) return search->level + 1 < search->levels;
  int mine = search->reached - before, all;
  MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  search->levels = search->level + 1;
  return all > 0;
}

static void run(void* state, bool alone) {
  struct search* search = state;
  int begin = 0, end;
  for (int vertex = 0; vertex < vertices; ++vertex) search->distance[vertex] = unknown;
  search->reached = search->level = 0;
  if (!alone) search->arrivals = 0;
  if (owner_of(search, scatter(0)) == search->world.rank) visit(search, scatter(0), 0);
  for (bool more = true; more; ++search->level, begin = end) {
    end = search->reached;
    for (int at = begin; at < end; ++at) visit_neighbours(search, search->queue[at], alone);
    if (alone)
      end_level_alone(search);
    else
      end_level(search);
    more = is_there_more(search, end, alone);
  }
  if (!alone) MPI_Waitall(room, search->departures, MPI_STATUSES_IGNORE);
}

static bool right(void* state) {
  const struct search* search = state;
  bool equal = true;
  for (int vertex = search->world.rank; vertex < vertices; vertex += search->world.size)
    equal &= search->distance[vertex] == search->expected[vertex];
  return equal;
}

static int* new_numbers(int count) { return allocate((size_t)count, sizeof(int)); }

static void set_up(struct search* search, struct world world) {
  search->world = world;
  search->graph = make_graph();
  search->distance = new_numbers(vertices);
  search->expected = new_numbers(vertices);
  search->queue = new_numbers(vertices);
  search->arrived = new_numbers(2 * edges);
  search->arrivals_at = new_numbers(vertices);
  search->filling = allocate((size_t)world.size, sizeof *search->filling);
  search->filled = new_numbers(world.size);
  for (int i = 0; i < room; ++i) search->departures[i] = MPI_REQUEST_NULL;
  search_whole_graph(&search->graph, search->expected, search->queue);
}

int main(int argc, char** argv) {
  static struct search search;
  struct world world = start_mpi(&argc, &argv);
  struct arguments arguments = read_arguments(argc, argv);
  struct program program = {"bfs", run, right};
  set_up(&search, world);
  measure_program(&program, &search, world, arguments.budget);
  MPI_Finalize();
  return 0;
}
