// How a process that has nothing else to do takes messages early.
//
// A program that sends messages before anybody receives them is not safe (MPI 5.0, section 3.5), but such programs are common. Their
// senders use up their credits or packets, announce the next message, and wait. While the receiver is busy that is welcome: the messages
// in flight stay in the caches. But the receiver may be waiting for a later message, or for a process that is itself waiting. So a
// process to which a message is announced, and which then polls in vain for a while, fetches the announced messages, copies those that
// hold credits, and returns credits and packets. NEAR_UNEXPECTED bounds the memory for that; beyond it, senders wait.
//
//   sender                            receiver
//   128 messages  ----------------->  keeps them, with their credits
//   announces one more, waits  ---->  polls in vain 32 times
//                  <----------------  fetches the announced one: FIN; copies what it keeps and returns the credits
//   goes on
//
// Long messages are always announced, and seldom need help. If they are fetched early, their data is copied twice. So they are fetched
// one by one, and only in waits that have lasted for 1 ms, and for long enough to copy the data from the caches. The millisecond is
// halved with each of them, until a receive matches a message.
#include "p2p/early.h"

#include "base/knob.h"
#include "copy/raw.h"
#include "os/clock.h"
#include "os/limits.h"
#include "transport/polling.h"

#include <algorithm>
#include <array>
#include <new>
#include <utility>

namespace near::p2p {

namespace {

/// This many polls in vain, or a wait of this many nanoseconds, mean that this process has nothing else to do. Where ranks share
/// processors, each poll yields.
constexpr int enough_polls = 32;
constexpr std::uint64_t enough_ns = 20'000;
constexpr std::uint64_t least_quiet_ns_for_long = 30'000, bytes_copied_in_ns = 4;
/// At most about this many bytes of short messages are copied in one poll.
constexpr std::uint64_t bytes_at_once = 64 << 10;
/// Whether the machine has more memory is checked in steps of this many bytes, and after a refusal only when this much time has passed.
constexpr std::uint64_t memory_step = 16 << 20, asks_again_ns = 100'000'000;

/// Waiting messages of one kind, oldest first.
struct Waiting {
  Link list{&list, &list};
  std::size_t count = 0;
  bool lacks_space = false; ///< none of the remaining messages fits
  bool may_take() const { return count != 0 && !lacks_space; }

