// See handed_calls.h.
#include "rma/handed_calls.h"

#include "base/kill_point.h"
#include "memory/allocate.h"
#include "os/clock.h"
#include "rma/creation.h"
#include "transport/doorbell.h"
#include "transport/registry.h"

#include <algorithm>
#include <new>
#include <utility>

namespace near::rma {

namespace {

using queue::Number;

/// Operations on a target before it is worth allocating a ring, which costs as much as about 30 of them.
constexpr std::uint32_t operations_without_ring = 32;
/// The most rings that a process allocates for all its windows together: 1 MiB.
constexpr int most_allocated_rings = 64;
int allocated_rings = 0;
/// How long to wait for a target: as long as the kernel's copy that replaces its answer.
constexpr std::uint64_t wait_ns = 2'000;
/// How long to wait if the target did not answer the last time. Two processes that access each other may both miss the other's
/// answer because each copies for so long; the next time one of them has to wait until the other is done.
constexpr std::uint64_t wait_again_ns = 4'000;
/// How long to wait if the target had to be woken.
constexpr std::uint64_t wait_for_waking_ns = 50'000;
/// A single operation longer than this is not handed to a target that is not waited for: it would be copied twice for nothing.
constexpr std::uint32_t longest_in_vain = 1024;

/// If ranks share processors, the target would need the processor of the process that waits for it.
bool never_waits() { return transport::wait_settings.oversubscribed; }

/// Keeps a buffer's datatype alive, because the buffer is used after the call.
void keep(const Buffer& buffer) {
  if (!buffer.type->predefined) object::keep(buffer.type);
}
void release(Buffer& buffer) {
  if (buffer.type != nullptr && !buffer.type->predefined) datatype::release(buffer.type);
  buffer = {};
}

} // namespace

HandedCalls::HandedCalls(Window& window)
    : window_(window), targets_(static_cast<std::size_t>(window.communicator->size)) {}

HandedCalls::~HandedCalls() {
  for (const auto& target : targets_)
    if (target != nullptr && target->ring_is_ours) {
      memory::free_shareable(target->ring);
      --allocated_rings;
    }
}

std::byte* HandedCalls::Target::scratch_of(const HandedCall& call, Number number) const {
  if (call.at != HandedCall::here) return scratch.get() + call.at;
  return scratch.get() + CallRing::data_bytes + number % CallRing::most * HandedCall::short_bytes;
}

HandedCalls::Target& HandedCalls::target(int rank) {
  auto& found = targets_[static_cast<std::size_t>(rank)];
  if (found == nullptr) found = std::make_unique<Target>();
  return *found;
}

bool HandedCalls::is_worth_ring(Target& target) const {
  return !state_of(window_).spare_rings.empty() || ++target.operations > operations_without_ring;
}

/// Makes a ring and adds it to its target's list. Returns false if there is no memory for it.
bool HandedCalls::make_ring(Target& target, int rank) {
  with_ring_.reserve(with_ring_.size() + 1);
  auto& spare = state_of(window_).spare_rings;
  void* memory = nullptr;
  if (!spare.empty()) {
    memory = spare.data();
    spare = spare.subspan(1);
  } else {
    if (allocated_rings == most_allocated_rings || !memory::has_ample_space()) return false;
    memory = memory::allocate_shareable(sizeof(CallRing), {});
    if (memory == nullptr) return false;
    target.ring_is_ours = true;
    ++allocated_rings;
  }
  target.ring = new (memory) CallRing;
  SharedPart& part = *state_of(window_).members[static_cast<std::size_t>(rank)].locks;
  const Offset offset = shared_offset(memory);
  Offset newest = part.rings.load_relaxed();
  do {
    target.ring->next = newest;
    // SYNC: call-rings. Release: the ring has been set up.
  } while (!part.rings.cas_release(newest, offset));
  with_ring_.push_back(rank);
  return true;
}

/// Lists the runs of memory with gaps. Returns false if there are too many.
bool HandedCalls::find_runs(const Buffer& there) {
  constexpr std::size_t most_pieces = 1024; // as many as one system call takes
  pieces_.clear();
  runs_.clear();
  if (datatype::pieces(there, 0, there.bytes(), pieces_, most_pieces) != there.bytes()) return false;
  for (const auto& piece : pieces_)
    append(runs_, reinterpret_cast<std::uint64_t>(piece.address), piece.bytes);
  return runs_.size() <= CallRing::most_runs;
}

Result HandedCalls::hand(int rank, const Handing& operation, bool& handed) {
  const MPI_Count bytes = operation.there.bytes();
  handed = false;
  if (bytes > CallRing::longest) return finish(rank, Where::target);
  const auto length = static_cast<std::uint32_t>(bytes);
  const std::uint32_t data = (operation.operand_count + (operation.into != nullptr ? 1u : 0u)) * length;
  Target& to = target(rank);
  if (to.ring == nullptr && (!is_worth_ring(to) || !make_ring(to, rank))) return {};
  const bool has_gaps = !operation.there.is_contiguous();
  if (has_gaps && !find_runs(operation.there)) return finish(rank, Where::target);
  const std::size_t runs = has_gaps ? runs_.size() : 0;
  const auto all = static_cast<std::uint32_t>(runs * sizeof(Run)) + data;
  if (all > CallRing::data_bytes) return finish(rank, Where::target);
  if (length > longest_in_vain && to.handed == to.collected && (never_waits() || !to.waiting.tries()))
    return {};
  const bool is_short = !has_gaps && data <= HandedCall::short_bytes;
  constexpr std::uint32_t alignment = 64;
  const std::uint32_t space = is_short ? 0 : (all + alignment - 1) / alignment * alignment;
  bool waited = false;
  for (; to.busy || to.handed - to.collected == CallRing::most || to.used + space > CallRing::data_bytes;
       waited = true)
    NEAR_TRY(complete(to, rank));
  if (waited && has_gaps) (void)find_runs(operation.there); // another thread may have listed others

  const Number number = to.handed + 1;
  HandedCall& call = to.ring->call(number);
  call.address = has_gaps ? 0 : reinterpret_cast<std::uint64_t>(operation.there.contiguous_start());
  call.bytes = length;
  call.at = is_short ? HandedCall::here : to.used;
  call.operation = operation.operation;
  call.element = operation.element;
  call.kind = operation.kind;
  call.operands = operation.operand_count;
  call.fetches = operation.into != nullptr ? 1 : 0;
  call.runs = static_cast<std::uint16_t>(runs);
  if (has_gaps) std::copy_n(runs_.begin(), runs, to.ring->runs_of(call));
  std::byte* at = to.ring->data_of(call);
  for (std::uint8_t i = 0; i < operation.operand_count; ++i, at += length)
    datatype::pack(operation.operands[i], 0, at, static_cast<MPI_Count>(length));
  Buffer& into = to.into[number % CallRing::most];
  into = operation.into != nullptr ? *operation.into : Buffer{};
  if (into.type != nullptr) {
    ++to.results;
    keep(into);
  }
  Buffer& there = to.there[number % CallRing::most];
  there = has_gaps ? operation.there : Buffer{};
  if (has_gaps) keep(there);
  to.used += space;
  to.handed = number;
  call.number.raise(number);
  NEAR_KILL_POINT("call-handed");
  base::fetch_for_writing(&to.ring->call(number + 1));
  handed = true;
  return {};
}

/// Takes the results of the calls that are complete.
void HandedCalls::collect(Target& target) {
  const Number completed = target.ring->turn.completed();
  if (completed != target.collected) transport::count_handed(completed - target.collected, 0);
  while (target.collected < completed) {
    HandedCall& call = target.ring->call(++target.collected);
    Buffer& into = target.into[target.collected % CallRing::most];
    if (call.is_outside != 0)
      target.failure.note(base::fail(MPI_ERR_RMA_RANGE,
                                     "an operation refers to memory that is no longer attached to {}",
                                     object::describe(window_)));
    else if (into.type != nullptr) {
      const std::byte* const before = target.ring->before_of(call);
      datatype::unpack(into, 0, before, call.bytes);
      note_found(state_of(window_), before, call.bytes);
    }
    if (into.type != nullptr) --target.results;
    release(into);
    release(target.there[target.collected % CallRing::most]);
  }
  if (target.collected == target.handed) target.used = 0;
}

Result HandedCalls::complete(Target& target, int rank) {
  if (target.busy) {
    ++target.threads_waiting;
    p2p::wait_until([&target] { return !target.busy; });
    --target.threads_waiting;
  }
  if (target.handed != target.collected) {
    const struct Scope {
      explicit Scope(Target& target) : target_(target) { target_.busy = true; }
      ~Scope() {
        target_.busy = false;
        if (target_.threads_waiting != 0) transport::wake_waiting_threads();
      }
      Target& target_;
    } scope(target);
    collect(target);
    bool answered = target.handed == target.collected || is_answered(target, rank);
    // The target may be waiting for us in the same way; what it handed over before it answered has arrived.
    if (answered)
      serve_others();
    else
      answered = take_back(target, rank);
    if (answered) {
      target.waiting.succeeded();
      target.waking.answered();
    } else {
      target.waking.not_answered();
    }
  }
  return std::exchange(target.failure, {}).tell();
}

Result HandedCalls::finish_all(Where where) {
  FirstFailure failure;
  // By index, since another thread may add a ring meanwhile.
  for (std::size_t i = 0; i < with_ring_.size(); ++i) failure.note(finish(with_ring_[i], where));
  return failure.tell();
}

/// Whether the target carries out everything within a short time.
bool HandedCalls::is_answered(Target& target, int rank) {
  if (never_waits()) return false;
  const std::uint64_t now = os::monotonic_ns();
  segment::Doorbell* bell = peer_of(window_, rank).send.doorbell;
  const bool sleeps = bell != nullptr && bell->sleeping.load_relaxed() != 0;
  const bool wakes = target.waking.begins(now) && sleeps && target.waking.tries();
  if (wakes)
    transport::DoorbellCalls::ring(bell->sleeping, bell->bell);
  else if (sleeps || !target.waiting.tries())
    return false;
  const std::uint64_t until = now + (wakes                         ? wait_for_waking_ns
                                     : target.waiting.has_failed() ? wait_again_ns
                                                                   : wait_ns);
  do {
    for (int polls = 0; polls < 4; ++polls) {
      p2p::progress();
      collect(target);
      if (target.handed == target.collected) return true;
      base::cpu_relax();
    }
    if (wakes) transport::give_way(); // other threads may call MPI
  } while (os::monotonic_ns() < until);
  target.waiting.failed();
  return false;
}

/// Carries out what others have handed to this process.
void HandedCalls::serve_others() {
  if (RingServer* server = state_of(window_).server.get()) server->advance();
}

/// Carries out what the target has not. Returns whether nothing was left.
bool HandedCalls::take_back(Target& target, int rank) {
  serve_others(); // they may be waiting, and the kernel's copies take long
  if (target.scratch == nullptr)
    target.scratch = std::make_unique_for_overwrite<std::byte[]>(CallRing::data_bytes +
                                                                 CallRing::most * HandedCall::short_bytes);
  queue::CallTurn<>& turn = target.ring->turn;
  Number completed = 0;
  // While the target has the turn, it is about to complete everything or is waiting for its processor.
  for (int polls = 1; !turn.take(queue::CallTurn<>::Holder::origin, completed); ++polls)
    if (polls % 64 == 0) {
      p2p::progress();
      transport::give_way();
    } else {
      base::cpu_relax();
    }
  NEAR_KILL_POINT("calls-taken-back");
  try {
    if (completed != target.handed) carry_out(target, rank, completed + 1);
  } catch (...) {
    turn.leave(target.handed);
    forget(target);
    throw;
  }
  turn.leave(target.handed);
  transport::count_handed(0, target.handed - completed);
  collect(target);
  serve_others();
  return completed == target.handed;
}

/// Discards all results because there was no memory to complete the calls. The call that tried reports that.
void HandedCalls::forget(Target& target) {
  for (Buffer& into : target.into) release(into);
  for (Buffer& there : target.there) release(there);
  target.results = target.used = 0;
  target.collected = target.handed;
}

} // namespace near::rma
