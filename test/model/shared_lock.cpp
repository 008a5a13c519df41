// A shared and exclusive lock: an exclusive holder is the only one, the next holder sees what it wrote,
// and no process sleeps while the lock is available. Timeouts never end a wait here.
#include "structures.h"

#include "queue/flow_control.h"
#include "queue/shared_lock.h"

namespace {

using namespace near::model;
using Lock = near::queue::SharedLock<Weak>;
using Word = Weak::Atomic<std::uint32_t>;
using Flow = near::queue::FlowControl<Weak, WeakSystem>;

struct PlainBell {
  Word sleeping{0}, bell{0};
};

/// A lock, two numbers that only its exclusive holder changes, and the doorbells of three threads.
struct Scene {
  explicit Scene(Stage& stage_) : stage(stage_) {
    stage.name(lock.state, "state", [](Value state) {
      std::string text = std::to_string(state & 0x3fffffffffffffff) + " shared";
      if ((state >> 63 & 1) != 0) text += ", exclusive";
      if ((state >> 62 & 1) != 0) text += ", one waits";
      return text;
    });
    stage.name(lock.waiters, "waiters");
    for (std::uint32_t i = 0; i < bells.size(); ++i) {
      stage.name(bells[i].sleeping, "sleeping " + std::to_string(i));
      stage.name(bells[i].bell, "bell " + std::to_string(i));
    }
    put(&numbers[0], 0u);
    put(&numbers[1], 0u);
  }

  /// As p2p::wait_for_lock().
  template <class Attempt>
  void take(std::uint32_t self, bool fences, Attempt&& attempt) {
    PlainBell& own = bells[self];
    for (;;) {
      auto rung = Doorbell::rung(own.bell);
      if (attempt()) return;
      Flow::add_waiter(lock.waiters, std::uint64_t{1} << self);
      Flow::before_recheck(fences);
      if (attempt()) return;
      Doorbell::sleep(own.sleeping, own.bell, rung, fences, 0, [] { return false; });
      Doorbell::awake(own.sleeping);
    }
  }
  void tell(bool fences) {
    Flow::wake_waiters(lock.waiters, fences, [&](std::uint64_t who) {
      for (std::uint32_t i = 0; i < bells.size(); ++i)
        if ((who >> i & 1) != 0) Doorbell::announce(bells[i].bell);
    });
  }

  void writer(std::uint32_t self, bool fences, int times = 1) {
    stage.thread("writer " + std::to_string(self), [this, self, fences, times] {
      for (int i = 0; i < times; ++i) {
        take(self, fences, [&] { return lock.upgrade_exclusive(); });
        auto value = get<std::uint32_t>(&numbers[0]);
        put(&numbers[0], value + 1);
        put(&numbers[1], value + 1);
        lock.release_exclusive();
        tell(fences);
      }
    });
  }
  void reader(std::uint32_t self, bool fences) {
    stage.thread("reader " + std::to_string(self), [this, self, fences] {
      take(self, fences, [&] { return lock.try_shared(); });
      require(get<std::uint32_t>(&numbers[0]) == get<std::uint32_t>(&numbers[1]),
              "nobody writes while others hold the lock shared");
      lock.release_shared();
      tell(fences);
    });
  }
  void end(std::uint32_t written) {
    stage.go();
    require(get<std::uint32_t>(&numbers[0]) == written, "each exclusive holder adds one");
    require(lock.try_exclusive(), "at the end nobody holds it");
  }

  Stage& stage;
  Lock lock;
  std::array<PlainBell, 3> bells;
  std::array<std::uint32_t, 2> numbers{};
};

MODEL_SCENARIO(shared_lock, two_exclusive_holders_take_turns_with_a_barrier_of_all, {{3, 2, 1, 0}}) {
  Scene scene(stage);
  scene.writer(0, false, 2);
  scene.writer(1, false);
  scene.end(3);
}
MODEL_SCENARIO(shared_lock, two_exclusive_holders_take_turns_with_fences, {{3, 2, 1, 0}}) {
  Scene scene(stage);
  scene.writer(0, true, 2);
  scene.writer(1, true);
  scene.end(3);
}
MODEL_SCENARIO(shared_lock, one_exclusive_beside_two_shared, {{2, 1, 1, 0}}) {
  Scene scene(stage);
  scene.reader(0, false);
  scene.reader(1, false);
  scene.writer(2, false);
  scene.end(1);
}
MODEL_SCENARIO(shared_lock, one_shared_after_two_exclusive, {{2, 1, 1, 0}}) {
  Scene scene(stage);
  scene.writer(0, true);
  scene.writer(1, true);
  scene.reader(2, true);
  scene.end(2);
}

} // namespace
