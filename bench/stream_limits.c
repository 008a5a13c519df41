// What the machine allows for messages in a row between two bound processes, without MPI: the same windows as
// stream.c, each answered by one flag, with the barest program for each method to move the bytes.
//
//   stream_limits BUDGET_MS VARIANTS SIZES VALUES     (as stream.c)
//
// Names are "value:method", or "value:method/parameter" of which the best counts; values and units are those of
// stream.c: "stream", "both" (MB/s), "rate" (messages a second). The methods:
//
// - slots: a ring with one producer, of slots of 64 or 128 bytes. The last word of a slot is its number, the
//   rest are bytes of the message; a longer message takes several in a row
// - ring: the sender copies chunks into a shared ring, the receiver copies them out at the same time
// - ring_stream: ... the sender with stores that bypass its cache (non-temporal)
// - swap: as ring, but with each window the two processes swap the rings that they fill, so that each writes into the chunks
//   that it has just read; only if a window fits
// - cma: the receiver copies each message with process_vm_readv: one copy
//
// Slots and rings are one thing with different measures here: units, each with a number that says in which
// turn it was filled. The receiver says now and then how many it has emptied.
#include "two_processes.h"
#include "windows.h"

enum { ring_bytes = 2 << 20, most_chunks = 8, most_flags = 256 };

/// One direction. Only the sender raises `announced`, `filled` and what the units hold, only the receiver
/// `taken` and `answered`.
struct channel {
  struct flag announced;          // messages that may be fetched
  struct flag taken;              // units that the receiver has emptied
  struct flag answered;           // windows that have arrived
  struct flag filled[most_flags]; // the numbers of chunks; those of slots are inside
  _Alignas(4096) unsigned char ring[ring_bytes];
};

struct method {
  const char* name;
  size_t unit, room; // bytes of a unit, and how many of them are the message's
  uint64_t units;    // a power of two; 0: no ring
  void (*fill)(unsigned char*, const unsigned char*, size_t);
  size_t least, most; // bytes of a message for which it is worth measuring
  bool swaps;
};

#define KI *1024u
static const struct method methods[] = {
    {"slots/64", 64, 56, 128, copy, 1, 4 KI, false},
    {"slots/128", 128, 120, 128, copy, 1, 4 KI, false},
    {"ring/4K", 4 KI, 4 KI, 8, copy, 256, 64 KI, false},
    {"ring/16K", 16 KI, 16 KI, 4, copy, 8 KI, SIZE_MAX, false},
    {"ring/64K", 64 KI, 64 KI, 4, copy, 32 KI, SIZE_MAX, false},
    {"ring/16K-2M", 16 KI, 16 KI, 128, copy, 64 KI, SIZE_MAX, false},
    {"ring_stream/4K", 4 KI, 4 KI, 8, stream, 1 KI, 64 KI, false},
    {"ring_stream/16K", 16 KI, 16 KI, 8, stream, 8 KI, SIZE_MAX, false},
    {"ring_stream/64K", 64 KI, 64 KI, 8, stream, 32 KI, SIZE_MAX, false},
    {"swap/4K", 4 KI, 4 KI, 256, copy, 256, 16 KI, true},
    {"swap/16K", 16 KI, 16 KI, 128, copy, 8 KI, 32 KI, true},
    {"cma", 0, 0, 0, NULL, 1 KI, SIZE_MAX, false},
};

/// How far one direction has come, as one of its two sides knows it.
struct track {
  int message;            // of the window
  size_t at;              // bytes of it that are done
  uint64_t unit, emptied; // units so far; what the sender knows of `taken`
  uint64_t first;         // the first unit of the window
  uint64_t messages;      // in all windows so far
};

struct streams {
  struct channel *to, *from;
  const struct method* method;
  struct track sent, received;
  uint64_t windows;
  size_t bytes, distance; // of the buffers
  int window;
  bool touch, right, sends, receives;
  unsigned char number; // of the window, and what the lines hold
};

