// The part of handed calls that the origin carries out itself because their target has not begun in time (handed_calls.h). The
// kernel copies, and each system call moves as much as possible. The origin has the turn.
#include "comm/exchange.h"
#include "copy/raw.h"
#include "rma/access.h"
#include "rma/through_kernel.h"

#include <algorithm>

namespace near::rma {

namespace {

using queue::Number;

bool changes_elements(const HandedCall& call) {
  return call.kind == HandedKind::accumulate || call.kind == HandedKind::compare_and_swap;
}

/// Up to one run for each call in a ring.
struct Runs {
  std::array<os::Run, CallRing::most> theirs, mine;
  std::array<bool, CallRing::most> copied{};
  std::size_t count = 0;

  void add(const HandedCall& call, std::byte* here) {
    theirs[count] = {reinterpret_cast<void*>(call.address), call.bytes};
    mine[count++] = {here, call.bytes};
  }
  /// Copies all runs by the kernel, or those that it reaches; then `copied` says which, and the first failure is returned.
  Result copy(transport::Peer& peer, bool writes) {
    if (count == 0) return {};
    std::array<os::Run, CallRing::most> to, from; // the transport may change them
    std::copy_n(theirs.begin(), count, to.begin());
    std::copy_n(mine.begin(), count, from.begin());
    const std::span<os::Run> all = std::span(to).first(count), ours = std::span(from).first(count);
    if (writes ? transport::copy_to_peer(peer, all, ours) : transport::copy_from_peer(peer, all, ours)) {
      copied.fill(true);
      return {};
    }
    FirstFailure failure;
    for (std::size_t i = 0; i < count; ++i) {
      const Buffer here = comm::byte_buffer(mine[i].address, mine[i].bytes),
                   there = comm::byte_buffer(theirs[i].address, theirs[i].bytes);
      const Result done =
          writes ? store_through_kernel(here, there, peer) : load_through_kernel(here, there, peer);
      copied[i] = done.ok();
      failure.note(done);
      if (!done.ok() && object::error_class(done) == MPI_ERR_PROC_ABORTED)
        break; // each further call would take seconds
    }
    return failure.tell();
  }
};

bool overlap(const HandedCall& one, const HandedCall& other) {
  return one.address < other.address + other.bytes && other.address < one.address + one.bytes;
}

} // namespace

/// Carries out the calls from `first` on.
void HandedCalls::carry_out(Target& target, int rank, Number first) {
  bool changes = false;
  for (Number number = first; number <= target.handed; ++number) {
    HandedCall& call = target.ring->call(number);
    call.is_outside = 0; // its address was checked when it was handed over
    changes |= changes_elements(call);
  }
  const auto is_dead = [&target] { return target.failure.is(MPI_ERR_PROC_ABORTED); };
  move(target, rank, HandedKind::put, first);
  if (!is_dead()) move(target, rank, HandedKind::get, first);
  if (!changes || is_dead()) return;
  const ElementLock lock(state_of(window_).members[static_cast<std::size_t>(rank)]);
  for (Number number = first; number <= target.handed && !is_dead();) number = change(target, rank, number);
}

/// Carries out all puts, or gets, from `first` on.
void HandedCalls::move(Target& target, int rank, HandedKind kind, Number first) {
  const bool writes = kind == HandedKind::put;
  transport::Peer& peer = peer_of(window_, rank);
  auto each = [&](auto&& function) {
    for (Number number = first; number <= target.handed; ++number)
      if (HandedCall& call = target.ring->call(number); call.kind == kind)
        function(call, writes ? target.ring->data_of(call) : target.ring->before_of(call),
                 target.there[number % CallRing::most]);
  };
  Runs runs;
  each([&](HandedCall& call, std::byte* here, const Buffer& there) {
    if (there.type == nullptr) return runs.add(call, here);
    if (target.failure.is(MPI_ERR_PROC_ABORTED)) return;
    const Buffer mine = comm::byte_buffer(here, call.bytes);
    target.failure.note(writes ? store_through_kernel(mine, there, peer)
                               : load_through_kernel(mine, there, peer));
  });
  if (!target.failure.is(MPI_ERR_PROC_ABORTED)) target.failure.note(runs.copy(peer, writes));
}

/// Carries out an accumulate on memory with gaps.
void HandedCalls::change_with_gaps(Target& target, int rank, Number number) {
  transport::Peer& peer = peer_of(window_, rank);
  HandedCall& call = target.ring->call(number);
  std::byte* memory = target.scratch_of(call, number);
  const Buffer &there = target.there[number % CallRing::most], here = comm::byte_buffer(memory, call.bytes);
  Result done = load_through_kernel(here, there, peer);
  if (done.ok()) {
    if (call.fetches != 0) copy::raw(target.ring->before_of(call), memory, call.bytes);
    if (change_elements(call, target.ring->data_of(call), memory, call.bytes))
      done = store_through_kernel(here, there, peer);
  }
  target.failure.note(done);
}

/// Carries out the accumulates and swaps from `first` on, up to the first that overlaps an earlier one: all of them are read and
/// then written together. Returns the number of the first call left.
Number HandedCalls::change(Target& target, int rank, Number first) {
  transport::Peer& peer = peer_of(window_, rank);
  CallRing& ring = *target.ring;
  auto each = [&](Number behind, auto&& function) {
    for (Number number = first; number < behind; ++number)
      if (HandedCall& call = ring.call(number); changes_elements(call))
        function(call, target.scratch_of(call, number));
  };
  const auto has_gaps = [&target](Number number) {
    return target.there[number % CallRing::most].type != nullptr;
  };
  if (has_gaps(first)) {
    if (changes_elements(ring.call(first))) change_with_gaps(target, rank, first);
    return first + 1;
  }
  Runs reads, writes;
  Number behind = first;
  for (; behind <= target.handed && !has_gaps(behind); ++behind) {
    HandedCall& call = ring.call(behind);
    if (!changes_elements(call)) continue;
    bool meets_another = false;
    each(behind, [&](HandedCall& other, std::byte*) { meets_another |= overlap(call, other); });
    if (meets_another) break;
    reads.add(call, target.scratch_of(call, behind));
  }
  target.failure.note(reads.copy(peer, false));
  std::size_t i = 0;
  each(behind, [&](HandedCall& call, std::byte* memory) {
    if (!reads.copied[i++]) return;
    if (call.fetches != 0) copy::raw(ring.before_of(call), memory, call.bytes);
    if (change_elements(call, ring.data_of(call), memory, call.bytes)) writes.add(call, memory);
  });
  target.failure.note(writes.copy(peer, true));
  return behind;
}

} // namespace near::rma
