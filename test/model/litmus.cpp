// What the model allows and what it forbids, shown by the small programs that characterise memory models. The
// scenarios rely on these properties.
#include "model.h"

#include "base/atomic.h"

#include <set>
#include <vector>

namespace {

using namespace near::model;

template <class T>
using Atomic = Weak::Atomic<T>;
using Word = Atomic<std::uint32_t>;

/// Outcomes of all executions; the bounds are wide enough for all executions of such small programs.
std::set<std::vector<std::uint32_t>> outcomes;

bool seen(const std::vector<std::uint32_t>& outcome) { return outcomes.count(outcome) != 0; }

std::string explore(void (*body)(Stage&), unsigned deferrals = 2) {
  outcomes.clear();
  Scenario scenario{"litmus", body, {}};
  bool complete = false;
  Finding finding = search(scenario, {8, 8, deferrals, 0}, {}, 20'000'000, complete);
  if (finding.found) return finding.why;
  return complete ? "" : "not complete";
}

// ---- store buffering: x = 1; read y || y = 1; read x ----

template <class Between>
void store_buffering(Stage& stage, Between between) {
  Word x, y;
  std::uint32_t a = 9, b = 9;
  stage.thread("left", [&] {
    x.store_relaxed(1);
    between();
    a = y.load_relaxed();
  });
  stage.thread("right", [&] {
    y.store_relaxed(1);
    between();
    b = x.load_relaxed();
  });
  stage.go();
  outcomes.insert({a, b});
}

TEST(litmus, stores_wait_in_buffers_while_later_reads_go_ahead) {
  EXPECT_EQ(explore([](Stage& stage) { store_buffering(stage, [] {}); }), "");
  EXPECT_TRUE(seen({0, 0}));
  EXPECT_TRUE(seen({1, 1}));
  EXPECT_EQ(outcomes.size(), 4u);
}

TEST(litmus, fences_on_both_sides_empty_the_buffers) {
  EXPECT_EQ(explore([](Stage& stage) { store_buffering(stage, [] { Weak::fence_store_load(); }); }), "");
  EXPECT_FALSE(seen({0, 0}));
  EXPECT_EQ(outcomes.size(), 3u);
}

template <class Left>
void barrier_for_both(Stage& stage, Left left) {
  Word x, y;
  std::uint32_t a = 9, b = 9;
  stage.thread("light", [&] {
    x.store_relaxed(1);
    left();
    a = y.load_relaxed();
  });
  stage.thread("heavy", [&] {
    y.store_relaxed(1);
    WeakSystem::barrier_all();
    b = x.load_relaxed();
  });
  stage.go();
  outcomes.insert({a, b});
}

TEST(litmus, a_barrier_of_all_stands_for_the_fence_of_a_thread_with_a_compiler_fence) {
  EXPECT_EQ(explore([](Stage& stage) { barrier_for_both(stage, [] { Weak::compiler_fence(); }); }), "");
  EXPECT_FALSE(seen({0, 0}));
  EXPECT_EQ(outcomes.size(), 3u);
}

TEST(litmus, without_a_compiler_fence_a_barrier_of_all_has_no_effect) {
  EXPECT_EQ(explore([](Stage& stage) { barrier_for_both(stage, [] {}); }), "");
  EXPECT_TRUE(seen({0, 0}));
}

TEST(litmus, compiler_fences_alone_order_nothing_between_processors) {
  EXPECT_EQ(explore([](Stage& stage) { store_buffering(stage, [] { Weak::compiler_fence(); }); }), "");
  EXPECT_TRUE(seen({0, 0}));
}

TEST(litmus, a_barrier_of_all_reaches_the_threads_one_after_another) {
  // The light threads may miss each other's stores although the barrier reaches both.
  auto body = [](Stage& stage) {
    Word x, y;
    std::uint32_t a = 9, b = 9;
    stage.thread("left", [&] {
      x.store_relaxed(1);
      Weak::compiler_fence();
      a = y.load_relaxed();
    });
    stage.thread("right", [&] {
      y.store_relaxed(1);
      Weak::compiler_fence();
      b = x.load_relaxed();
    });
    stage.thread("heavy", [&] { WeakSystem::barrier_all(); });
    stage.go();
    outcomes.insert({a, b});
  };
  EXPECT_EQ(explore(body), "");
  EXPECT_TRUE(seen({0, 0}));
}

// ---- message passing: data = 1; flag = 1 || read flag; read data ----

template <class Give, class Take>
void message_passing(Stage& stage, Give give, Take take) {
  Word data, flag;
  std::uint32_t a = 9, b = 9;
  stage.thread("writer", [&] {
    data.store_relaxed(1);
    give(flag);
  });
  stage.thread("reader", [&] {
    a = take(flag);
    b = data.load_relaxed();
  });
  stage.go();
  outcomes.insert({a, b});
}
constexpr auto give_relaxed = [](Word& flag) { flag.store_relaxed(1); };
constexpr auto give_release = [](Word& flag) { flag.store_release(1); };
constexpr auto take_relaxed = [](Word& flag) -> std::uint32_t { return flag.load_relaxed(); };
constexpr auto take_acquire = [](Word& flag) -> std::uint32_t { return flag.load_acquire(); };

TEST(litmus, a_message_needs_release_and_acquire) {
  EXPECT_EQ(explore([](Stage& stage) { message_passing(stage, give_release, take_acquire); }), "");
  EXPECT_FALSE(seen({1, 0}));
  EXPECT_TRUE(seen({1, 1}) && seen({0, 0}) && seen({0, 1}));
  EXPECT_EQ(explore([](Stage& stage) { message_passing(stage, give_relaxed, take_acquire); }), "");
  EXPECT_TRUE(seen({1, 0}));
  EXPECT_EQ(explore([](Stage& stage) { message_passing(stage, give_release, take_relaxed); }), "");
  EXPECT_TRUE(seen({1, 0}));
}

TEST(litmus, fences_beside_relaxed_operations_pass_a_message_too) {
  static constexpr auto give = [](Word& flag) {
    Weak::fence_store_load();
    flag.store_relaxed(1);
  };
  static constexpr auto take = [](Word& flag) -> std::uint32_t {
    std::uint32_t value = flag.load_relaxed();
    Weak::fence_store_load();
    return value;
  };
  EXPECT_EQ(explore([](Stage& stage) { message_passing(stage, give, take); }), "");
  EXPECT_FALSE(seen({1, 0}));
}

template <class Pass>
void passed_on(Stage& stage, Pass pass) {
  Word data, flag;
  std::uint32_t a = 9, b = 9;
  stage.thread("writer", [&] {
    data.store_relaxed(1);
    flag.store_release(1);
  });
  stage.thread("passer", [&] { pass(flag); });
  stage.thread("reader", [&] {
    a = flag.load_acquire();
    b = data.load_relaxed();
  });
  stage.go();
  outcomes.insert({a, b});
}

TEST(litmus, a_release_goes_on_through_read_modify_writes_but_not_through_stores) {
  static constexpr auto modify = [](Word& flag) { flag.add_relaxed(10); };
  static constexpr auto overwrite = [](Word& flag) {
    if (flag.load_relaxed() == 1) flag.store_relaxed(11);
  };
  EXPECT_EQ(explore([](Stage& stage) { passed_on(stage, modify); }), "");
  EXPECT_TRUE(seen({11, 1}));
  EXPECT_FALSE(seen({11, 0}));
  EXPECT_EQ(explore([](Stage& stage) { passed_on(stage, overwrite); }), "");
  EXPECT_TRUE(seen({11, 0}));
}

TEST(litmus, one_threads_later_store_does_not_carry_its_release) { // as in C++20
  auto body = [](Stage& stage) {
    Word data, flag;
    std::uint32_t a = 9, b = 9;
    stage.thread("writer", [&] {
      data.store_relaxed(1);
      flag.store_release(1);
      flag.store_relaxed(2);
    });
    stage.thread("reader", [&] {
      a = flag.load_acquire();
      b = data.load_relaxed();
    });
    stage.go();
    outcomes.insert({a, b});
  };
  EXPECT_EQ(explore(body), "");
  EXPECT_TRUE(seen({2, 0}));
  EXPECT_FALSE(seen({1, 0}));
}

// ---- several readers ----

template <class Between>
void independent_reads(Stage& stage, Between between) {
  Word x, y;
  std::uint32_t a = 9, b = 9, c = 9, d = 9;
  stage.thread("x", [&] { x.store_release(1); });
  stage.thread("y", [&] { y.store_release(1); });
  stage.thread("first", [&] {
    a = x.load_acquire();
    between();
    b = y.load_acquire();
  });
  stage.thread("second", [&] {
    c = y.load_acquire();
    between();
    d = x.load_acquire();
  });
  stage.go();
  outcomes.insert({a, b, c, d});
}

TEST(litmus, readers_may_disagree_about_the_order_of_independent_stores) {
  EXPECT_EQ(explore([](Stage& stage) { independent_reads(stage, [] {}); }), "");
  EXPECT_TRUE(seen({1, 0, 1, 0}));
  EXPECT_EQ(explore([](Stage& stage) { independent_reads(stage, [] { Weak::fence_store_load(); }); }), "");
  EXPECT_FALSE(seen({1, 0, 1, 0}));
}

TEST(litmus, all_threads_read_one_word_in_the_same_order) {
  auto body = [](Stage& stage) {
    Word x;
    std::uint32_t got[4] = {};
    stage.thread("one", [&] { x.store_relaxed(1); });
    stage.thread("two", [&] { x.store_relaxed(2); });
    for (int reader = 0; reader < 2; ++reader)
      stage.thread("reader", [&got, &x, reader] {
        got[2 * reader] = x.load_relaxed();
        got[2 * reader + 1] = x.load_relaxed();
      });
    stage.go();
    outcomes.insert({got[0], got[1], got[2], got[3]});
  };
  EXPECT_EQ(explore(body, 0), "");
  EXPECT_TRUE(seen({1, 2, 1, 2}) && seen({2, 1, 2, 1}));
  EXPECT_FALSE(seen({1, 2, 2, 1}));
  EXPECT_FALSE(seen({1, 0, 0, 0}));
}

TEST(litmus, stores_of_two_threads_to_two_words_may_end_crosswise) {
  auto body = [](Stage& stage) {
    Word x, y;
    stage.thread("up", [&] {
      x.store_relaxed(1);
      y.store_relaxed(2);
    });
    stage.thread("down", [&] {
      y.store_relaxed(1);
      x.store_relaxed(2);
    });
    stage.go();
    outcomes.insert({x.load_relaxed(), y.load_relaxed()});
  };
  EXPECT_EQ(explore(body), "");
  EXPECT_TRUE(seen({1, 1}));
}

// ---- read-modify-writes ----

TEST(litmus, no_increment_is_lost) {
  auto body = [](Stage& stage) {
    Word x;
    for (int i = 0; i < 3; ++i) stage.thread("adder", [&] { x.add_relaxed(1); });
    stage.go();
    outcomes.insert({x.load_relaxed()});
  };
  EXPECT_EQ(explore(body), "");
  EXPECT_EQ(outcomes, (std::set<std::vector<std::uint32_t>>{{3}}));
}

TEST(litmus, one_compare_and_swap_of_two_wins) {
  auto body = [](Stage& stage) {
    Word x;
    std::uint32_t won[2] = {};
    for (std::uint32_t i = 0; i < 2; ++i)
      stage.thread("taker", [&x, &won, i] {
        std::uint32_t expected = 0;
        won[i] = x.cas_relaxed(expected, i + 1) ? 1 : 0;
      });
    stage.go();
    outcomes.insert({won[0] + won[1]});
  };
  EXPECT_EQ(explore(body), "");
  EXPECT_EQ(outcomes, (std::set<std::vector<std::uint32_t>>{{1}}));
}

// ---- load buffering: read x; y = 1 || read y; x = 1 ----

template <class Left, class Right>
void load_buffering(Stage& stage, Left left, Right right) {
  Word x, y;
  std::uint32_t a = 9, b = 9;
  stage.thread("left", [&] { left(x, y, a); });
  stage.thread("right", [&] { right(y, x, b); });
  stage.go();
  outcomes.insert({a, b});
}
constexpr auto late = [](Word& from, Word& to, std::uint32_t& got) {
  auto value = from.load_relaxed();
  to.store_relaxed(1);
  got = value;
};
constexpr auto released = [](Word& from, Word& to, std::uint32_t& got) {
  auto value = from.load_relaxed();
  to.store_release(1);
  got = value;
};
constexpr auto acquired = [](Word& from, Word& to, std::uint32_t& got) {
  auto value = from.load_acquire();
  to.store_relaxed(1);
  got = value;
};

TEST(litmus, a_later_store_may_overtake_a_read_whose_value_waits_to_be_used) {
  EXPECT_EQ(explore([](Stage& stage) { load_buffering(stage, late, late); }), "");
  EXPECT_TRUE(seen({1, 1}));
  EXPECT_EQ(explore([](Stage& stage) { load_buffering(stage, released, late); }), "");
  EXPECT_TRUE(seen({1, 1})) << "the right side's read is late";
  EXPECT_EQ(explore([](Stage& stage) { load_buffering(stage, released, acquired); }), "");
  EXPECT_FALSE(seen({1, 1}));
}

TEST(litmus, nothing_overtakes_a_read_whose_value_is_used) {
  auto body = [](Stage& stage) {
    Word x, y;
    std::uint32_t a = 9, b = 9;
    stage.thread("left", [&] {
      a = x.load_relaxed();
      y.store_relaxed(a);
    });
    stage.thread("right", [&] {
      b = y.load_relaxed();
      x.store_relaxed(b);
    });
    stage.go();
    outcomes.insert({a, b});
  };
  EXPECT_EQ(explore(body), "");
  EXPECT_EQ(outcomes, (std::set<std::vector<std::uint32_t>>{{0, 0}})); // no value out of thin air
}

// ---- plain memory ----

template <class Give, class Take>
void hand_over(Stage& stage, Give give, Take take) {
  Word flag;
  std::uint32_t data = 0;
  stage.thread("writer", [&] {
    put(&data, 7u);
    give(flag);
  });
  stage.thread("reader", [&] {
    if (take(flag) != 0) require(get<std::uint32_t>(&data) == 7, "the reader sees what was written");
  });
  stage.go();
}

TEST(litmus, plain_memory_needs_an_order_between_its_accesses) {
  EXPECT_EQ(explore([](Stage& stage) { hand_over(stage, give_release, take_acquire); }), "");
  EXPECT_NE(explore([](Stage& stage) { hand_over(stage, give_relaxed, take_acquire); }).find("data race"),
            std::string::npos);
  EXPECT_NE(explore([](Stage& stage) { hand_over(stage, give_release, take_relaxed); }).find("data race"),
            std::string::npos);
}

TEST(litmus, a_write_after_an_unordered_read_is_a_race_too) {
  auto body = [](Stage& stage) {
    Word flag;
    std::uint32_t data = 0;
    stage.thread("reader", [&] {
      get<std::uint32_t>(&data);
      flag.store_relaxed(1);
    });
    stage.thread("writer", [&] {
      if (flag.load_acquire() != 0) put(&data, 7u);
    });
    stage.go();
  };
  EXPECT_NE(explore(body).find("data race"), std::string::npos);
}

// ---- what the scheduler notices ----

TEST(litmus, a_wait_that_nobody_ends_is_a_deadlock) {
  auto body = [](Stage& stage) {
    Word bell;
    stage.name(bell, "bell");
    stage.thread("sleeper", [&] { WeakSystem::wait(bell.address(), 0, 0); });
    stage.thread("ringer", [&] { WeakSystem::wake(bell.address()); }); // without changing the word
    stage.go();
  };
  EXPECT_EQ(explore(body), "no thread can continue: sleeper sleeps on bell");
}

TEST(litmus, a_changed_word_ends_a_wait) {
  auto body = [](Stage& stage) {
    Word bell;
    stage.thread("sleeper", [&] { WeakSystem::wait(bell.address(), 0, 0); });
    stage.thread("ringer", [&] {
      bell.add_relaxed(1);
      WeakSystem::wake(bell.address());
    });
    stage.go();
  };
  EXPECT_EQ(explore(body), "");
}

TEST(litmus, polling_for_a_change_that_never_comes_is_a_deadlock) {
  auto body = [](Stage& stage) {
    Word flag;
    stage.thread("poller", [&] { until([&] { return flag.load_relaxed() == 2; }); });
    stage.thread("other", [&] { flag.store_relaxed(1); });
    stage.go();
  };
  EXPECT_EQ(explore(body), "no thread can continue: poller polls and nothing changes");
}

TEST(litmus, polling_eventually_sees_a_change) {
  auto body = [](Stage& stage) {
    Word flag;
    stage.thread("poller", [&] { until([&] { return flag.load_relaxed() != 0; }); });
    stage.thread("other", [&] { flag.store_relaxed(1); });
    stage.go();
  };
  EXPECT_EQ(explore(body), "");
}

TEST(litmus, a_mutex_orders_what_is_done_under_it) {
  auto body = [](Stage& stage) {
    Mutex mutex;
    std::uint32_t data = 0;
    for (int i = 0; i < 2; ++i)
      stage.thread("thread", [&] {
        mutex.lock();
        put(&data, get<std::uint32_t>(&data) + 1);
        mutex.unlock();
      });
    stage.go();
    outcomes.insert({get<std::uint32_t>(&data)});
  };
  EXPECT_EQ(explore(body), "");
  EXPECT_EQ(outcomes, (std::set<std::vector<std::uint32_t>>{{2}}));
}

TEST(litmus, a_mortal_thread_dies_before_each_of_its_operations) {
  auto body = [](Stage& stage) {
    Word x;
    stage.thread("other", [&] {
      std::uint32_t ignored = x.load_relaxed();
      (void)ignored;
    });
    auto mortal = stage.mortal("mortal", [&] {
      for (std::uint32_t i = 1; i <= 3; ++i) x.store_relaxed(i);
    });
    stage.go();
    outcomes.insert({x.load_relaxed(), stage.killed(mortal) ? 1u : 0u});
  };
  outcomes.clear();
  Scenario scenario{"litmus", body, {}};
  bool complete = false;
  EXPECT_FALSE(search(scenario, {2, 2, 0, 1}, {}, 1'000'000, complete).found);
  EXPECT_TRUE(complete);
  EXPECT_EQ(outcomes, (std::set<std::vector<std::uint32_t>>{{0, 1}, {1, 1}, {2, 1}, {3, 0}}));
}

TEST(litmus, a_random_walk_finds_what_the_search_finds) {
  Scenario scenario{"litmus", [](Stage& stage) { hand_over(stage, give_relaxed, take_acquire); }, {}};
  Finding finding = walk(scenario, {}, 0, 10'000);
  EXPECT_NE(finding.why.find("data race"), std::string::npos);
}

TEST(litmus, a_schedule_that_was_printed_fails_again) {
  Scenario scenario{"litmus", [](Stage& stage) { hand_over(stage, give_relaxed, take_acquire); }, {}};
  Finding first = walk(scenario, {}, 0, 10'000);
  ASSERT_TRUE(first.found);
  auto begin = first.report.find('\'') + 1;
  std::string schedule = first.report.substr(begin, first.report.find('\'', begin) - begin);
  Finding again = replay(scenario, {}, schedule);
  EXPECT_EQ(again.why, first.why) << schedule;
  EXPECT_EQ(again.report, first.report);
}

} // namespace
