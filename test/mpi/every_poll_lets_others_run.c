// A token goes round all ranks repeatedly. Ranks wait for it with one kind of call that polls, and never with
// one that blocks. With more ranks than processors, the rank that has the token runs as soon as polls yield,
// otherwise only after a time slice of some milliseconds. All kinds of calls are tried in turn.
//
//   every_poll_lets_others_run LAPS         each rank passes the token on at once
//   every_poll_lets_others_run LAPS LATE    each rank first sleeps for LATE microseconds
//
// The calls of each kind are between two calls of getpgid, to mark them for a tracer of system calls.
#include "check.h"

#include <string.h>
#include <unistd.h>

enum { first_mark = 2124489600, many = 1000, places = 1000 };

static int rank, size, left, right, laps, late_us;
static MPI_Comm comm;
static MPI_Request others[many]; // receives without a message
static char nothing[many];

static void mark(int kind) { getpgid(first_mark + kind); }

// ---- kinds: each returns when `request` is complete or the token can be received ----

static void by_test(MPI_Request* request) {
  for (int done = 0; !done;) OK(MPI_Test(request, &done, MPI_STATUS_IGNORE));
}

static void by_testany(MPI_Request* request) {
  MPI_Request both[2] = {others[0], *request};
  for (int done = 0, index; !done;) OK(MPI_Testany(2, both, &index, &done, MPI_STATUS_IGNORE));
  *request = both[1];
}

static void by_testsome(MPI_Request* request) {
  MPI_Request both[2] = {others[0], *request};
  for (int count = 0, indices[2]; count == 0;)
    OK(MPI_Testsome(2, both, &count, indices, MPI_STATUSES_IGNORE));
  *request = both[1];
}

static void by_testall(MPI_Request* request) {
  for (int done = 0; !done;) OK(MPI_Testall(1, request, &done, MPI_STATUSES_IGNORE));
}

static void by_get_status(MPI_Request* request) {
  for (int done = 0; !done;) OK(MPI_Request_get_status(*request, &done, MPI_STATUS_IGNORE));
}

static void by_get_status_any(MPI_Request* request) {
  MPI_Request both[2] = {others[0], *request};
  for (int done = 0, index; !done;) OK(MPI_Request_get_status_any(2, both, &index, &done, MPI_STATUS_IGNORE));
}

static void by_get_status_all(MPI_Request* request) {
  for (int done = 0; !done;) OK(MPI_Request_get_status_all(1, request, &done, MPI_STATUSES_IGNORE));
}

static void by_get_status_some(MPI_Request* request) {
  MPI_Request both[2] = {others[0], *request};
  for (int count = 0, indices[2]; count == 0;)
    OK(MPI_Request_get_status_some(2, both, &count, indices, MPI_STATUSES_IGNORE));
}

static void by_many_tests(MPI_Request* request) {
  for (int done = 0, other; !done;) {
    for (int i = 0; i < many; ++i) OK(MPI_Test(&others[i], &other, MPI_STATUS_IGNORE));
    OK(MPI_Test(request, &done, MPI_STATUS_IGNORE));
  }
}

static void by_tests_among_other_calls(MPI_Request* request) {
  MPI_Request none = MPI_REQUEST_NULL;
  for (int done = 0, other; !done;) {
    OK(MPI_Comm_rank(comm, &other));
    OK(MPI_Test(&none, &other, MPI_STATUS_IGNORE));
    OK(MPI_Test(request, &done, MPI_STATUS_IGNORE));
    OK(MPI_Comm_size(comm, &other));
  }
}

// ---- the token as a message ----

static void pass(int lap) {
  if (late_us) usleep((useconds_t)late_us);
  OK(MPI_Send(&lap, 1, MPI_INT, right, 0, comm));
}

static void await_request(int lap, void (*poll)(MPI_Request*)) {
  MPI_Request request;
  int token = -1;
  OK(MPI_Irecv(&token, 1, MPI_INT, left, 0, comm, &request));
  if (rank == 0) pass(lap);
  poll(&request);
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  CHECK(token == lap);
  if (rank != 0) pass(lap);
}

static void await_probed(int lap, int matched) {
  int token = -1;
  MPI_Message message;
  if (rank == 0) pass(lap);
  for (int there = 0; !there;) {
    if (matched)
      OK(MPI_Improbe(left, 0, comm, &there, &message, MPI_STATUS_IGNORE));
    else
      OK(MPI_Iprobe(left, 0, comm, &there, MPI_STATUS_IGNORE));
  }
  if (matched)
    OK(MPI_Mrecv(&token, 1, MPI_INT, &message, MPI_STATUS_IGNORE));
  else
    OK(MPI_Recv(&token, 1, MPI_INT, left, 0, comm, MPI_STATUS_IGNORE));
  CHECK(token == lap);
  if (rank != 0) pass(lap);
}

