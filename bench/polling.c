// Programs that wait by polling: they call MPI_Test and its like again and again, and never a call that
// waits.
//
// traversal   microseconds of a breadth-first search of a random graph whose vertices are assigned to the
//             ranks round-robin. Neighbours travel in messages of up to 32, by MPI_Issend; each rank takes
//             them with MPI_Testany from persistent receives from any source. A level ends by nonblocking
//             consensus: a rank whose sends are matched enters MPI_Ibarrier, and goes on receiving until
//             MPI_Test says that all have. An MPI_Iallreduce, tested as well, says whether there is another
//             level. Source: Hoefler, Siebert, Lumsdaine, "Scalable communication protocols for dynamic
//             sparse data exchange", PPoPP 2010.
// token       microseconds of one hop of a message that goes round all ranks, each of which waits for it with
//             MPI_Iprobe.
//
// The distances of every traversal are compared with those that each rank has found by itself.
#include "mpi_measure.h"

enum { vertices = 1 << 13, degree = 8, in_message = 32, receives = 8, unknown = vertices };

struct message {
  int count, vertex[in_message], distance[in_message];
};

struct search {
  struct world world;
  int *distance, *expected; // of every vertex; only a rank's own are kept up to date
  int *list, begin, end;    // vertices to expand, a ring: each is in it once at most
  bool* listed;
  struct message in[receives], *filling; // one that is being filled for each rank
  MPI_Request arrivals[receives];
  struct message* out; // under way
  MPI_Request* departures;
  int departing, room;
  long sent, received;
};

/// The other end of an edge.
static int neighbour(int vertex, int edge) {
  return (int)(random_number((uint64_t)vertex * degree + (uint64_t)edge) % vertices);
}

static void search_alone(int* distance, int* list) {
  int begin = 0, end = 0;
  for (int vertex = 0; vertex < vertices; ++vertex) distance[vertex] = unknown;
  distance[0] = 0;
  list[end++] = 0;
  while (begin < end) {
    int vertex = list[begin++];
    for (int edge = 0; edge < degree; ++edge) {
      int next = neighbour(vertex, edge);
      if (distance[next] != unknown) continue;
      distance[next] = distance[vertex] + 1;
      list[end++] = next;
    }
  }
}

/// A shorter way to a vertex of ours: it is to be expanded, once more if it has been.
static void reach(struct search* search, int vertex, int distance) {
  if (distance >= search->distance[vertex]) return;
  search->distance[vertex] = distance;
  if (search->listed[vertex]) return;
  search->listed[vertex] = true;
  search->list[search->end++ % vertices] = vertex;
}

/// Takes what has arrived; returns whether there was anything.
static bool receive(struct search* search) {
  int index, there;
  MPI_Testany(receives, search->arrivals, &index, &there, MPI_STATUS_IGNORE);
  if (!there) return false;
  const struct message* message = &search->in[index];
  for (int i = 0; i < message->count; ++i) reach(search, message->vertex[i], message->distance[i]);
  ++search->received;
  MPI_Start(&search->arrivals[index]);
  return true;
}

static void send(struct search* search, int rank) {
  struct message *filled = &search->filling[rank], *message = &search->out[search->departing];
  if (filled->count == 0) return;
  *message = *filled;
  filled->count = 0;
  MPI_Issend(message, sizeof *message, MPI_BYTE, rank, 0, MPI_COMM_WORLD,
             &search->departures[search->departing++]);
  ++search->sent;
}

static bool departed(struct search* search) {
  int all;
  MPI_Testall(search->departing, search->departures, &all, MPI_STATUSES_IGNORE);
  if (all) search->departing = 0;
  return all;
}

static void expand(struct search* search, int vertex) {
  search->listed[vertex] = false;
  for (int edge = 0; edge < degree; ++edge) {
    int next = neighbour(vertex, edge), owner = next % search->world.size;
    if (owner == search->world.rank) {
      reach(search, next, search->distance[vertex] + 1);
      continue;
    }
    struct message* filling = &search->filling[owner];
    filling->vertex[filling->count] = next;
    filling->distance[filling->count++] = search->distance[vertex] + 1;
    if (filling->count < in_message) continue;
    while (search->departing == search->room && !departed(search)) receive(search);
    send(search, owner);
  }
}

