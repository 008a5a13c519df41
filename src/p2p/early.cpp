// What a process that has nothing else to do takes early.
//
// A program that sends messages before anybody receives them is not safe (MPI 5.0, section 3.5), but such programs are common. Their
// senders use up their credits or packets, announce the next message, and wait. While its receiver is busy that is welcome: what is on
// its way stays in the caches. But a receiver may wait for a message behind these, or for a process that waits likewise. So a process
// to which a message is announced, and which then polls in vain for a while, copies the messages that hold credits and packets, returns
// these, and fetches what is announced. NEAR_UNEXPECTED bounds the memory for that; beyond it, senders wait.
//
//   sender                            receiver
//   128 messages  ----------------->  keeps them, with their credits
//   announces one more, waits  ---->  polls in vain 32 times
//                  <----------------  copies what it keeps and returns the credits; fetches the announced one: FIN
//   goes on
//
// Long messages are always announced, and usually need no help. Each is fetched after a longer quiet time only, since its data is then
// copied twice. That time shrinks while one long message after another is fetched and no receive gets any.
#include "p2p/early.h"

#include "base/knob.h"
#include "copy/raw.h"
#include "os/clock.h"

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

namespace near::p2p {

namespace {

/// So many polls in vain, or so much time, say that this process has nothing else to do. Where ranks share processors, each poll yields.
constexpr int quiet_polls_for_short = 32;
constexpr std::uint64_t quiet_ns_for_short = 20'000, least_quiet_ns_for_long = 30'000;

using Waiting = std::vector<Unexpected*>;
auto& short_ones = *new Waiting; // never destroyed
auto& long_ones = *new Waiting;
std::uint64_t taken_bytes = 0;
bool announces_short = false; ///< one of the short ones is announced: its sender waits
bool lacks_space = false;     ///< some were left
bool starving = false;        ///< something may be taken soon; counted in `background` while true
bool ended = false;           ///< end_taking() was called
std::size_t fetches = 0;      ///< under way
std::uint64_t quiet_since_ns = 0;

/// What a message counts: with its record, and what finds it.
std::uint64_t counted(std::uint64_t bytes) { return bytes + 512; }

bool has_space(const Unexpected& message) {
  return taken_bytes + counted(message.envelope.bytes) <= base::knobs().unexpected.number;
}

Waiting& list_of(const Unexpected& message) {
  return message.is_rts && message.envelope.bytes > transport::eager_limit() ? long_ones : short_ones;
}

void update() {
  const bool waits = !ended && (announces_short || (!long_ones.empty() && !lacks_space));
  if (waits != std::exchange(starving, waits)) {
    background += waits ? 1 : -1;
    quiet_polls = 0;
  }
  transport::sleep_bound_ns = !waits            ? transport::no_sleep_bound
                              : announces_short ? quiet_ns_for_short
                                                : quiet_ns_for_long;
}

void fetched(transport::Transfer& transfer, int error) {
  auto& fetch = static_cast<Fetch&>(transfer);
  Unexpected& message = *fetch.message;
  EngineRequest* const receive = fetch.receive;
  message.fetch = nullptr;
  message.error = error;
  delete &fetch;
  --fetches;
  if (receive != nullptr) consume(message, *receive);
}

/// Returns false if the sender has withdrawn the message, or if there is no memory.
bool fetch(Unexpected& message, std::byte* memory) {
  auto* fetch = new (std::nothrow) Fetch;
  if (fetch == nullptr) return false;
  const transport::RtsHeader rts = message.rts;
  fetch->done = fetched;
  fetch->message = &message;
  message.fetch = fetch;
  message.is_rts = false;
  ++fetches;
  const Buffer buffer{memory, static_cast<MPI_Count>(message.envelope.bytes),
                      datatype::find_datatype(MPI_BYTE)};
  if (transport::accept(*message.from, rts, message.envelope.bytes, buffer, *fetch)) return true;
  message.fetch = nullptr;
  message.is_rts = true;
  --fetches;
  delete fetch;
  return false;
}

/// Takes a message for which there is space. It no longer waits, even if there is no memory or its sender has withdrawn it: then this
/// returns false, and the message stays as it is.
bool take_here(Unexpected& message) {
  remove_waiting(message);
  const std::uint64_t bytes = message.envelope.bytes;
  std::byte* memory = nullptr;
  if (message.is_rts || message.packet != 0) {
    memory = new (std::nothrow) std::byte[bytes];
    if (memory == nullptr) return false;
  }
  if (message.is_rts) {
    if (!fetch(message, memory)) {
      delete[] memory;
      return false;
    }
    message.payload = memory;
  } else {
    if (memory != nullptr) {
      copy::raw(memory, message.payload, bytes);
      message.payload = memory;
      transport::give_back_packet(*message.from, std::exchange(message.packet, 0));
    }
    message.has_credit = false;
    transport::give_back_credit(*message.from, bytes);
  }
  message.is_taken = true;
  taken_bytes += counted(bytes);
  return true;
}

bool take_short_ones() {
  bool moved = false;
  announces_short = false;
  for (std::size_t i = short_ones.size(); i-- > 0;) {
    Unexpected& message = *short_ones[i]; // the last one takes its place, and has had its turn
    if (has_space(message))
      moved |= take_here(message);
    else
      lacks_space = true;
  }
  return moved;
}

bool take_long_one() {
  const auto found = std::find_if(long_ones.begin(), long_ones.end(),
                                  [](const Unexpected* each) { return has_space(*each); });
  if (found == long_ones.end()) {
    lacks_space = true;
    return false;
  }
  quiet_ns_for_long = std::max(quiet_ns_for_long / 2, least_quiet_ns_for_long);
  return take_here(**found);
}

} // namespace

bool reserve_waiting(std::size_t messages) {
  try {
    short_ones.reserve(messages);
    long_ones.reserve(messages);
  } catch (const std::bad_alloc&) { return false; }
  return true;
}

void add_waiting(Unexpected& message) {
  Waiting& list = list_of(message);
  message.waiting_at = list.size();
  list.push_back(&message);
  if (!message.is_rts) return;
  if (&list == &short_ones) announces_short = true;
  update();
}

void remove_waiting(Unexpected& message) {
  const std::size_t at = message.waiting_at;
  if (at == Unexpected::not_waiting) return;
  Waiting& list = list_of(message);
  list[at] = list.back();
  list[at]->waiting_at = at;
  list.pop_back();
  message.waiting_at = Unexpected::not_waiting; // after the line that may concern it, too
  if (!starving || !list.empty()) return;
  if (&list == &short_ones) announces_short = false;
  update();
}

bool take_early() {
  if (!starving) return false;
  const std::uint64_t now = os::monotonic_ns();
  if (quiet_polls++ == 0) quiet_since_ns = now;
  const std::uint64_t quiet_ns = now - quiet_since_ns;
  bool moved = false;
  if (announces_short) {
    if (quiet_polls < quiet_polls_for_short && quiet_ns < quiet_ns_for_short) return false;
    moved = take_short_ones();
  } else {
    if (quiet_ns < quiet_ns_for_long) return false;
    moved = take_long_one();
  }
  quiet_polls = 0;
  update();
  return moved;
}

bool end_taking() {
  ended = true;
  update();
  return fetches == 0;
}

void release_taken(std::uint64_t bytes) {
  taken_bytes -= counted(bytes);
  if (!std::exchange(lacks_space, false)) return;
  announces_short = !short_ones.empty();
  update();
}

} // namespace near::p2p