// ---- the token in other forms ----

static int out_part, in_part;
static MPI_Request part_to_right, part_from_left;

static void pass_partition(int lap) {
  if (late_us) usleep((useconds_t)late_us);
  out_part = lap;
  OK(MPI_Start(&part_to_right));
  OK(MPI_Pready(0, part_to_right));
  OK(MPI_Wait(&part_to_right, MPI_STATUS_IGNORE));
}

static void await_partition(int lap) {
  OK(MPI_Start(&part_from_left));
  if (rank == 0) pass_partition(lap);
  for (int there = 0; !there;) OK(MPI_Parrived(part_from_left, 0, &there));
  CHECK(in_part == lap);
  OK(MPI_Wait(&part_from_left, MPI_STATUS_IGNORE));
  if (rank != 0) pass_partition(lap);
}

static MPI_Win window;
static MPI_Group to_right, from_left;
static volatile int *mine, *next;

static void pass_epoch(int lap) {
  if (late_us) usleep((useconds_t)late_us);
  OK(MPI_Win_start(to_right, 0, window));
  *next = lap;
  OK(MPI_Win_complete(window));
}

static void await_epoch(int lap) {
  OK(MPI_Win_post(from_left, 0, window));
  if (rank == 0) pass_epoch(lap);
  for (int over = 0; !over;) OK(MPI_Win_test(window, &over));
  CHECK(*mine == lap);
  if (rank != 0) pass_epoch(lap);
}

static void pass_word(int lap) {
  if (late_us) usleep((useconds_t)late_us);
  OK(MPI_Win_sync(window));
  *next = lap;
  OK(MPI_Win_sync(window));
}

static void by_sync(int lap) {
  while (*mine != lap) OK(MPI_Win_sync(window));
}