/// Expands what is known, and ends when all messages of this round are received everywhere.
static void run_level(struct search* search) {
  MPI_Request barrier = MPI_REQUEST_NULL;
  for (int last = search->end; search->begin != last;)
    expand(search, search->list[search->begin++ % vertices]);
  for (int rank = 0; rank < search->world.size; ++rank) {
    while (search->departing == search->room && !departed(search)) receive(search);
    send(search, rank);
  }
  for (int over = 0; !over;) {
    while (receive(search)) {}
    if (barrier != MPI_REQUEST_NULL)
      MPI_Test(&barrier, &over, MPI_STATUS_IGNORE);
    else if (departed(search))
      MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
  }
}

/// Nobody has anything to expand, and no message is under way.
static bool all_done(struct search* search) {
  long mine[2] = {search->end - search->begin, search->sent - search->received}, sum[2];
  MPI_Request request;
  MPI_Iallreduce(mine, sum, 2, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, &request);
  for (int there = 0; !there;) MPI_Test(&request, &there, MPI_STATUS_IGNORE);
  return sum[0] == 0 && sum[1] == 0;
}

static void traversals(void* context, long count) {
  struct search* search = context;
  const struct world* world = &search->world;
  for (long i = 0; i < count; ++i) {
    for (int vertex = 0; vertex < vertices; ++vertex) search->distance[vertex] = unknown;
    search->begin = search->end = 0;
    if (world->rank == 0) reach(search, 0, 0);
    do run_level(search);
    while (!all_done(search));
    bool right = true;
    for (int vertex = world->rank; vertex < vertices; vertex += world->size)
      right &= search->distance[vertex] == search->expected[vertex];
    require_data(right, "traversal", sizeof(struct message));
  }
}

static void tokens(void* context, long count) {
  const struct world* world = context;
  int left = (world->rank + world->size - 1) % world->size, right = (world->rank + 1) % world->size;
  for (long i = 0; i < count; ++i) {
    long token = i;
    if (world->rank == 0) MPI_Send(&token, 1, MPI_LONG, right, 1, MPI_COMM_WORLD);
    for (int there = 0; !there;) MPI_Iprobe(left, 1, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
    MPI_Recv(&token, 1, MPI_LONG, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    require_data(token == i, "token", sizeof token);
    if (world->rank != 0) MPI_Send(&token, 1, MPI_LONG, right, 1, MPI_COMM_WORLD);
  }
}

int main(int argc, char** argv) {
  static struct search search;
  struct world world = start_mpi(&argc, &argv);
  require_ranks(world, 0);
  struct arguments arguments = read_arguments(argc, argv);
  struct driver driver = driver_of(world, arguments.budget);
  search.world = world;
  search.room = 64;
  search.distance = allocate(vertices, sizeof(int));
  search.expected = allocate(vertices, sizeof(int));
  search.list = allocate(vertices, sizeof(int));
  search.listed = allocate(vertices, sizeof(bool));
  search.filling = allocate((size_t)world.size, sizeof(struct message));
  search.out = allocate((size_t)search.room, sizeof(struct message));
  search.departures = allocate((size_t)search.room, sizeof(MPI_Request));
  search_alone(search.expected, search.list);
  for (int i = 0; i < receives; ++i) {
    MPI_Recv_init(&search.in[i], sizeof(struct message), MPI_BYTE, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD,
                  &search.arrivals[i]);
    MPI_Start(&search.arrivals[i]);
  }
  double traversal = seconds_each(traversals, &search, &driver);
  if (world.rank == 0) print_value("traversal", "-", 0, traversal * 1e6);
  double token = seconds_each(tokens, &world, &driver) / world.size;
  if (world.rank == 0) print_value("token", "-", 0, token * 1e6);
  for (int i = 0; i < receives; ++i) {
    MPI_Cancel(&search.arrivals[i]);
    MPI_Wait(&search.arrivals[i], MPI_STATUS_IGNORE);
    MPI_Request_free(&search.arrivals[i]);
  }
  MPI_Finalize();
  return 0;
}