  /// Calls visit(Unexpected&) for each message until it returns false. visit() may remove that message.
  template <class Visit>
  void each(Visit visit) {
    for (Link *at = list.next, *next; at != &list; at = next) {
      next = at->next;
      if (!visit(static_cast<Unexpected&>(*static_cast<EarlyLink*>(at)))) return;
    }
  }
};
std::array<Waiting, 3> kinds;
Waiting& kind(WaitingAs which) { return kinds[static_cast<std::size_t>(which)]; }
Waiting& credited = kind(WaitingAs::credited);
Waiting& short_ones = kind(WaitingAs::announced_short);
Waiting& long_ones = kind(WaitingAs::announced_long);

std::uint64_t taken_bytes = 0, available_bytes = memory_step;
std::uint64_t ask_again_at_ns = 0; ///< if not 0: there is no memory; when to ask again
bool takes_in_background = false;  ///< short messages may be taken; counted in `background`
std::size_t left_of_turn = 0;      ///< short messages still to be taken in the next polls
bool ended = false;
std::size_t fetches = 0; ///< number under way
std::uint32_t known_moves = 0;
std::uint64_t quiet_since_ns = 0, announced_since_ns = 0;
std::uint64_t next_long_after_ns = longest_quiet_ns; ///< a wait takes a long message after this time

/// The memory charged for a message, including its record and its entries in the matching lists.
std::uint64_t counted(std::uint64_t bytes) { return bytes + 512; }

/// Whether NEAR_UNEXPECTED leaves room for the message. Its length may be anything, since another machine may have announced it.
bool fits(const Unexpected& message) {
  const std::uint64_t bound = base::knobs().unexpected.number, bytes = message.envelope.bytes;
  return bytes < bound && counted(bytes) <= bound - taken_bytes;
}

void note_lack_of_memory() { ask_again_at_ns = os::monotonic_ns() + asks_again_ns; }

/// Whether the machine and this process's limits allow the memory for a message that fits.
bool has_memory(const Unexpected& message) {
  const std::uint64_t needed = taken_bytes + counted(message.envelope.bytes);
  if (needed <= available_bytes) return true;
  if (ask_again_at_ns != 0 && os::monotonic_ns() < ask_again_at_ns) return false;
  ask_again_at_ns = 0;
  const std::uint64_t more = std::max(needed - available_bytes, memory_step);
  bool is_there = false;
  try {
    is_there = os::check_memory(more).ok();
  } catch (const std::bad_alloc&) { is_there = false; }
  if (is_there)
    available_bytes += more;
  else
    note_lack_of_memory();
  return is_there;
}

void update() {
  const bool takes = !ended && (left_of_turn != 0 || short_ones.may_take());
  if (takes != std::exchange(takes_in_background, takes)) {
    background += takes ? 1 : -1;
    quiet_polls = 0;
  }
  waits_may_take = !ended && long_ones.may_take();
}

void fetched(transport::Transfer& transfer, int error) {
  auto& fetch = static_cast<Fetch&>(transfer);
  if (fetch.message == nullptr) return;
  Unexpected& message = *fetch.message;
  EngineRequest* const receive = fetch.receive;
  message.fetch = nullptr;
  message.error = error;
  delete &fetch;
  --fetches;
  if (receive != nullptr) consume(message, *receive);
}

enum class Taken : std::uint8_t { here, no_memory, withdrawn };

/// If this throws, the message is lost, and the transport may still refer to `fetch` and the buffer.
bool accept(Unexpected& message, Fetch& fetch, const Buffer& buffer) {
  const transport::RtsHeader rts = message.rts;
  fetch.done = fetched;
  fetch.message = &message;
  message.fetch = &fetch;
  message.is_rts = false;
  ++fetches;
  try {
    if (transport::accept(*message.from, rts, message.envelope.bytes, buffer, fetch)) return true;
    message.is_rts = true;
  } catch (...) {
    fetch.message = nullptr;
    message.fetch = nullptr;
    message.error = MPI_ERR_NO_MEM;
    --fetches;
    remove_waiting(message);
    throw;
  }
  message.fetch = nullptr;
  --fetches;
  return false;
}

Taken fetch(Unexpected& message) {
  auto* fetch = new (std::nothrow) Fetch;
  auto* memory = new (std::nothrow) std::byte[message.envelope.bytes];
  const Buffer buffer{memory, static_cast<MPI_Count>(message.envelope.bytes),
                      datatype::find_datatype(MPI_BYTE)};
  if (fetch != nullptr && memory != nullptr && accept(message, *fetch, buffer)) {
    message.payload = memory;
    return Taken::here;
  }
  const bool withdrawn = fetch != nullptr && memory != nullptr;
  delete fetch;
  delete[] memory;
  return withdrawn ? Taken::withdrawn : Taken::no_memory;
}

Taken copy_and_return_credit(Unexpected& message) {
  const std::uint64_t bytes = message.envelope.bytes;
  if (message.packet != 0) {
    auto* memory = new (std::nothrow) std::byte[bytes];
    if (memory == nullptr) return Taken::no_memory;
    copy::raw(memory, message.payload, bytes);
    message.payload = memory;
    transport::give_back_packet(*message.from, std::exchange(message.packet, 0));
  }
  message.has_credit = false;
  transport::give_back_credit(*message.from, bytes);
  return Taken::here;
}

/// Takes a message that fits. Returns whether it is here; if there is no memory, it continues to wait.
bool take_here(Unexpected& message) {
  if (!has_memory(message)) return false;
  const Taken taken = message.is_rts ? fetch(message) : copy_and_return_credit(message);
  if (taken == Taken::no_memory) {
    note_lack_of_memory();
    return false;
  }
  remove_waiting(message);
  if (taken == Taken::withdrawn) return false;
  ask_again_at_ns = 0;
  message.is_taken = true;
  taken_bytes += counted(message.envelope.bytes);
  return true;
}

/// Takes this turn's short messages until enough has been copied for this poll: announced ones first, since their senders are waiting.
bool take_short_ones() {
  bool moved = false, enough = false;
  std::uint64_t copied = 0;
  for (Waiting* which : {&short_ones, &credited}) {
    which->each([&](Unexpected& message) {
      enough = copied > bytes_at_once || left_of_turn == 0;
      if (enough || !fits(message)) return !enough;
      copied += counted(message.envelope.bytes);
      --left_of_turn;
      moved |= take_here(message);
      enough = ask_again_at_ns != 0;
      return !enough;
    });
    if (enough) break;
  }
  if (!enough) { // both lists have ended: nothing else fits
    short_ones.lacks_space = short_ones.count != 0;
    left_of_turn = 0;
  }
  if (ask_again_at_ns != 0) left_of_turn = 0;
  if (left_of_turn == 0) announced_since_ns = os::monotonic_ns();
  return moved;
}

bool take_long_one(std::uint64_t quiet_ns) {
  if (receives_under_way != 0 || fetches != 0) return false;
  bool moved = false;
  std::uint64_t soonest_ns = ~std::uint64_t{0};
  long_ones.each([&](Unexpected& message) {
    if (!fits(message)) return true;
    const std::uint64_t due_ns = std::max(quiet_ns_for_long, message.envelope.bytes / bytes_copied_in_ns);
    soonest_ns = std::min(soonest_ns, due_ns);
    if (quiet_ns < due_ns) return true;
    moved = take_here(message);
    return false;
  });
  long_ones.lacks_space = soonest_ns == ~std::uint64_t{0};
  if (moved) quiet_ns_for_long = std::max(quiet_ns_for_long / 2, least_quiet_ns_for_long);
  next_long_after_ns = moved ? quiet_ns_for_long : soonest_ns;
  return moved;
}

} // namespace

void add_waiting(Unexpected& message) {
  message.waiting_as = !message.is_rts                                      ? WaitingAs::credited
                       : message.envelope.bytes <= transport::eager_limit() ? WaitingAs::announced_short
                                                                            : WaitingAs::announced_long;
  Waiting& its = kind(message.waiting_as);
  link_last(its.list, static_cast<EarlyLink&>(message));
  if (++its.count == 1 && &its == &short_ones) announced_since_ns = os::monotonic_ns();
  if (&its == &credited) return;
  if (fits(message)) its.lacks_space = false;
  if (&its == &long_ones) next_long_after_ns = std::min(next_long_after_ns, quiet_ns_for_long);
  update();
}

void remove_waiting(Unexpected& message) {
  if (message.waiting_as == WaitingAs::none) return;
  Waiting& its = kind(std::exchange(message.waiting_as, WaitingAs::none));
  unlink(static_cast<EarlyLink&>(message));
  if (--its.count == 0 && &its != &credited) update();
}

bool take_early(bool waits) {
  const bool takes_short = takes_in_background, takes_long = waits && waits_may_take;
  if (!takes_short && !takes_long) return false;
  if (std::exchange(known_moves, transport::moves) != transport::moves) quiet_polls = 0;
  const std::uint64_t now = os::monotonic_ns();
  if (quiet_polls == 0) quiet_since_ns = now;
  if (quiet_polls < enough_polls) ++quiet_polls;
  const std::uint64_t quiet_ns = now - quiet_since_ns;
  bool moved = false;
  if (takes_short) {
    if (left_of_turn == 0) {
      if (quiet_polls < enough_polls && !(waits && quiet_ns >= enough_ns) &&
          now - announced_since_ns < longest_wait_ns)
        return false;
      left_of_turn = short_ones.count + credited.count;
    }
    moved = take_short_ones();
  } else if (quiet_ns >= next_long_after_ns) {
    moved = take_long_one(quiet_ns);
  }
  if (moved) {
    quiet_polls = 0;
    transport::note_progress(); // so a wait keeps polling before it sleeps again
  }
  update();
  return moved;
}

std::uint64_t longest_sleep_before_taking() {
  if (ask_again_at_ns != 0) return transport::no_sleep_bound; // that is soon enough
  return takes_in_background ? enough_ns : waits_may_take ? next_long_after_ns : transport::no_sleep_bound;
}

void end_taking() {
  ended = true;
  update();
}

void begin_taking() {
  ended = false;
  update();
}

bool is_fetching() { return fetches != 0; }

void release_taken(std::uint64_t bytes) {
  taken_bytes -= counted(bytes);
  if (!short_ones.lacks_space && !long_ones.lacks_space) return;
  short_ones.lacks_space = long_ones.lacks_space = false;
  next_long_after_ns = quiet_ns_for_long;
  update();
  transport::wake_waiting_threads(); // a thread may be sleeping for longer than it now should
}

} // namespace near::p2p