static void by_rget(int lap) {
  for (int seen = -1, done; seen != lap;) {
    MPI_Request request;
    OK(MPI_Rget(&seen, 1, MPI_INT, rank, 0, 1, MPI_INT, window, &request));
    do OK(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
    while (!done);
  }
}

static void by_rget_accumulate(int lap) {
  for (int seen = -1; seen != lap;) {
    MPI_Request request;
    OK(MPI_Rget_accumulate(NULL, 0, MPI_INT, &seen, 1, MPI_INT, rank, 0, 1, MPI_INT, MPI_NO_OP, window,
                           &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  }
}

static void by_get_and_flush(int lap) {
  for (int seen = -1; seen != lap;) {
    OK(MPI_Get(&seen, 1, MPI_INT, rank, 0, 1, MPI_INT, window));
    OK(MPI_Win_flush(rank, window));
  }
}

static void by_compare_and_swap(int lap) {
  for (int seen = -1; seen != lap;) {
    OK(MPI_Compare_and_swap(&lap, &lap, &seen, MPI_INT, rank, 0, window));
    OK(MPI_Win_flush_all(window));
  }
}

static void await_word(int lap, void (*poll)(int)) {
  if (rank == 0) pass_word(lap);
  poll(lap);
  if (rank != 0) pass_word(lap);
}

// ---- calls that do not wait ----

static void read_from_place_to_place(void) {
  int got[places];
  for (int i = 0; i < places; ++i) {
    OK(MPI_Get(&got[i], 1, MPI_INT, right, i, 1, MPI_INT, window));
    OK(MPI_Win_flush(right, window));
  }
}

static void write_again_and_again(void) {
  for (int i = 0; i < places; ++i) {
    OK(MPI_Put(&i, 1, MPI_INT, right, 1 + i % 2, 1, MPI_INT, window));
    OK(MPI_Win_flush(right, window));
  }
}

/// Each call finds another value in the same place.
static void count_in_place(void) {
  const int one = 1;
  for (int i = 0, seen; i < places; ++i) {
    OK(MPI_Fetch_and_op(&one, &seen, MPI_INT, right, 3, MPI_SUM, window));
    OK(MPI_Win_flush(right, window));
    CHECK(seen == i);
  }
  for (int i = 0, seen; i < places; ++i) {
    const int expected = places + i, next_value = expected + 1;
    OK(MPI_Compare_and_swap(&next_value, &expected, &seen, MPI_INT, right, 3, window));
    OK(MPI_Win_flush(right, window));
    CHECK(seen == expected);
  }
}

/// As in a table whose head says where to look.
static void look_up(void) {
  for (int i = 0, head, found; i < places; ++i) {
    OK(MPI_Get(&head, 1, MPI_INT, right, 4, 1, MPI_INT, window));
    OK(MPI_Win_flush(right, window));
    OK(MPI_Get(&found, 1, MPI_INT, right, i, 1, MPI_INT, window));
    OK(MPI_Win_flush(right, window));
  }
}

static void open_window(void) {
  MPI_Group all;
  MPI_Aint bytes;
  int unit;
  void* memory;
  OK(MPI_Win_allocate_shared(places * sizeof(int), sizeof(int), MPI_INFO_NULL, comm, &memory, &window));
  mine = memory;
  OK(MPI_Win_shared_query(window, right, &bytes, &unit, &memory));
  next = memory;
  OK(MPI_Comm_group(comm, &all));
  OK(MPI_Group_incl(all, 1, &right, &to_right));
  OK(MPI_Group_incl(all, 1, &left, &from_left));
  OK(MPI_Group_free(&all));
}

enum { of_requests = 10, of_words = 5, first_word = of_requests + 4, kinds = first_word + of_words };

static void turn(int kind, int lap) {
  static void (*const polls[of_requests])(MPI_Request*) = {
      by_test,           by_testany,        by_testsome,        by_testall,    by_get_status,
      by_get_status_any, by_get_status_all, by_get_status_some, by_many_tests, by_tests_among_other_calls};
  static void (*const looks[of_words])(int) = {by_sync, by_rget, by_rget_accumulate, by_get_and_flush,
                                               by_compare_and_swap};
  if (kind < of_requests) await_request(lap, polls[kind]);
  if (kind == of_requests) await_probed(lap, 0);
  if (kind == of_requests + 1) await_probed(lap, 1);
  if (kind == of_requests + 2) await_partition(lap);
  if (kind == of_requests + 3) await_epoch(lap);
  if (kind >= first_word) await_word(lap, looks[kind - first_word]);
}

int main(int argc, char** argv) {
  CHECK(argc > 1);
  laps = atoi(argv[1]);
  late_us = argc > 2 ? atoi(argv[2]) : 0;
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  OK(MPI_Comm_rank(comm, &rank));
  OK(MPI_Comm_size(comm, &size));
  left = (rank + size - 1) % size;
  right = (rank + 1) % size;
  for (int i = 0; i < many; ++i) OK(MPI_Irecv(&nothing[i], 1, MPI_CHAR, left, 1, comm, &others[i]));
  OK(MPI_Psend_init(&out_part, 1, 1, MPI_INT, right, 2, comm, MPI_INFO_NULL, &part_to_right));
  OK(MPI_Precv_init(&in_part, 1, 1, MPI_INT, left, 2, comm, MPI_INFO_NULL, &part_from_left));
  open_window();
  for (int kind = 0; kind < kinds; ++kind) {
    *mine = -1;
    OK(MPI_Barrier(comm));
    if (kind >= first_word) OK(MPI_Win_lock_all(MPI_MODE_NOCHECK, window));
    mark(kind);
    for (int lap = 0; lap < laps; ++lap) turn(kind, lap);
    mark(kind);
    if (kind >= first_word) OK(MPI_Win_unlock_all(window));
  }
  OK(MPI_Win_lock_all(MPI_MODE_NOCHECK, window));
  mark(kinds);
  read_from_place_to_place();
  mark(kinds);
  mark(kinds + 1);
  write_again_and_again();
  mark(kinds + 1);
  mine[3] = 0;
  OK(MPI_Barrier(comm));
  mark(kinds + 2);
  count_in_place();
  mark(kinds + 2);
  mark(kinds + 3);
  look_up();
  mark(kinds + 3);
  OK(MPI_Win_unlock_all(window));
  for (int i = 0; i < many; ++i) {
    OK(MPI_Cancel(&others[i]));
    OK(MPI_Wait(&others[i], MPI_STATUS_IGNORE));
  }
  OK(MPI_Request_free(&part_to_right));
  OK(MPI_Request_free(&part_from_left));
  OK(MPI_Group_free(&to_right));
  OK(MPI_Group_free(&from_left));
  OK(MPI_Win_free(&window));
  OK(MPI_Comm_free(&comm));
  OK(MPI_Finalize());
  return 0;
}
