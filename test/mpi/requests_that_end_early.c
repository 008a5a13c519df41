// Every kind of request is freed while it is active, or completes before its partner has seen it. Operations
// that were started finish, and later ones still match the right partner. Pairs of neighbours exchange many
// more messages than there are credits, packets and slots, so that many have not left when their handles are
// gone.
//
//   requests_that_end_early [kind]     one of the names in main(); all kinds if it is omitted
#include "check.h"

#include <sched.h>
#include <string.h>

static int rank, size, partner; ///< a pair consists of ranks 2k and 2k + 1
static int sends;               ///< this is the rank that sends

enum Ending { freed, completed };

struct Load {
  int times, ints;
};
static const struct Load loads[] = {{300, 1}, {50, 700}, {16, 6000}}; // eager inline, eager, rendezvous

static int* memory;
static int* place(struct Load load, int i) { return memory + (size_t)i * (size_t)load.ints; }
static int value(int i, int j) { return i * 7 + j + 1; }

static void fill(struct Load load) {
  for (int i = 0; i < load.times; ++i)
    for (int j = 0; j < load.ints; ++j) place(load, i)[j] = value(i, j);
}
static void empty(struct Load load) {
  memset(memory, 0, sizeof(int) * (size_t)load.times * (size_t)load.ints);
}
static int is_here(struct Load load, int i) {
  const volatile int* at = place(load, i);
  for (int j = 0; j < load.ints; ++j)
    if (at[j] != value(i, j)) return 0;
  return 1;
}
static void send_all(struct Load load) {
  for (int i = 0; i < load.times; ++i)
    OK(MPI_Send(place(load, i), load.ints, MPI_INT, partner, 5, MPI_COMM_WORLD));
}
static void receive_all(struct Load load) {
  for (int i = 0; i < load.times; ++i) {
    OK(MPI_Recv(place(load, i), load.ints, MPI_INT, partner, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(is_here(load, i));
  }
}
static void make_progress(void) {
  int flag;
  OK(MPI_Iprobe(MPI_ANY_SOURCE, 30000, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
  CHECK(!flag);
  sched_yield(); // ranks may share processors
}
/// Waits for the data of receives whose requests were freed.
static void wait_for_data(struct Load load) {
  for (int i = 0; i < load.times; ++i)
    while (!is_here(load, i)) make_progress();
}
static MPI_Comm barriers; ///< for barriers that are separate from the calls on MPI_COMM_WORLD
static void everybody(void) { OK(MPI_Barrier(barriers)); }

/// Frees the request at once, or waits first and then frees it if it is persistent.
static void end(MPI_Request* request, enum Ending ending) {
  if (ending == completed) OK(MPI_Wait(request, MPI_STATUS_IGNORE));
  if (*request != MPI_REQUEST_NULL) OK(MPI_Request_free(request));
  CHECK(*request == MPI_REQUEST_NULL);
}

// Point-to-point: modes 's'tandard, 'b'uffered, s'y'nchronous, 'r'eady

static void begin_send(char mode, int persistent, const int* data, int ints, MPI_Request* request) {
#define BEGIN(letter, start, init)                                                                           \
  case letter:                                                                                               \
    if (persistent)                                                                                          \
      OK(init(data, ints, MPI_INT, partner, 5, MPI_COMM_WORLD, request));                                    \
    else                                                                                                     \
      OK(start(data, ints, MPI_INT, partner, 5, MPI_COMM_WORLD, request));                                   \
    break
  switch (mode) {
    BEGIN('s', MPI_Isend, MPI_Send_init);
    BEGIN('b', MPI_Ibsend, MPI_Bsend_init);
    BEGIN('y', MPI_Issend, MPI_Ssend_init);
    BEGIN('r', MPI_Irsend, MPI_Rsend_init);
  }
#undef BEGIN
  if (persistent) OK(MPI_Start(request));
}

static void sending(char mode, int persistent, enum Ending ending, struct Load load) {
  MPI_Request* posted = malloc(sizeof *posted * (size_t)load.times);
  char* buffer = NULL;
  if (sends) {
    fill(load);
    if (mode == 'b') {
      size_t bytes = (size_t)load.times * (sizeof(int) * (size_t)load.ints + MPI_BSEND_OVERHEAD);
      buffer = malloc(bytes);
      OK(MPI_Buffer_attach(buffer, (int)bytes));
    }
  } else {
    empty(load);
    if (mode == 'r')
      for (int i = 0; i < load.times; ++i)
        OK(MPI_Irecv(place(load, i), load.ints, MPI_INT, partner, 5, MPI_COMM_WORLD, &posted[i]));
  }
  if (mode == 'r') everybody();
  if (sends)
    for (int i = 0; i < load.times; ++i) {
      MPI_Request request;
      begin_send(mode, persistent, place(load, i), load.ints, &request);
      end(&request, ending);
    }
  if (ending == freed) everybody(); // all requests are freed before any message is received
  if (!sends) {
    if (mode == 'r') {
      OK(MPI_Waitall(load.times, posted, MPI_STATUSES_IGNORE));
      for (int i = 0; i < load.times; ++i) CHECK(is_here(load, i));
    } else {
      receive_all(load);
    }
  }
  if (buffer != NULL) {
    void* old;
    int bytes;
    OK(MPI_Buffer_detach(&old, &bytes));
    CHECK(old == buffer);
    free(buffer);
  }
  free(posted);
  everybody(); // the sender's data has left
}

static void send_requests(enum Ending ending, struct Load load) {
  for (const char* mode = "sbyr"; *mode != 0; ++mode) sending(*mode, 0, ending, load);
}
static void persistent_sends(enum Ending ending, struct Load load) {
  for (const char* mode = "sbyr"; *mode != 0; ++mode) sending(*mode, 1, ending, load);
}

static void receiving(int persistent, enum Ending ending, struct Load load) {
  if (sends) {
    fill(load);
    if (ending == freed) everybody();
    send_all(load);
  } else {
    empty(load);
    for (int i = 0; i < load.times; ++i) {
      MPI_Request request;
      if (persistent) {
        OK(MPI_Recv_init(place(load, i), load.ints, MPI_INT, partner, 5, MPI_COMM_WORLD, &request));
        OK(MPI_Start(&request));
      } else {
        OK(MPI_Irecv(place(load, i), load.ints, MPI_INT, partner, 5, MPI_COMM_WORLD, &request));
      }
      end(&request, ending);
      if (ending == completed) CHECK(is_here(load, i));
    }
    if (ending == freed) everybody();
    wait_for_data(load);
  }
  everybody();
}
static void receive_requests(enum Ending ending, struct Load load) { receiving(0, ending, load); }
static void persistent_receives(enum Ending ending, struct Load load) { receiving(1, ending, load); }

/// A receive that is cancelled and freed takes no message.
static void cancelled_receives(enum Ending ending, struct Load load) {
  if (sends) {
    fill(load);
    everybody();
    send_all(load);
  } else {
    empty(load);
    for (int i = 0; i < load.times; ++i) {
      MPI_Request request;
      OK(MPI_Irecv(memory, load.ints, MPI_INT, partner, 5, MPI_COMM_WORLD, &request));
      OK(MPI_Cancel(&request));
      end(&request, ending);
    }
    everybody();
    receive_all(load);
  }
  everybody();
}

static void matched_receives(enum Ending ending, struct Load load) {
  if (sends) {
    fill(load);
    send_all(load);
  } else {
    empty(load);
    for (int i = 0; i < load.times; ++i) {
      MPI_Message message;
      MPI_Request request;
      OK(MPI_Mprobe(partner, 5, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE));
      OK(MPI_Imrecv(place(load, i), load.ints, MPI_INT, &message, &request));
      end(&request, ending);
    }
    wait_for_data(load);
  }
  everybody();
}

static void exchanges(enum Ending ending, struct Load load) {
  int* out = malloc(sizeof(int) * (size_t)load.times * (size_t)load.ints);
  fill(load);
  memcpy(out, memory, sizeof(int) * (size_t)load.times * (size_t)load.ints);
  empty(load);
  for (int i = 0; i < load.times; ++i) {
    MPI_Request request;
    const int* from = out + (size_t)i * (size_t)load.ints;
    if (i % 2 == 0) {
      OK(MPI_Isendrecv(from, load.ints, MPI_INT, partner, 5, place(load, i), load.ints, MPI_INT, partner, 5,
                       MPI_COMM_WORLD, &request));
    } else {
      memcpy(place(load, i), from, sizeof(int) * (size_t)load.ints);
      OK(MPI_Isendrecv_replace(place(load, i), load.ints, MPI_INT, partner, 5, partner, 5, MPI_COMM_WORLD,
                               &request));
    }
    end(&request, ending);
  }
  wait_for_data(load);
  everybody();
  free(out);
}

// Partitioned communication

/// The receiver creates its requests before the sender, or after it.
static void partitioned(enum Ending ending, struct Load load, int receiver_first) {
  const int parts = load.ints % 2 == 0 ? 2 : 1, pieces = load.ints % 4 == 0 ? 4 : 1;
  if (sends) {
    fill(load);
    if (receiver_first) everybody();
    for (int i = 0; i < load.times; ++i) {
      MPI_Request request;
      OK(MPI_Psend_init(place(load, i), parts, load.ints / parts, MPI_INT, partner, 5, MPI_COMM_WORLD,
                        MPI_INFO_NULL, &request));
      OK(MPI_Start(&request));
      OK(MPI_Pready_range(0, parts - 1, request));
      end(&request, ending);
    }
    if (!receiver_first && ending == freed) everybody();
  } else {
    empty(load);
    if (!receiver_first && ending == freed) everybody();
    for (int i = 0; i < load.times; ++i) {
      MPI_Request request;
      OK(MPI_Precv_init(place(load, i), pieces, load.ints / pieces, MPI_INT, partner, 5, MPI_COMM_WORLD,
                        MPI_INFO_NULL, &request));
      OK(MPI_Start(&request));
      if (receiver_first && ending == completed && i == 0) everybody();
      end(&request, ending);
      if (ending == completed) CHECK(is_here(load, i));
    }
    if (receiver_first && ending == freed) everybody();
    wait_for_data(load);
  }
  everybody();
}
static void partitioned_sender_first(enum Ending ending, struct Load load) { partitioned(ending, load, 0); }
static void partitioned_receiver_first(enum Ending ending, struct Load load) { partitioned(ending, load, 1); }

/// Requests that are never started still match their partners, so later requests must not match these.
static void partitioned_unstarted(enum Ending ending, struct Load load) {
  if (sends)
    fill(load);
  else
    empty(load);
  for (int late = 0; late < 2; ++late) {
    if (late == sends) everybody(); // first the receivers are late, then the senders
    for (int i = 0; i < load.times; ++i) {
      MPI_Request unused, request;
      if (sends) {
        OK(MPI_Psend_init(memory, 3, load.ints, MPI_INT, partner, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &unused));
        OK(MPI_Request_free(&unused));
        OK(MPI_Psend_init(place(load, i), 1, load.ints, MPI_INT, partner, 5, MPI_COMM_WORLD, MPI_INFO_NULL,
                          &request));
        OK(MPI_Start(&request));
        OK(MPI_Pready(0, request));
      } else {
        OK(MPI_Precv_init(memory, 3, load.ints, MPI_INT, partner, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &unused));
        OK(MPI_Request_free(&unused));
        OK(MPI_Precv_init(place(load, i), 1, load.ints, MPI_INT, partner, 5, MPI_COMM_WORLD, MPI_INFO_NULL,
                          &request));
        OK(MPI_Start(&request));
      }
      end(&request, late != sends ? freed : ending);
    }
    if (late != sends) everybody();
    if (!sends) wait_for_data(load);
    everybody();
    if (!sends) empty(load);
    everybody();
  }
}

// Generalized requests

static int queries, frees;
static int query(void* state, MPI_Status* status) {
  (void)state;
  ++queries;
  return MPI_Status_set_cancelled(status, 0);
}
static int free_state(void* state) {
  ++frees;
  free(state);
  return MPI_SUCCESS;
}
static int cancel(void* state, int complete) {
  (void)state;
  (void)complete;
  return MPI_SUCCESS;
}
static void generalized(enum Ending ending, struct Load load) {
  queries = frees = 0;
  for (int i = 0; i < load.times; ++i) {
    MPI_Request request, copy;
    OK(MPI_Grequest_start(query, free_state, cancel, malloc(16), &request));
    copy = request;
    if (ending == freed) {
      OK(MPI_Request_free(&request));
      CHECK(frees == i); // the request is not complete
      OK(MPI_Grequest_complete(copy));
    } else if (i % 2 == 0) {
      OK(MPI_Grequest_complete(copy));
      OK(MPI_Request_free(&request));
    } else {
      OK(MPI_Grequest_complete(copy));
      OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    CHECK(request == MPI_REQUEST_NULL && frees == i + 1);
  }
}

// Collectives. A program must not free an active request; if it does, the operation still completes.

static void collectives(enum Ending ending, struct Load load) {
  int* sums = calloc((size_t)load.times, sizeof *sums);
  int* ranks = malloc(sizeof *ranks * (size_t)load.times);
  if (rank == 0)
    fill(load);
  else
    empty(load);
  // The last rank begins after all others, unless these may have to wait for it.
  if (ending == freed && rank == size - 1) everybody();
  for (int i = 0; i < load.times; ++i) {
    MPI_Request request;
    ranks[i] = rank + i;
    OK(MPI_Ibcast(place(load, i), load.ints, MPI_INT, 0, MPI_COMM_WORLD, &request));
    end(&request, rank == 0 ? ending : freed);
    OK(MPI_Iallreduce(&ranks[i], &sums[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request));
    end(&request, freed);
  }
  if (ending == freed && rank != size - 1) everybody();
  wait_for_data(load);
  for (int i = 0; i < load.times; ++i)
    while (((volatile int*)sums)[i] != size * (size - 1) / 2 + size * i) make_progress();
  everybody();
  free(sums);
  free(ranks);
}

static void persistent_collectives(enum Ending ending, struct Load load) {
  if (rank == 0)
    fill(load);
  else
    empty(load);
  for (int i = 0; i < load.times; ++i) {
    MPI_Request request, unused;
    int mine = rank + i, sum = 0;
    OK(MPI_Allreduce_init(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &unused));
    OK(MPI_Bcast_init(place(load, i), load.ints, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
    OK(MPI_Request_free(&unused));
    OK(MPI_Start(&request));
    end(&request, ending);
  }
  wait_for_data(load);
  everybody();
}

static void duplicates(enum Ending ending, struct Load load) {
  if (load.ints > 1) return;
  MPI_Comm made[20];
  for (int i = 0; i < 20; ++i) {
    MPI_Request request;
    OK(MPI_Comm_idup(MPI_COMM_WORLD, &made[i], &request));
    end(&request, i == 19 ? completed : ending);
  }
  everybody();
  for (int i = 0; i < 20; ++i) {
    int sum = 0;
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, made[i]));
    CHECK(sum == size * (size - 1) / 2);
    OK(MPI_Comm_free(&made[i]));
  }
}

// One-sided communication. Here, too, an operation completes if its request is freed.

typedef void Begin(struct Load load, int i, MPI_Win window, MPI_Request* request);

static void begin_put(struct Load load, int i, MPI_Win window, MPI_Request* request) {
  const MPI_Aint at = (MPI_Aint)i * load.ints;
  if (i % 2 == 0)
    OK(MPI_Rput(place(load, i), load.ints, MPI_INT, partner, at, load.ints, MPI_INT, window, request));
  else
    OK(MPI_Raccumulate(place(load, i), load.ints, MPI_INT, partner, at, load.ints, MPI_INT, MPI_SUM, window,
                       request));
}
static void begin_get(struct Load load, int i, MPI_Win window, MPI_Request* request) {
  const MPI_Aint at = (MPI_Aint)i * load.ints;
  if (i % 2 == 0)
    OK(MPI_Rget(place(load, i), load.ints, MPI_INT, partner, at, load.ints, MPI_INT, window, request));
  else
    OK(MPI_Rget_accumulate(NULL, 0, MPI_INT, place(load, i), load.ints, MPI_INT, partner, at, load.ints,
                           MPI_INT, MPI_NO_OP, window, request));
}

static void in_an_epoch(Begin* begin, enum Ending ending, struct Load load, MPI_Win window) {
  OK(MPI_Win_lock(MPI_LOCK_SHARED, partner, 0, window));
  for (int i = 0; i < load.times; ++i) {
    MPI_Request request;
    begin(load, i, window, &request);
    end(&request, ending);
    if (ending == completed) CHECK(is_here(load, i)); // the origin buffer of a put is unchanged
  }
  OK(MPI_Win_unlock(partner, window));
}

static void one_sided(enum Ending ending, struct Load load) {
  MPI_Win window;
  const MPI_Aint bytes = (MPI_Aint)sizeof(int) * load.ints * load.times;
  int* there;
  OK(MPI_Win_allocate(bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &there, &window));
  memset(there, 0, (size_t)bytes);
  everybody();
  fill(load);
  in_an_epoch(begin_put, ending, load, window);
  everybody();
  empty(load);
  in_an_epoch(begin_get, ending, load, window);
  for (int i = 0; i < load.times; ++i) CHECK(is_here(load, i));
  OK(MPI_Win_free(&window));
}

static void flushes(enum Ending ending, struct Load load) {
  if (sends) {
    fill(load);
    OK(MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0));
    for (int i = 0; i < load.times; ++i) {
      MPI_Request request;
      OK(MPI_Bsend(place(load, i), load.ints, MPI_INT, partner, 5, MPI_COMM_WORLD));
      OK(MPI_Buffer_iflush(&request));
      end(&request, i % 10 == 9 ? ending : freed);
    }
    void* buffer;
    int bytes;
    OK(MPI_Buffer_detach(&buffer, &bytes));
  } else {
    empty(load);
    receive_all(load);
  }
  everybody();
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  CHECK(size % 2 == 0);
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &barriers));
  partner = rank ^ 1;
  sends = rank % 2 == 0;
  static const struct {
    const char* name;
    void (*run)(enum Ending, struct Load);
  } kinds[] = {
      {"sends", send_requests},
      {"persistent_sends", persistent_sends},
      {"receives", receive_requests},
      {"persistent_receives", persistent_receives},
      {"cancelled_receives", cancelled_receives},
      {"matched_receives", matched_receives},
      {"exchanges", exchanges},
      {"partitioned_sender_first", partitioned_sender_first},
      {"partitioned_receiver_first", partitioned_receiver_first},
      {"partitioned_unstarted", partitioned_unstarted},
      {"generalized", generalized},
      {"collectives", collectives},
      {"persistent_collectives", persistent_collectives},
      {"duplicates", duplicates},
      {"one_sided", one_sided},
      {"flushes", flushes},
  };
  memory = malloc(sizeof(int) * 20 * 6000);
  int ran = 0;
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; ++k) {
    if (argc > 1 && strcmp(argv[1], kinds[k].name) != 0) continue;
    for (size_t l = 0; l < sizeof loads / sizeof *loads; ++l) {
      kinds[k].run(freed, loads[l]);
      kinds[k].run(completed, loads[l]);
    }
    ++ran;
  }
  CHECK(ran > 0);
  free(memory);
  OK(MPI_Comm_free(&barriers));
  OK(MPI_Finalize());
  return 0;
}
