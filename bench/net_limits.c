// What TCP allows between two machines, without MPI: the barest programs that two processes with a socket between them can be.
// The same ping-pong as latency.c, the same windows of messages as stream.c, and the same beginning as first.c.
//
//   net_limits BUDGET_MS VARIANTS SIZES VALUES        (VALUES: latency, stream, both, rate, first)
//
// BENCH_MACHINES names the two machines: "10.77.0.1=/proc/123/ns/net,10.77.0.2=/proc/124/ns/net". Without it, both processes are
// on this one. Names are "method" for a latency and "value:method" for the rest. The methods:
//
// - polling: nonblocking calls, again and again until they have moved everything; one call to send each message
// - polling/128K: ... with buffers of this size in the kernel, so that what is on its way stays in the cache; otherwise it adapts them
// - gathered: ... one call to send as many messages of a window as the kernel takes
// - blocking: the process sleeps in the kernel until it can go on
//
// A receiver knows how long messages are, so nothing has a head, and one call receives what is there of all messages of a window.
#include "two_processes.h"
#include "windows.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

struct method {
  const char* name;
  bool blocks, gathers;
  int kernel_buffer; // bytes; 0: the kernel adapts it
};

static const struct method methods[] = {
    {"polling", false, false, 0},
    {"polling/128K", false, false, 128 << 10},
    {"gathered", false, true, 0},
    {"blocking", true, false, 0},
};
enum { count_methods = sizeof methods / sizeof *methods, answer_bytes = 1 };

static _Noreturn void fail(const char* what) {
  fprintf(stderr, "bench: %s: %s\n", what, strerror(errno));
  exit(3);
}

// ---- the machines ----

/// An address and the file of a network namespace (empty: this one) for each process.
struct machine {
  char address[32], file[64];
};

static void read_machines(struct machine* machines) {
  const char* text = getenv("BENCH_MACHINES");
  machines[0] = machines[1] = (struct machine){"127.0.0.1", ""};
  if (!text || !*text) return;
  if (sscanf(text, "%31[^=]=%63[^,],%31[^=]=%63s", machines[0].address, machines[0].file, machines[1].address,
             machines[1].file) == 4)
    return;
  fprintf(stderr, "bench: BENCH_MACHINES: two of ADDRESS=FILE are expected, not %s\n", text);
  exit(2);
}

static void enter_network(const char* file) {
  if (!*file) return;
  int network = open(file, O_RDONLY | O_CLOEXEC);
  if (network < 0 || setns(network, CLONE_NEWNET) != 0) fail(file);
  close(network);
}

// ---- the connection ----

static struct sockaddr_in place = {.sin_family = AF_INET}; // where process 0 listens
static int listening;

/// Process 0 listens, and process 1 learns the port.
static void listen_at(const char* address) {
  socklen_t length = sizeof place;
  inet_pton(AF_INET, address, &place.sin_addr);
  if (pair.self == 0) {
    listening = socket(AF_INET, SOCK_STREAM, 0);
    if (listening < 0 || bind(listening, (void*)&place, length) != 0 || listen(listening, 8) != 0 ||
        getsockname(listening, (void*)&place, &length) != 0)
      fail("listen");
  }
  long port = place.sin_port;
  agree_by_memory(&port, 1);
  place.sin_port = (in_port_t)port;
}

static void set_option(int made, int level, int option, int value) {
  if (setsockopt(made, level, option, &value, sizeof value) != 0) fail("setsockopt");
}

static int connect_by(const struct method* method) {
  int made = pair.self == 0 ? accept(listening, NULL, NULL) : socket(AF_INET, SOCK_STREAM, 0);
  if (made < 0) fail("accept");
  if (pair.self == 1 && connect(made, (void*)&place, sizeof place) != 0) fail("connect");
  set_option(made, IPPROTO_TCP, TCP_NODELAY, 1);
  if (method->kernel_buffer) {
    set_option(made, SOL_SOCKET, SO_SNDBUF, method->kernel_buffer);
    set_option(made, SOL_SOCKET, SO_RCVBUF, method->kernel_buffer);
  }
  return made;
}