static _Atomic uint64_t* number_of(const struct method* method, struct channel* channel, uint64_t place) {
  if (method->room == method->unit) return &channel->filled[place].number;
  return (_Atomic uint64_t*)(channel->ring + place * method->unit + method->room);
}

/// Where the data of the direction `channel` lies, in the present window.
static unsigned char* ring_of(const struct streams* state, struct channel* channel) {
  if (!state->method->swaps || state->windows % 2 == 0) return channel->ring;
  return (channel == state->to ? state->from : state->to)->ring;
}

/// Where the next unit lies. Windows that swap rings begin at the same place, so that a process writes what it has just read.
static uint64_t place_of(const struct method* method, const struct track* track) {
  return method->swaps ? track->unit - track->first : track->unit & (method->units - 1);
}

/// Fills units as long as there is room and something to send.
static void send_units(struct streams* state) {
  const struct method* method = state->method;
  struct track* track = &state->sent;
  while (track->message < state->window) {
    if (track->unit - track->emptied == method->units) {
      track->emptied = seen(&state->to->taken);
      if (track->unit - track->emptied == method->units) return;
    }
    unsigned char* buffer = pair.out + (size_t)track->message * state->distance;
    if (state->touch && track->at == 0) rewrite_lines(buffer, state->bytes, state->number);
    uint64_t place = place_of(method, track);
    size_t left = state->bytes - track->at, some = left < method->room ? left : method->room;
    method->fill(ring_of(state, state->to) + place * method->unit, buffer + track->at, some);
    atomic_store_explicit(number_of(method, state->to, place), ++track->unit, memory_order_release);
    track->at += some;
    if (track->at == state->bytes) track->at = 0, ++track->message;
  }
}

/// Empties the units that are full.
static void receive_units(struct streams* state) {
  const struct method* method = state->method;
  struct track* track = &state->received;
  const uint64_t some_units = method->units > most_chunks ? method->units / 4 : 1; // for a word to the sender
  while (track->message < state->window) {
    uint64_t place = place_of(method, track);
    if (atomic_load_explicit(number_of(method, state->from, place), memory_order_acquire) != track->unit + 1)
      return;
    size_t left = state->bytes - track->at, some = left < method->room ? left : method->room;
    copy(pair.in + (size_t)track->message * state->distance + track->at,
         ring_of(state, state->from) + place * method->unit, some);
    if (++track->unit % some_units == 0) raise_to(&state->from->taken, track->unit);
    track->at += some;
    if (track->at == state->bytes) track->at = 0, ++track->message;
  }
}

static void announce_messages(struct streams* state) {
  struct track* track = &state->sent;
  for (; track->message < state->window; ++track->message) {
    if (state->touch)
      rewrite_lines(pair.out + (size_t)track->message * state->distance, state->bytes, state->number);
    raise_to(&state->to->announced, ++track->messages);
  }
}

static void fetch_messages(struct streams* state) {
  struct track* track = &state->received;
  for (; track->message < state->window && seen(&state->from->announced) > track->messages;
       ++track->message) {
    size_t at = (size_t)track->message * state->distance;
    fetch(pair.in + at, at, state->bytes);
    ++track->messages;
  }
}

static bool read_window(const struct streams* state) {
  bool right = true;
  for (int i = 0; i < state->window; ++i)
    right &= read_lines(pair.in + (size_t)i * state->distance, state->bytes, state->number);
  return right;
}

