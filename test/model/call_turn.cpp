// Calls that an origin hands to a target: each is carried out once and in order, by the target or by the origin that takes it back,
// and the origin gets its result.
#include "model.h"

#include "queue/call_turn.h"

#include <array>
#include <string>

namespace {

using namespace near::model;
using TurnOfCalls = near::queue::CallTurn<Weak>;
using RaisedNumber = near::queue::SequenceFlag<Weak>;
using near::queue::Number;

/// A ring of calls, as rma/call_ring.h lays it out, and the memory that they change. Call `number` adds its number, and
/// its result is the sum.
template <std::uint32_t depth>
struct RingOfCalls {
  explicit RingOfCalls(Stage& stage) {
    stage.name(turn.word(), "turn");
    for (std::uint32_t i = 0; i < depth; ++i) stage.name(flags[i].word(), "flag " + std::to_string(i));
  }

  void hand(Number number) {
    put(&operands[number % depth], static_cast<std::uint32_t>(number));
    flags[number % depth].raise(number);
  }
  /// Carries out the calls that have been handed over, if nobody does.
  bool carry_out(TurnOfCalls::Holder who) {
    Number completed = 0;
    if (!turn.take(who, completed)) return false;
    while (flags[(completed + 1) % depth].has(completed + 1)) {
      ++completed;
      const auto sum = get<std::uint32_t>(&memory) + get<std::uint32_t>(&operands[completed % depth]);
      put(&memory, sum);
      put(&results[completed % depth], sum);
    }
    turn.leave(completed);
    return true;
  }
  /// One look of a target.
  void look() {
    const Number seen = turn.seen();
    if (flags[(seen + 1) % depth].has(seen + 1)) carry_out(TurnOfCalls::Holder::target);
  }
  void check(Number number) {
    require(get<std::uint32_t>(&results[number % depth]) == number * (number + 1) / 2,
            "each call is carried out once, after those before it");
  }

  TurnOfCalls turn;
  std::array<RaisedNumber, depth> flags;
  std::array<std::uint32_t, depth> operands{}, results{};
  std::uint32_t memory = 0;
};

/// The origin takes calls back that the target does not carry out at once.
template <std::uint32_t depth>
void hand_over(Stage& stage, std::uint32_t calls, std::uint32_t together, std::uint32_t looks) {
  RingOfCalls<depth> ring(stage);
  stage.thread("origin", [&, calls, together] {
    for (Number number = 0; number < calls;) {
      for (std::uint32_t i = 0; i < together; ++i) ring.hand(++number);
      if (ring.turn.completed() != number)
        until([&] { return ring.carry_out(TurnOfCalls::Holder::origin) || ring.turn.completed() == number; });
      require(ring.turn.completed() == number, "all calls are complete after that");
      for (std::uint32_t i = 0; i < together; ++i) ring.check(number - i);
    }
  });
  stage.thread("target", [&, looks] {
    for (std::uint32_t i = 0; i < looks; ++i) ring.look();
  });
  stage.go();
  require(get<std::uint32_t>(&ring.memory) == calls * (calls + 1) / 2, "no call is lost");
}

MODEL_SCENARIO(call_turn, one_call_at_a_time, {{3, 3, 1, 0}}) { hand_over<2>(stage, 3, 1, 2); }
MODEL_SCENARIO(call_turn, two_calls_together_fill_the_ring, {{4, 3, 1, 0}}) { hand_over<2>(stage, 4, 2, 2); }

/// A target that looks until everything is complete needs no help.
MODEL_SCENARIO(call_turn, the_target_carries_out_all, {{4, 3, 1, 0}}) {
  RingOfCalls<2> ring(stage);
  stage.thread("origin", [&] {
    for (Number number = 1; number <= 3; ++number) {
      ring.hand(number);
      until([&] { return ring.turn.completed() == number; });
      ring.check(number);
    }
  });
  stage.thread("target", [&] {
    for (Number completed = 0; completed < 3; completed = ring.turn.seen()) {
      until([&] { return ring.flags[(completed + 1) % 2].has(completed + 1); });
      require(ring.carry_out(TurnOfCalls::Holder::target), "nobody else takes the turn");
    }
  });
  stage.go();
}

} // namespace
