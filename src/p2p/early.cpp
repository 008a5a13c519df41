// How a process that has nothing else to do takes messages early.
//
// A program that sends messages before anybody receives them is not safe (MPI 5.0, section 3.5), but such programs are common. Their
// senders use up their credits or packets, announce the next message, and wait. While its receiver is busy that is welcome: the messages
// on their way stay in the caches. But a receiver may wait for a message behind these, or for a process that waits likewise. So a
// process to which a message is announced, and which then polls in vain for a while, fetches the announced messages, copies those that
// hold credits, and returns credits and packets. NEAR_UNEXPECTED bounds the memory for that; beyond it, senders wait.
//
//   sender                            receiver
//   128 messages  ----------------->  keeps them, with their credits
//   announces one more, waits  ---->  polls in vain 32 times
//                  <----------------  fetches the announced one: FIN; copies what it keeps and returns the credits
//   goes on
//
// Long messages are always announced, and seldom need help. Fetched early, their data is copied twice: so that is done one by one, and
// only in waits that have lasted as long as the copy takes, or 1 ms if that is longer. The millisecond is halved with each of them,
// until a receive gets a message.
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
#include <vector>

namespace near::p2p {

namespace {

/// So many polls in vain, or a wait of so many nanoseconds, say that this process has nothing else to do. Where ranks share processors,
/// each poll yields.
constexpr int enough_polls = 32;
constexpr std::uint64_t enough_ns = 20'000;
/// After this time short messages are taken even if others keep coming: these may depend on them.
constexpr std::uint64_t longest_wait_ns = 10'000'000;
constexpr std::uint64_t least_quiet_ns_for_long = 30'000, bytes_copied_in_ns = 4;
/// At most about so many bytes of short messages are copied in one poll.
constexpr std::uint64_t bytes_at_once = 64 << 10;
/// Whether more memory is available is asked in steps of so many bytes.
constexpr std::uint64_t memory_step = 16 << 20;

std::array<std::vector<Unexpected*>, 3>& lists =
    *new std::array<std::vector<Unexpected*>, 3>; // never destroyed
auto& credited = lists[static_cast<std::size_t>(WaitingAs::credited)];
auto& short_ones = lists[static_cast<std::size_t>(WaitingAs::announced_short)];
auto& long_ones = lists[static_cast<std::size_t>(WaitingAs::announced_long)];

std::uint64_t taken_bytes = 0, available_bytes = memory_step;
bool short_lack_space = false, long_lack_space = false; ///< there is no space for any of them
bool may_take = false;                                  ///< counted in `background` while true
bool takes_short = false;                               ///< it has begun to, and goes on at the next poll
bool ended = false;
std::size_t fetches = 0; ///< under way
std::uint32_t known_moves = 0;
std::uint64_t quiet_since_ns = 0, announced_since_ns = 0;

/// What a message counts, with its record and its place in the lists for matching.
std::uint64_t counted(std::uint64_t bytes) { return bytes + 512; }

/// Whether NEAR_UNEXPECTED has space for the message. Its length may be anything, since another machine may have announced it.
bool fits(const Unexpected& message) {
  const std::uint64_t bound = base::knobs().unexpected.number, bytes = message.envelope.bytes;
  return bytes < bound && counted(bytes) <= bound - taken_bytes;
}

/// The same, and the machine and the limits of this process have the memory.
bool has_space(const Unexpected& message) {
  if (!fits(message)) return false;
  const std::uint64_t needed = taken_bytes + counted(message.envelope.bytes);
  if (needed <= available_bytes) return true;
  const std::uint64_t more = std::max(needed - available_bytes, memory_step);
  if (!os::check_memory(more).ok()) return false;
  available_bytes += more;
  return true;
}

void update() {
  const bool has_short = takes_short || (!short_ones.empty() && !short_lack_space);
  const bool takes = !ended && (has_short || (!long_ones.empty() && !long_lack_space));
  if (takes != std::exchange(may_take, takes)) {
    background += takes ? 1 : -1;
    quiet_polls = 0;
  }
  transport::sleep_bound_ns = !takes ? transport::no_sleep_bound : has_short ? enough_ns : longest_quiet_ns;
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

enum class Accepted : std::uint8_t { yes, no, failed };

/// no: the sender has withdrawn the message. failed: the message is lost for lack of memory; the transport may still know `fetch` and the
/// buffer.
Accepted accept(Unexpected& message, Fetch& fetch, const Buffer& buffer) {
  const transport::RtsHeader rts = message.rts;
  fetch.done = fetched;
  fetch.message = &message;
  message.fetch = &fetch;
  message.is_rts = false;
  ++fetches;
  try {
    if (transport::accept(*message.from, rts, message.envelope.bytes, buffer, fetch)) return Accepted::yes;
    message.is_rts = true;
  } catch (const std::bad_alloc&) {
    fetch.message = nullptr;
    message.error = MPI_ERR_NO_MEM;
  }
  message.fetch = nullptr;
  --fetches;
  return message.is_rts ? Accepted::no : Accepted::failed;
}

/// Returns false if the sender has withdrawn the message, or if there is no memory.
bool fetch(Unexpected& message) {
  auto* fetch = new (std::nothrow) Fetch;
  auto* memory = new (std::nothrow) std::byte[message.envelope.bytes];
  const Buffer buffer{memory, static_cast<MPI_Count>(message.envelope.bytes),
                      datatype::find_datatype(MPI_BYTE)};
  const Accepted accepted =
      fetch != nullptr && memory != nullptr ? accept(message, *fetch, buffer) : Accepted::no;
  if (accepted == Accepted::no) {
    delete fetch;
    delete[] memory;
    return false;
  }
  message.payload = accepted == Accepted::yes ? memory : nullptr;
  return true;
}

/// Returns false if there is no memory.
bool copy_and_return_credit(Unexpected& message) {
  const std::uint64_t bytes = message.envelope.bytes;
  if (message.packet != 0) {
    auto* memory = new (std::nothrow) std::byte[bytes];
    if (memory == nullptr) return false;
    copy::raw(memory, message.payload, bytes);
    message.payload = memory;
    transport::give_back_packet(*message.from, std::exchange(message.packet, 0));
  }
  message.has_credit = false;
  transport::give_back_credit(*message.from, bytes);
  return true;
}

/// Takes a message for which there is space. It waits no longer, even if this returns false and the message stays as it is.
bool take_here(Unexpected& message) {
  remove_waiting(message);
  if (!(message.is_rts ? fetch(message) : copy_and_return_credit(message))) return false;
  message.is_taken = true;
  taken_bytes += counted(message.envelope.bytes);
  return true;
}

/// Takes short messages, those that are announced first, until enough has been copied for this poll.
bool take_short_ones() {
  bool moved = false;
  std::uint64_t copied = 0;
  takes_short = true;
  for (auto* list : {&short_ones, &credited})
    while (!list->empty() && !short_lack_space) {
      Unexpected& message = *list->back();
      if (!has_space(message)) {
        short_lack_space = true;
        break;
      }
      if (copied > bytes_at_once) return moved;
      copied += counted(message.envelope.bytes);
      moved |= take_here(message);
    }
  takes_short = false;
  return moved;
}

bool take_long_one(std::uint64_t quiet_ns) {
  if (receives_under_way != 0 || fetches != 0 || quiet_ns < quiet_ns_for_long) return false;
  const auto found = std::find_if(long_ones.begin(), long_ones.end(),
                                  [](const Unexpected* each) { return has_space(*each); });
  if (found == long_ones.end()) {
    long_lack_space = true;
    return false;
  }
  if (quiet_ns < (*found)->envelope.bytes / bytes_copied_in_ns) return false;
  quiet_ns_for_long = std::max(quiet_ns_for_long / 2, least_quiet_ns_for_long);
  return take_here(**found);
}

} // namespace

bool reserve_waiting(std::size_t messages) {
  try {
    for (auto& list : lists) list.reserve(messages);
  } catch (const std::bad_alloc&) { return false; }
  return true;
}

void add_waiting(Unexpected& message) {
  message.waiting_as = !message.is_rts                                      ? WaitingAs::credited
                       : message.envelope.bytes <= transport::eager_limit() ? WaitingAs::announced_short
                                                                            : WaitingAs::announced_long;
  auto& list = lists[static_cast<std::size_t>(message.waiting_as)];
  message.waiting_at = list.size();
  list.push_back(&message);
  if (&list == &credited) return;
  if (&list == &short_ones && list.size() == 1) announced_since_ns = os::monotonic_ns();
  if (fits(message)) (&list == &short_ones ? short_lack_space : long_lack_space) = false;
  update();
}

void remove_waiting(Unexpected& message) {
  if (message.waiting_as == WaitingAs::none) return;
  auto& list = lists[static_cast<std::size_t>(message.waiting_as)];
  const std::size_t at = message.waiting_at;
  list[at] = list.back();
  list[at]->waiting_at = at;
  list.pop_back();
  message.waiting_as = WaitingAs::none;
  if (may_take && list.empty()) update();
}

bool take_early(bool waits) {
  if (!may_take) return false;
  if (std::exchange(known_moves, transport::moves) != transport::moves) quiet_polls = 0;
  const std::uint64_t now = os::monotonic_ns();
  if (quiet_polls++ == 0) quiet_since_ns = now;
  const std::uint64_t quiet_ns = now - quiet_since_ns;
  bool moved = false;
  if (takes_short || (!short_ones.empty() && !short_lack_space)) {
    if (!takes_short && quiet_polls < enough_polls && !(waits && quiet_ns >= enough_ns) &&
        now - announced_since_ns < longest_wait_ns)
      return false;
    moved = take_short_ones();
  } else if (waits) {
    moved = take_long_one(quiet_ns);
  }
  if (moved) quiet_polls = 0;
  update();
  return moved;
}

void end_taking() {
  ended = true;
  update();
}

bool is_fetching() { return fetches != 0; }

void release_taken(std::uint64_t bytes) {
  taken_bytes -= counted(bytes);
  if (!short_lack_space && !long_lack_space) return;
  short_lack_space = long_lack_space = false;
  update();
  transport::wake_waiting_threads(); // a thread may sleep longer than it should now
}

} // namespace near::p2p
