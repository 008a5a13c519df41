// Schedules, and p2p's part of the progress engine: first the transport, then deferred sends, then messages to be
// taken early, then active schedules.
#include "os/clock.h"
#include "p2p/early.h"
#include "p2p/patience.h"
#include "shm/shm.h"
#include "transport/polling.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace near::p2p {

namespace {

auto& active = *new std::vector<EngineRequest*>; // never destroyed
bool in_background = false;
/// Set while there are schedules that watch memory.
std::optional<transport::Watch> memory_watch;
std::size_t watching = 0;

void begin_to_watch() {
  if (watching++ != 0) return;
  memory_watch.emplace(
      [](void*) {
        return std::any_of(active.begin(), active.end(),
                           [](const EngineRequest* each) { return each->schedule->may_advance(); });
      },
      nullptr);
}

/// Returns true if the schedule has finished; the request may be gone then.
bool advance(EngineRequest& request) {
  if (!request.schedule->advance(request.completion)) return false;
  discard_schedule(request);
  complete(request);
  return true;
}

/// The work of p2p between two polls of the transport. `waits` is true for the polls of a wait, false for those of a program. A schedule
/// starts requests, whose eager sends may call this again: the inner call does nothing.
[[gnu::cold]] [[gnu::noinline]] bool run_background(bool waits = false) {
  if (in_background) return false;
  const struct Scope { // resets the flag even if advance() throws; otherwise later calls would do nothing
    Scope() { in_background = true; }
    ~Scope() { in_background = false; }
  } scope;
  bool moved = has_deferred() && move_deferred();
  if (has_failed_peers()) [[unlikely]]
    moved |= fail_receives();
  moved |= take_early(waits);
  // By index, since advance() may add schedules, and the last schedule takes the index of a finished one.
  for (std::size_t i = 0; i < active.size();) {
    if (advance(*active[i]))
      moved = true;
    else
      ++i;
  }
  return moved;
}

bool has_background() { return background != 0; }

bool polls_yield = false; // counted in `background` while true
bool polls_yield_always = false;

thread_local Patience patience;
thread_local bool gave_way = false; ///< since something moved

bool move_all() {
  bool moved = transport::make_progress();
  if (moved) ++transport::moves;
  if (has_background()) [[unlikely]]
    moved |= run_background();
  return moved;
}

[[gnu::noinline]] void move_and_wake() {
  if (transport::make_progress()) transport::wake_waiting_threads();
}

[[gnu::noinline]] void poll_on(std::uintptr_t what, std::uint64_t checks) {
  bool moved = move_all();
  if (polls_yield && !moved && patience.polled(what, checks) &&
      patience.gives_way(what, os::monotonic_ns(), transport::own_state_line().calls.load_relaxed(),
                         polls_yield_always)) {
    bool napped = false;
    if (polls_yield_always)
      transport::give_way();
    else
      napped = transport::give_way_between_polls(!std::exchange(gave_way, true));
    patience.came_back(os::monotonic_ns(), napped);
    moved = move_all();
  }
  if (moved) {
    if (polls_yield) {
      patience.something_moved();
      gave_way = false;
    }
    transport::wake_waiting_threads();
  }
}

} // namespace

Result begin_schedule(EngineRequest& request) {
  request.active = true;
  request.complete = false;
  request.completion = Completion{};
  if (Result begun = request.schedule->begin(); !begun.ok()) {
    request.active = false;
    return begun;
  }
  bool finished = false;
  try {
    finished = request.schedule->advance(request.completion);
    request.index = active.size();
    if (!finished) active.push_back(&request);
  } catch (...) { // there is no memory for the rest, which others may be waiting for
    request.schedule->leave();
    request.active = false;
    throw;
  }
  if (finished) {
    complete(request);
    return {};
  }
  request.scheduled = true;
  if (request.schedule->watches_memory()) begin_to_watch();
  ++background;
  return {};
}

void discard_schedule(EngineRequest& request) {
  if (request.schedule->watches_memory() && --watching == 0) memory_watch.reset();
  request.scheduled = false;
  active[request.index] = active.back();
  active[request.index]->index = request.index;
  active.pop_back();
  --background;
}

Result make_scheduled(Communicator* communicator, std::unique_ptr<Schedule> schedule, bool persistent,
                      Request*& made) {
  EngineRequest* request = nullptr;
  NEAR_TRY(make_request(RequestKind::schedule, communicator, Buffer{}, request));
  request->owns_more = true;
  request->schedule = std::move(schedule);
  request->persistent = persistent;
  if (!persistent) {
    try {
      if (Result begun = begin_schedule(*request); !begun.ok()) {
        destroy(*request);
        return begun;
      }
    } catch (...) {
      destroy(*request);
      throw;
    }
  }
  made = request;
  return {};
}

[[gnu::noinline]] bool progress() {
  bool moved = transport::progress();
  if (has_background()) [[unlikely]]
    moved |= run_background();
  if (moved) transport::wake_waiting_threads();
  return moved;
}

[[gnu::noinline]] void poll(std::uintptr_t what, std::uint64_t checks) {
  if (has_background()) [[unlikely]]
    return poll_on(what, checks);
  if (!shm::is_idle()) move_and_wake();
}

[[gnu::noinline]] void poll(std::uintptr_t what) {
  // The rare case is a tail call, so that no register has to be saved for it.
  if (has_background()) [[unlikely]]
    return poll_on(what, 1);
  if (!shm::is_idle()) move_and_wake();
}

void let_polls_yield(bool yields, bool always) {
  polls_yield_always = always;
  if (yields == polls_yield) return;
  polls_yield = yields;
  background += yields ? 1 : -1;
}

void wait_until(bool (*done)(void*), void* argument, bool (*check)(void*)) {
  struct Wait {
    bool (*done)(void*);
    void* argument;
    bool (*check)(void*);
  } wait{done, argument, check};
  quiet_polls = 0; // earlier polls do not belong to this wait
  // Waits of other layers, which take no messages early, sleep for as long as usual.
  const struct SleepBound {
    ~SleepBound() { transport::sleep_bound_ns = transport::no_sleep_bound; }
  } sleep_bound;
  transport::wait_until(
      [](void* at) -> bool {
        auto& each = *static_cast<Wait*>(at);
        if (each.done(each.argument)) return true;
        const bool has_work = has_background() || waits_may_take;
        const bool moved = has_work && run_background(true);
        transport::sleep_bound_ns = has_work ? longest_sleep_before_taking() : transport::no_sleep_bound;
        if (!moved) return false;
        transport::wake_waiting_threads();
        return each.done(each.argument);
      },
      &wait,
      [](void* at) -> bool {
        auto& each = *static_cast<Wait*>(at);
        return each.check(each.argument);
      });
}

void wait_for_lock(base::Atomic<std::uint64_t>& waiters, bool (*attempt)(void*), void* argument) {
  const transport::AwaitedLock awaited(waiters);
  wait_until(attempt, argument, [](void*) { return true; });
}

void wait_until_stored(bool (*done)(void*), void* argument) {
  const transport::Watch watch(done, argument);
  wait_until(done, argument, done);
}

} // namespace near::p2p
