// Thousands of receives and messages are pending at a time, with tags in every order. Each receive gets the
// message that the standard's matching rule requires. The other ranks send to rank 0 in turn; a single rank
// sends to itself.
//   thousands_of_tags_match_in_any_order [random seeds]
#include "check.h"

#include <stdbool.h>
#include <string.h>

enum { many = 20000, communicators = 3, tags = 600, batch = 500, rounds = 12, most = 2 * rounds * batch };

static MPI_Comm world[communicators], control;
static int rank, size;

static int sender_of(int i) { return size == 1 ? 0 : 1 + i % (size - 1); }

/// One step: after rank 0 has posted its receives, the sender sends; rank 0 continues when all has arrived.
static void arrive(int sender, int count, const int* values, const int* with_tags, const int* in) {
  MPI_Request done = MPI_REQUEST_NULL;
  OK(MPI_Barrier(control));
  if (rank == 0) OK(MPI_Irecv(NULL, 0, MPI_INT, sender, 1, control, &done));
  if (rank == sender) {
    for (int i = 0; i < count; ++i) {
      MPI_Request request;
      OK(MPI_Isend(&values[i], 1, MPI_INT, 0, with_tags[i], world[in[i]], &request));
      OK(MPI_Request_free(&request));
    }
    OK(MPI_Send(NULL, 0, MPI_INT, 0, 1, control));
  }
  if (rank == 0) OK(MPI_Wait(&done, MPI_STATUS_IGNORE));
}

static int values[many], tag_of[many], in[many], got[many];
static MPI_Request requests[many];

static void posted_in_reverse(void) {
  for (int i = 0; i < many; ++i) {
    values[i] = i;
    tag_of[i] = many - 1 - i;
    in[i] = 0;
    if (rank == 0) OK(MPI_Irecv(&got[i], 1, MPI_INT, sender_of(0), i, world[0], &requests[i]));
  }
  // This receive is posted last, so it gets only messages that no earlier receive takes.
  int any = -1;
  MPI_Request any_request;
  if (rank == 0) OK(MPI_Irecv(&any, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, world[0], &any_request));
  arrive(sender_of(0), many, values, tag_of, in);
  if (rank == 0) {
    OK(MPI_Waitall(many, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < many; ++i) CHECK(got[i] == many - 1 - i);
  }
  arrive(sender_of(0), 1, values + 7, tag_of + 7, in);
  if (rank == 0) {
    OK(MPI_Wait(&any_request, MPI_STATUS_IGNORE));
    CHECK(any == 7);
  }
}

static void unexpected_in_reverse(void) {
  arrive(sender_of(0), many, values, tag_of, in);
  if (rank != 0) return;
  for (int i = many; i-- > 0;) {
    MPI_Status status;
    int value = -1, found = 0;
    int source = i % 2 == 0 ? MPI_ANY_SOURCE : sender_of(0);
    if (i % 3 == 0) {
      MPI_Message message;
      OK(MPI_Mprobe(source, tag_of[i], world[0], &message, &status));
      OK(MPI_Mrecv(&value, 1, MPI_INT, &message, &status));
    } else {
      OK(MPI_Recv(&value, 1, MPI_INT, source, tag_of[i], world[0], &status));
    }
    CHECK(value == values[i] && status.MPI_TAG == tag_of[i] && status.MPI_SOURCE == sender_of(0));
    OK(MPI_Iprobe(source, tag_of[i], world[0], &found, &status));
    CHECK(!found);
    // The oldest message is the first that was sent.
    OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, world[0], &found, &status));
    CHECK(found == (i > 0) && (!found || status.MPI_TAG == tag_of[0]));
  }
}

static void cancelled_in_every_place(void) {
  if (rank == 0)
    for (int i = 0; i < many; ++i)
      OK(MPI_Irecv(&got[i], 1, MPI_INT, sender_of(0), i, world[0], &requests[i]));
  int sent = 0;
  static int kept[many], kept_tag[many];
  for (int i = many; i-- > 0;) {
    if (i % 3 == 1) { // no message is sent with the tag of a cancelled receive
      if (rank == 0) OK(MPI_Cancel(&requests[i]));
    } else {
      kept[sent] = i;
      kept_tag[sent++] = i;
    }
  }
  arrive(sender_of(0), sent, kept, kept_tag, in);
  if (rank != 0) return;
  for (int i = 0; i < many; ++i) {
    MPI_Status status;
    int cancelled;
    OK(MPI_Wait(&requests[i], &status));
    OK(MPI_Test_cancelled(&status, &cancelled));
    CHECK(cancelled == (i % 3 == 1));
    CHECK(cancelled || got[i] == i);
  }
}