static void windows(void* context, long count) {
  struct streams* state = context;
  const bool by_kernel = state->method->units == 0;
  for (long i = 0; i < count; ++i) {
    if (state->touch) ++state->number;
    state->sent.message = state->sends ? 0 : state->window;
    state->received.message = state->receives ? 0 : state->window;
    state->sent.first = state->sent.unit;
    state->received.first = state->received.unit;
    while (state->sent.message < state->window || state->received.message < state->window) {
      if (by_kernel) {
        announce_messages(state);
        fetch_messages(state);
      } else {
        send_units(state);
        receive_units(state);
      }
    }
    if (state->receives && state->touch) state->right &= read_window(state);
    ++state->windows;
    if (state->receives) raise_to(&state->from->answered, state->windows);
    if (state->sends) wait_for(&state->to->answered, state->windows);
  }
}

/// Resets the channel: no message is in flight, and no number of another method's units is left.
static void reset(struct streams* state) {
  struct channel* to = state->to; // ours to reset: nobody else does anything now
  meet();
  fill_with_numbers(to->ring, ring_bytes);
  raise_to(&to->announced, 0);
  raise_to(&to->taken, 0);
  raise_to(&to->answered, 0);
  for (uint64_t place = 0; place < state->method->units; ++place)
    atomic_store_explicit(number_of(state->method, to, place), 0, memory_order_relaxed);
  state->sent = state->received = (struct track){0};
  state->windows = 0;
  state->number = 0;
  state->right = true;
  for (int i = 0; i < state->window; ++i) {
    rewrite_lines(pair.out + (size_t)i * state->distance, state->bytes, 0);
    rewrite_lines(pair.in + (size_t)i * state->distance, state->bytes, 0xff);
  }
  meet();
}

/// `directions`: 1 when process 0 sends, 2 when both do.
static void measure(struct streams* state, const struct driver* driver, const char* value, int directions) {
  char name[64];
  snprintf(name, sizeof name, "%s:%s", value, state->method->name);
  state->sends = directions == 2 || pair.self == 0;
  state->receives = directions == 2 || pair.self == 1;
  reset(state);
  double each = seconds_each(windows, state, driver);
  meet(); // the last message has been fetched
  require_data(!state->receives || (state->right && read_window(state)), name, state->bytes);
  double messages = directions * state->window / each;
  if (pair.self == 0)
    print_value(name, state->touch ? "rewritten" : "reused", state->bytes,
                strcmp(value, "rate") == 0 ? messages : messages * (double)state->bytes / 1e6);
}

static void measure_size(struct streams* state, const struct arguments* arguments, const char* values) {
  struct driver driver = {arguments->budget, agree_by_memory, pair.self == 0, false};
  for (size_t i = 0; i < sizeof methods / sizeof methods[0]; ++i) {
    state->method = &methods[i];
    if (state->bytes < methods[i].least || state->bytes > methods[i].most) continue;
    if (methods[i].units == 0 && !pair.cma) continue;
    if (methods[i].swaps &&
        (uint64_t)state->window * ((state->bytes + methods[i].unit - 1) / methods[i].unit) > methods[i].units)
      continue;
    for (int touch = 0; touch < 2; ++touch) {
      state->touch = touch;
      if (!wants(arguments, touch ? "rewritten" : "reused")) continue;
      if (strstr(values, "stream") && !methods[i].swaps) measure(state, &driver, "stream", 1);
      if (strstr(values, "both")) measure(state, &driver, "both", 2);
      if (strstr(values, "rate") && !methods[i].swaps) measure(state, &driver, "rate", 1);
    }
  }
}

int main(int argc, char** argv) {
  struct arguments arguments = read_arguments(argc, argv);
  const char* values = argc > 4 ? argv[4] : "stream,both,rate";
  struct channel* channels = new_shared(2 * sizeof *channels);
  start_pair(space_of_windows(&arguments));
  struct streams state = {.to = &channels[pair.self], .from = &channels[!pair.self]};
  for (int i = 0; i < arguments.count; ++i) {
    state.bytes = arguments.sizes[i];
    if (state.bytes == 0) continue;
    state.distance = distance_of(state.bytes);
    state.window = window_of(state.bytes);
    measure_size(&state, &arguments, values);
  }
  return end_pair();
}
