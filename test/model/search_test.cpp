// The search itself, on random programs: turning back at known states loses no outcome, and walks produce no
// outcome that the search does not find.
#include "model.h"

#include <cstdint>
#include <memory>
#include <set>
#include <vector>

namespace {

using namespace near::model;
using Word = Weak::Atomic<std::uint32_t>;

struct Step {
  unsigned operation, word, value;
};
using Program = std::vector<std::vector<Step>>; ///< steps of each thread

constexpr unsigned words = 2, operations = 19;

Program random_program(std::uint32_t seed) {
  auto next = [&seed](unsigned below) {
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 16) % below;
  };
  next(1);
  unsigned threads = 2 + next(2);
  Program program(threads);
  for (auto& steps : program)
    for (unsigned count = threads == 2 ? 3 : 2; count > 0; --count)
      steps.push_back({next(operations), next(words), 1 + next(2)});
  return program;
}

/// The current program and its outcomes so far.
Program program;
std::set<std::vector<std::uint32_t>> outcomes;

struct Shared {
  Word word[words];
  Mutex mutex;
  std::uint32_t plain = 0;
};

void carry_out(const Step& step, Shared& shared, std::vector<std::uint32_t>& got) {
  Word& at = shared.word[step.word];
  std::uint32_t expected = 0;
  switch (step.operation) {
  case 0:
  case 1: got.push_back(at.load_relaxed()); break;
  case 2:
  case 3: got.push_back(at.load_acquire()); break;
  case 4: at.store_relaxed(step.value); break;
  case 5:
  case 6: at.store_release(step.value); break;
  case 7: at.add_relaxed(step.value); break; // may be late
  case 8: got.push_back(at.add_acq_rel(step.value)); break;
  case 9:
    got.push_back(at.cas_acq_rel(expected, step.value) ? 1 : 0);
    got.push_back(expected);
    break;
  case 10: Weak::fence_store_load(); break;
  case 11: Weak::compiler_fence(); break;
  case 12: WeakSystem::barrier_all(); break;
  case 13: until([&] { return at.load_relaxed() != 0; }); break; // may wait forever, as may operation 15
  case 14: WeakSystem::wake(at.address()); break;
  case 15: WeakSystem::wait(at.address(), 0, 0); break;
  case 16:
    shared.mutex.lock();
    put(&shared.plain, get<std::uint32_t>(&shared.plain) + 1);
    shared.mutex.unlock();
    break;
  case 17: got.push_back(get<std::uint32_t>(&shared.plain)); break; // may be a data race
  case 18:
    if (at.load_acquire() != 0) put(&shared.plain, 9u);
    break;
  }
}

void body(Stage& stage) {
  Shared shared;
  std::vector<std::vector<std::uint32_t>> got(program.size());
  std::vector<ThreadId> ids;
  for (std::size_t i = 0; i < program.size(); ++i) {
    got[i].reserve(16);
    auto steps = [&, i] {
      for (const Step& step : program[i]) carry_out(step, shared, got[i]);
    };
    ids.push_back(i == 0 ? stage.mortal("thread", steps) : stage.thread("thread", steps));
  }
  stage.go();
  std::vector<std::uint32_t> outcome;
  for (std::size_t i = 0; i < program.size(); ++i) {
    outcome.push_back(stage.killed(ids[i]) ? 1 : 0);
    outcome.push_back(static_cast<std::uint32_t>(got[i].size()));
    outcome.insert(outcome.end(), got[i].begin(), got[i].end());
  }
  for (Word& at : shared.word) outcome.push_back(at.load_relaxed());
  outcomes.insert(outcome);
}

struct Seen {
  std::set<std::vector<std::uint32_t>> outcomes;
  bool fails;
};

Seen all(const Scenario& scenario, const Bounds& bounds, bool remembers) {
  outcomes.clear();
  bool complete = false;
  bool fails = search(scenario, bounds, {}, 3'000'000, complete, remembers).found;
  EXPECT_TRUE(complete || fails);
  return {outcomes, fails};
}

TEST(search, turning_back_at_known_states_loses_nothing) {
  Scenario scenario{"random", body, {}};
  unsigned held = 0, failed = 0;
  for (std::uint32_t seed = 0; seed < 100 * effort(); ++seed) {
    program = random_program(seed);
    for (const Bounds& bounds : {Bounds{3, 2, 1, 1}, Bounds{1, 1, 1, 1}, Bounds{2, 0, 0, 0}}) {
      Seen with = all(scenario, bounds, true), without = all(scenario, bounds, false);
      ASSERT_EQ(with.fails, without.fails) << "seed " << seed;
      // A program that waits forever ends the search at once, at different places with and without memory.
      if (!with.fails) ASSERT_EQ(with.outcomes, without.outcomes) << "seed " << seed;
      ++(with.fails ? failed : held);
    }
  }
  EXPECT_GE(held, 100u);
  EXPECT_GE(failed, 100u);
}

TEST(search, walks_meet_only_what_the_search_meets) {
  Scenario scenario{"random", body, {}};
  for (std::uint32_t seed = 0; seed < 150 * effort(); ++seed) {
    program = random_program(seed);
    Seen every = all(scenario, {20, 20, 8, 1}, true);
    if (every.fails) continue;
    outcomes.clear();
    Finding walked = walk(scenario, {}, seed, 500);
    ASSERT_FALSE(walked.found) << "seed " << seed << "\n" << walked.report;
    for (const auto& outcome : outcomes) ASSERT_EQ(every.outcomes.count(outcome), 1u) << "seed " << seed;
  }
}

} // namespace