/// The matching rule as the standard has it: lists that are searched from their beginning.
static struct Receive {
  int in, source, tag, message; ///< -1: none yet
  bool cancelled;
} receives[most];
static struct Message {
  int in, source, tag;
  bool taken;
} messages[most];
static int received[most], numbers[most]; ///< send buffers stay valid, since no rank waits for the sends
static MPI_Request pending[most];
static int receive_count, message_count;

static unsigned long long state;
static int below(int bound) {
  state = state * 6364136223846793005ull + 1442695040888963407ull;
  return (int)((state >> 33) % (unsigned)bound);
}

static bool fits(const struct Receive* receive, const struct Message* message) {
  return receive->in == message->in &&
         (receive->source == MPI_ANY_SOURCE || receive->source == message->source) &&
         (receive->tag == MPI_ANY_TAG || receive->tag == message->tag);
}

static void post_some(int count, int one_in) {
  for (int i = 0; i < count; ++i) {
    struct Receive* receive = &receives[receive_count];
    receive->in = below(communicators);
    receive->source = below(one_in) == 0 ? MPI_ANY_SOURCE : sender_of(below(64));
    receive->tag = below(one_in) == 0 ? MPI_ANY_TAG : below(tags);
    receive->message = -1;
    receive->cancelled = false;
    for (int k = 0; k < message_count && receive->message < 0; ++k)
      if (!messages[k].taken && fits(receive, &messages[k])) {
        receive->message = k;
        messages[k].taken = true;
      }
    if (rank == 0)
      OK(MPI_Irecv(&received[receive_count], 1, MPI_INT, receive->source, receive->tag, world[receive->in],
                   &pending[receive_count]));
    ++receive_count;
  }
}

static void send_some(int count) {
  int sender = sender_of(below(64)), first = message_count, with_tags[batch], sent_in[batch];
  for (int i = 0; i < count; ++i) {
    struct Message* message = &messages[message_count];
    message->in = sent_in[i] = below(communicators);
    message->source = sender;
    message->tag = with_tags[i] = below(tags);
    message->taken = false;
    numbers[message_count] = message_count;
    for (int k = 0; k < receive_count && !message->taken; ++k)
      if (receives[k].message < 0 && !receives[k].cancelled && fits(&receives[k], message)) {
        receives[k].message = message_count;
        message->taken = true;
      }
    ++message_count;
  }
  arrive(sender, count, numbers + first, with_tags, sent_in);
}

static void cancel_some(int count) {
  for (int i = 0; i < count && receive_count > 0; ++i) {
    int k = below(receive_count);
    if (receives[k].message >= 0 || receives[k].cancelled) continue;
    receives[k].cancelled = true;
    if (rank == 0) OK(MPI_Cancel(&pending[k]));
  }
}

static void play(unsigned long long seed) {
  state = seed;
  receive_count = message_count = 0;
  int one_in = 2 + below(100);
  for (int round = 0; round < rounds; ++round) {
    post_some(below(batch), one_in);
    cancel_some(below(batch / 4));
    send_some(below(batch));
  }
  if (rank == 0) {
    for (int k = 0; k < receive_count; ++k) {
      int complete;
      if (receives[k].message < 0 && !receives[k].cancelled) {
        OK(MPI_Test(&pending[k], &complete, MPI_STATUS_IGNORE));
        CHECK(!complete);
        OK(MPI_Cancel(&pending[k]));
      }
      OK(MPI_Wait(&pending[k], MPI_STATUS_IGNORE));
      CHECK(receives[k].message < 0 || received[k] == receives[k].message);
    }
    // Receives the remaining messages, the oldest first.
    for (int k = 0; k < message_count; ++k) {
      int value = -1;
      if (messages[k].taken) continue;
      OK(MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, world[messages[k].in], MPI_STATUS_IGNORE));
      CHECK(value == k);
    }
  }
  OK(MPI_Barrier(control));
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  for (int i = 0; i < communicators; ++i) OK(MPI_Comm_dup(MPI_COMM_WORLD, &world[i]));
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &control));
  posted_in_reverse();
  unexpected_in_reverse();
  cancelled_in_every_place();
  for (int seed = 1; seed <= (argc > 1 ? atoi(argv[1]) : 8); ++seed) play((unsigned long long)seed);
  for (int i = 0; i < communicators; ++i) OK(MPI_Comm_free(&world[i]));
  OK(MPI_Comm_free(&control));
  OK(MPI_Finalize());
  return 0;
}
