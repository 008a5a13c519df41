// Waking a rank that sleeps until there is room: a slot in somebody's queue or lane, or a packet of its own
// that comes home. See doc/queue/room.md.
//
//   who waits:  rung = bell                       who makes room:  free the slot, or give the packet back
//               a first look: no room                              [compiler barrier, or fence]
//               wanted |= itself                                   if wanted: take them out, announce to each
//               membarrier (or fence)
//               a second look: if there is room, go on
//               sleep on the bell unless it was rung since `rung`
//
// Either the maker's load comes after the waiter's barrier, and sees it in `wanted`; or what it freed before
// is there for the second look. As with the doorbell's `sleeping`, the waiter pays for both. Whoever is in
// `wanted` is announced to whether it sleeps yet or not: it took rung' before, so the bell ends a sleep that
// only begins. One that has gone on for another reason stays in `wanted`, and finds its bell rung once in
// vain.
#pragma once

#include "base/atomic.h"

#include <cstdint>

namespace near::queue {

/// System as in DoorbellProtocol.
template <class Atomics, class System>
class RoomProtocol {
public:
  template <class T>
  using Atomic = typename Atomics::template Atomic<T>;

  /// Who waits, before ready_to_look(): asks to be announced to. In as many words as there are makers of
  /// room.
  static void want(Atomic<std::uint64_t>& wanted, std::uint64_t self) { wanted.or_relaxed(self); }

  /// Who waits, between the last want() and its second look.
  static void ready_to_look(bool fences) {
    // SYNC: room. Our bits before our look, and every maker of room on one side of this point.
    if (fences)
      Atomics::fence_store_load();
    else
      System::barrier_all();
  }

  /// Who has made room. announce(bits): to each of them, by DoorbellProtocol::announce.
  template <class Announce>
  static void made(Atomic<std::uint64_t>& wanted, bool fences, Announce&& announce) {
    // SYNC: room. What we freed before our look at the word.
    if (fences)
      Atomics::fence_store_load();
    else
      Atomics::compiler_fence();
    if (wanted.load_relaxed() != 0) [[unlikely]]
      announce(std::uint64_t{wanted.exchange_relaxed(0)});
  }
};

} // namespace near::queue
