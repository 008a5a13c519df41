// Calls that a rank has begun and then leaves, for lack of memory: what the others are told.
#include "coll/schedule.h"
#include "coll/shared/area.h"
#include "memory.h"
#include "without_memory.h"

#include <barrier>
#include <new>
#include <string>
#include <utility>

namespace near::coll::test {
namespace {

Area& area_of_all(object::Communicator& c) { return *static_cast<AreaExtension&>(*c.extension).area; }

/// As if there were no memory for its request: the call has published its vector, but its share of the sum is missing.
TEST(left_call, results_that_a_lost_call_owes_are_not_waited_for) {
  make_types();
  ASSERT_TRUE(configure("allreduce=shared_shares").ok());
  std::barrier<> together(3);
  run_ranks(3, Conditions{everything, 2}, [&](object::Communicator& c) {
    Arguments arguments(c.size, 2'000);
    const Call call =
        allreduce_call(arguments.out.data(), arguments.in.data(), arguments.count, arguments.type, summing());
    if (c.rank == 0) {
      Schedule begun(true);
      CollectiveGroup group(c, &begun, &area_of_all(c));
      ASSERT_TRUE(run(group, call).ok());
    }
    together.arrive_and_wait();
    if (c.rank != 0) {
      EXPECT_EQ(run(call, c).code(), MPI_ERR_OTHER);
      const std::string text(base::failure_text());
      EXPECT_NE(text.find("rank 0 of this communicator has met an error in allreduce of 8000 bytes"),
                std::string::npos)
          << text;
    }
    EXPECT_EQ(run(barrier_call(), c).code(), MPI_ERR_OTHER);
  });
  ASSERT_TRUE(configure("auto").ok());
}

/// The others join the call before it only once this rank has returned.
TEST(left_call, a_call_that_cannot_be_recorded_does_not_wait_for_the_calls_before_it) {
  make_types();
  std::barrier<> together(3);
  run_ranks(3, Conditions{everything, 2}, [&](object::Communicator& c) {
    Arguments arguments(c.size, 40'000);
    if (c.rank != 0) together.arrive_and_wait();
    p2p::Request* earlier = nullptr;
    ASSERT_TRUE(start(barrier_call(), c, earlier).ok());
    if (c.rank == 0) {
      {
        Schedule begun(true);
        CollectiveGroup group(c, &begun, &area_of_all(c));
        ASSERT_TRUE(run(group, allgather_call(arguments.sent(), arguments.received(), c)).ok());
      }
      together.arrive_and_wait();
    }
    EXPECT_TRUE(tells_of_memory(wait(earlier)));
    EXPECT_EQ(run(barrier_call(), c).code(), MPI_ERR_OTHER);
  });
}

/// It may publish already, for which it would make a slice.
TEST(left_call, nothing_is_made_when_a_call_is_asked_before_a_sleep) {
  make_types();
  run_ranks(3, Conditions{everything, 2}, [](object::Communicator& c) {
    if (c.rank != 0) return;
    Arguments arguments(c.size, 2'000);
    p2p::Request* earlier = nullptr;
    ASSERT_TRUE(start(barrier_call(), c, earlier).ok());
    {
      Schedule waiting(true);
      CollectiveGroup group(c, &waiting, &area_of_all(c));
      ASSERT_TRUE(run(group, allgather_call(arguments.sent(), arguments.received(), c)).ok());
      EXPECT_TRUE(waiting.may_advance());
      EXPECT_EQ(slices_made(), 0u);
      p2p::Completion completion;
      EXPECT_FALSE(waiting.advance(completion));
      EXPECT_EQ(slices_made(), 1u);
    }
    EXPECT_EQ(wait(earlier).code(), MPI_ERR_OTHER); // the call is lost
  });
}

/// The others rely on nothing but its entries, and it has its turn. They find those that it has published, and failures.
TEST(left_call, the_area_remains_if_entries_tell_everything) {
  make_types();
  for (MPI_Count elements : {2'000, 40'000}) // in one chunk, and in several
    run_ranks(3, Conditions{everything, 2}, [&](object::Communicator& c) {
      Arguments arguments(c.size, elements);
      const Call call = allgather_call(arguments.sent(), arguments.received(), c);
      if (c.rank == 0) {
        Schedule begun(true);
        CollectiveGroup group(c, &begun, &area_of_all(c));
        ASSERT_TRUE(run(group, call).ok());
      } else {
        EXPECT_EQ(run(call, c).code(), elements == 2'000 ? MPI_SUCCESS : MPI_ERR_NO_MEM);
      }
      blocking(barrier_call(), c);
      blocking(call, c);
    });
}

/// It cannot be recorded for lack of temporary space, and the others would wait for its messages.
TEST(left_call, the_area_ends_although_the_call_consists_of_messages) {
  make_types();
  run_ranks(3, Conditions{everything, 2}, [](object::Communicator& c) {
    if (c.rank == 0) {
      Arguments arguments(c.size, 2'000);
      const Call call = alltoall_call({MPI_IN_PLACE, 0, nullptr}, arguments.received());
      Area& area = area_of_all(c);
      Schedule begun(true);
      begun.set_area(area, describe(call, call.receive.bytes()));
      CollectiveGroup group(c, &begun, &area);
      const FewAllocations few(0);
      Buffer spare{};
      EXPECT_EQ(group.scratch_bytes(4'000, spare).code(), MPI_ERR_NO_MEM);
    }
    EXPECT_EQ(run(barrier_call(), c).code(), MPI_ERR_OTHER);
  });
}

/// There is no memory when a call is left, and its steps may not move while they are looked through.
TEST(left_call, nothing_is_recorded_when_messages_under_way_are_cancelled) {
  make_types();
  constexpr int most_messages = 100;
  for (int messages = 1; messages <= most_messages; ++messages)
    run_ranks(2, Conditions{.error_of_cancelled = MPI_ERR_OTHER}, [messages](object::Communicator& c) {
      if (c.rank != 0) return;
      Arguments arguments(c.size, 1);
      base::set_failure_text({});
      Schedule begun(true);
      for (int i = 0; i < messages; ++i) begun.receive(arguments.received(), 1, i, c);
      const int before = allocations();
      begun.leave();
      EXPECT_EQ(allocations(), before) << messages << " messages";
    });
}

/// Progress on it throws while `fails` is true.
struct FailingProgress final : p2p::Schedule {
  explicit FailingProgress(const bool& fails_now) : fails(fails_now) {}
  Result begin() override { return {}; }
  bool advance(p2p::Completion&) override {
    if (fails) throw std::bad_alloc();
    return std::exchange(has_begun, true);
  }
  const bool& fails;
  bool has_begun = false;
};

/// The root may be as many broadcasts ahead of the others as there are entries. In the next one it waits for them, and meanwhile
/// makes progress on another operation.
TEST(left_call, nobody_waits_for_a_short_call_that_an_exception_has_left) {
  make_types();
  std::barrier<> together(3);
  run_ranks(3, Conditions{}, [&](object::Communicator& c) {
    int value = 0;
    const Call call = broadcast_call({&value, 1, datatype::find_datatype(MPI_INT)}, 0);
    if (c.rank != 0) together.arrive_and_wait();
    for (Number i = 0; i < ring_depth; ++i) ASSERT_TRUE(run(call, c).ok());
    if (c.rank == 0) {
      bool fails = false;
      p2p::Request* other = nullptr;
      ASSERT_TRUE(p2p::make_scheduled(&c, std::make_unique<FailingProgress>(fails), false, other).ok());
      fails = true;
      EXPECT_THROW((void)run(call, c), std::bad_alloc);
      fails = false;
      EXPECT_TRUE(wait(other).ok());
      together.arrive_and_wait();
    } else {
      EXPECT_EQ(run(call, c).code(), MPI_ERR_OTHER);
    }
    EXPECT_EQ(run(barrier_call(), c).code(), MPI_ERR_OTHER);
  });
}

} // namespace
} // namespace near::coll::test