/// What a call has moved; 0 if it could move nothing now.
static size_t moved(ssize_t result) {
  if (result > 0) return (size_t)result;
  if (result < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  if (result == 0) errno = ECONNRESET;
  fail("the connection broke");
}

// ---- a ping-pong ----

struct exchange {
  const struct method* method;
  int connection;
  size_t bytes;
  bool touch, right;
  unsigned char number;
};

static void send_message(struct exchange* state, const unsigned char* from, size_t bytes) {
  const int flags = MSG_NOSIGNAL | (state->method->blocks ? 0 : MSG_DONTWAIT);
  for (size_t at = 0; at < bytes;) at += moved(send(state->connection, from + at, bytes - at, flags));
}

static void receive_message(struct exchange* state, unsigned char* to, size_t bytes) {
  const int flags = state->method->blocks ? MSG_WAITALL : MSG_DONTWAIT;
  for (size_t at = 0; at < bytes;) at += moved(recv(state->connection, to + at, bytes - at, flags));
}

/// A message of no bytes is one of one byte, as it has to be noticed.
static size_t on_the_wire(const struct exchange* state) { return state->bytes ? state->bytes : 1; }

static void send_one(struct exchange* state) {
  if (state->touch) rewrite_lines(pair.out, state->bytes, state->number);
  send_message(state, pair.out, on_the_wire(state));
}

static void receive_one(struct exchange* state) {
  receive_message(state, pair.in, on_the_wire(state));
  if (state->touch) state->right &= read_lines(pair.in, state->bytes, state->number);
}

static void round_trip(struct exchange* state) {
  if (state->touch) ++state->number;
  if (pair.self == 0) send_one(state);
  receive_one(state);
  if (pair.self == 1) send_one(state);
}

static void round_trips(void* context, long count) {
  for (long i = 0; i < count; ++i) round_trip(context);
}

static void measure_latency(struct exchange state, const struct driver* driver) {
  rewrite_lines(pair.out, state.bytes, 0);
  rewrite_lines(pair.in, state.bytes, 0xff);
  meet();
  double each = seconds_each(round_trips, &state, driver);
  require_data(state.right && read_lines(pair.in, state.bytes, state.number), state.method->name,
               state.bytes);
  if (pair.self == 0)
    print_value(state.method->name, state.touch ? "rewritten" : "reused", state.bytes, each / 2 * 1e6);
}

/// From before the connection is made until so many round trips are over.
static void measure_first(const struct method* method, size_t bytes, const struct arguments* arguments) {
  enum { most_bytes = 256 << 20 }; // as first.c
  const int steps[] = {1, 10, 100, 1000};
  char name[64], variant[16];
  snprintf(name, sizeof name, "first:%s", method->name);
  meet();
  double start = now();
  struct exchange state = {method, connect_by(method), bytes, true, true, 0};
  for (int i = 1, taken = 0; taken < 4 && (i == 1 || (size_t)steps[taken] * bytes <= most_bytes); ++i) {
    round_trip(&state);
    if (i != steps[taken]) continue;
    snprintf(variant, sizeof variant, "%d", steps[taken++]);
    if (pair.self == 0 && wants(arguments, variant)) print_value(name, variant, bytes, (now() - start) * 1e6);
  }
  require_data(state.right, name, bytes);
  close(state.connection);
}

// ---- streams ----

/// One direction of a window.
struct flow {
  unsigned char* messages;
  int message; // the next one,
  size_t at;   // and how much of it has been moved
};

struct streams {
  struct exchange exchange;
  struct flow sent, received;
  size_t distance; // of buffers
  int window;
  bool sends, receives;
};

static bool is_over(const struct streams* state, const struct flow* flow) {
  return flow->message == state->window;
}

/// The rest of up to `most` messages.
static int rest_of(const struct streams* state, const struct flow* flow, struct iovec* parts, int most) {
  int count = 0;
  size_t at = flow->at;
  for (int i = flow->message; i < state->window && count < most; ++i, at = 0)
    parts[count++] =
        (struct iovec){flow->messages + (size_t)i * state->distance + at, state->exchange.bytes - at};
  return count;
}

static void advance(const struct streams* state, struct flow* flow, size_t bytes) {
  flow->at += bytes;
  flow->message += (int)(flow->at / state->exchange.bytes);
  flow->at %= state->exchange.bytes;
}

static bool send_some(struct streams* state) {
  struct flow* flow = &state->sent;
  if (is_over(state, flow)) return false;
  if (state->exchange.touch && flow->at == 0)
    rewrite_lines(flow->messages + (size_t)flow->message * state->distance, state->exchange.bytes,
                  state->exchange.number);
  struct iovec parts[longest_window];
  // A message that is written when its turn comes cannot be sent with the one before.
  int most = state->exchange.method->gathers && !state->exchange.touch ? longest_window : 1;
  struct msghdr head = {.msg_iov = parts, .msg_iovlen = (size_t)rest_of(state, flow, parts, most)};
  size_t bytes = moved(sendmsg(state->exchange.connection, &head, MSG_NOSIGNAL | MSG_DONTWAIT));
  advance(state, flow, bytes);
  return bytes > 0;
}

static bool receive_some(struct streams* state) {
  struct flow* flow = &state->received;
  if (is_over(state, flow)) return false;
  struct iovec parts[longest_window];
  struct msghdr head = {.msg_iov = parts, .msg_iovlen = (size_t)rest_of(state, flow, parts, longest_window)};
  size_t bytes = moved(recvmsg(state->exchange.connection, &head, MSG_DONTWAIT));
  advance(state, flow, bytes);
  return bytes > 0;
}

static void sleep_until_ready(const struct streams* state) {
  short events =
      (is_over(state, &state->sent) ? 0 : POLLOUT) | (is_over(state, &state->received) ? 0 : POLLIN);
  struct pollfd waited = {.fd = state->exchange.connection, .events = events};
  poll(&waited, 1, -1);
}

static bool read_window(const struct streams* state) {
  bool right = true;
  for (int i = 0; i < state->window; ++i)
    right &= read_lines(pair.in + (size_t)i * state->distance, state->exchange.bytes, state->exchange.number);
  return right;
}

static void answer(struct streams* state) {
  unsigned char nothing = 0;
  if (state->receives) send_message(&state->exchange, &nothing, answer_bytes);
  if (state->sends) receive_message(&state->exchange, &nothing, answer_bytes);
}

static void windows(void* context, long count) {
  struct streams* state = context;
  for (long i = 0; i < count; ++i) {
    if (state->exchange.touch) ++state->exchange.number;
    state->sent = (struct flow){pair.out, state->sends ? 0 : state->window, 0};
    state->received = (struct flow){pair.in, state->receives ? 0 : state->window, 0};
    while (!is_over(state, &state->sent) || !is_over(state, &state->received)) {
      bool any = send_some(state);
      any |= receive_some(state);
      if (!any && state->exchange.method->blocks) sleep_until_ready(state);
    }
    if (state->receives && state->exchange.touch) state->exchange.right &= read_window(state);
    answer(state);
  }
}

/// `directions`: 1 when process 0 sends, 2 when both do.
static void measure_stream(struct exchange exchange, const struct driver* driver, const char* value,
                           int directions) {
  struct streams state = {.exchange = exchange,
                          .distance = distance_of(exchange.bytes),
                          .window = window_of(exchange.bytes),
                          .sends = directions == 2 || pair.self == 0,
                          .receives = directions == 2 || pair.self == 1};
  char name[64];
  snprintf(name, sizeof name, "%s:%s", value, exchange.method->name);
  for (int i = 0; i < state.window; ++i) {
    rewrite_lines(pair.out + (size_t)i * state.distance, exchange.bytes, 0);
    rewrite_lines(pair.in + (size_t)i * state.distance, exchange.bytes, 0xff);
  }
  meet();
  double each = seconds_each(windows, &state, driver);
  require_data(!state.receives || (state.exchange.right && read_window(&state)), name, exchange.bytes);
  double messages = directions * state.window / each;
  if (pair.self == 0)
    print_value(name, exchange.touch ? "rewritten" : "reused", exchange.bytes,
                strcmp(value, "rate") == 0 ? messages : messages * (double)exchange.bytes / 1e6);
}

// ---- all of it ----

static void measure_method(const struct method* method, const struct arguments* arguments,
                           const char* values) {
  const struct driver driver = {arguments->budget, agree_by_memory, pair.self == 0, false};
  const int connection = connect_by(method);
  for (int i = 0; i < arguments->count; ++i) {
    for (int touch = 0; touch < 2; ++touch) {
      const struct exchange state = {method, connection, arguments->sizes[i], touch, true, 0};
      if (!wants(arguments, touch ? "rewritten" : "reused")) continue;
      if (strstr(values, "latency") && !method->gathers && (state.bytes > 0 || !touch))
        measure_latency(state, &driver);
      if (state.bytes == 0) continue;
      if (strstr(values, "stream")) measure_stream(state, &driver, "stream", 1);
      if (strstr(values, "both")) measure_stream(state, &driver, "both", 2);
      if (strstr(values, "rate")) measure_stream(state, &driver, "rate", 1);
    }
  }
  close(connection);
}

int main(int argc, char** argv) {
  struct arguments arguments = read_arguments(argc, argv);
  const char* values = argc > 4 ? argv[4] : "latency";
  struct machine machines[2];
  read_machines(machines);
  start_pair(space_of_windows(&arguments));
  enter_network(machines[pair.self].file);
  listen_at(machines[0].address);
  for (int i = 0; i < count_methods; ++i) {
    meet();
    if (strcmp(values, "first") != 0)
      measure_method(&methods[i], &arguments, values);
    else if (!methods[i].gathers)
      measure_first(&methods[i], arguments.sizes[0], &arguments);
  }
  return end_pair();
}
