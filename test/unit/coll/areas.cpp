// Areas in shared memory: long data in many chunks, few slices, no slices, ranks that call different collectives.
#include "coll/collective_group.h"
#include "coll/schedule.h"
#include "coll/shared/area.h"
#include "forms.h"

#include <array>
#include <barrier>
#include <cstring>
#include <initializer_list>
#include <map>
#include <numeric>
#include <span>
#include <string>

namespace near::coll::test {
namespace {

/// Slightly more than a slice, four slices, and more chunks than a ring has entries.
constexpr MPI_Count long_counts[] = {8200, 40000, 90000};

/// Runs `body` with different numbers of ranks and slices, and with ranks that can read each other's memory or not.
void in_areas(const std::function<void(object::Communicator&, const Perform&)>& body,
              std::initializer_list<int> processors = {0, 2}) {
  make_types();
  for (int shared_processors : processors) {
    ASSERT_TRUE(configure("auto", shared_processors).ok());
    for (int size : {2, 3, 5})
      for (std::size_t slices : {std::size_t{1}, std::size_t{2}, most_slices}) {
        SCOPED_TRACE(std::to_string(size) + " ranks with " + std::to_string(slices) + " slices");
        for (int without_reading : {-1, 1}) {
          // Only there, ranks read each other's memory if they can.
          if (without_reading >= 0 && (size == 2 || shared_processors != 0)) continue;
          for (const Perform& perform : {Perform(blocking), Perform(nonblocking), Perform(persistent)}) {
            const Conditions conditions{
                .eager_bytes = everything, .slices = slices, .without_reading = without_reading};
            run_ranks(size, conditions, [&](object::Communicator& c) { body(c, perform); });
            ASSERT_FALSE(testing::Test::HasFailure());
          }
        }
      }
  }
  ASSERT_TRUE(configure("auto").ok());
}

void fill(TestBuffer& buffer, int number, int rank, MPI_Count first, MPI_Count cells) {
  buffer.fill(number, rank, first, cells);
}
/// Reports only the first cell that differs.
void expect(TestBuffer& buffer, int number, int rank, MPI_Count first, MPI_Count cells) {
  const MPI_Count wrong = buffer.first_wrong(number, rank, first, cells);
  if (wrong >= 0) FAIL() << "cell " << wrong << " of rank " << rank << " is wrong";
}

/// One call of each kind that moves data, with buffers of which some have gaps.
void move_data(std::span<const MPI_Count> counts) {
  in_areas([counts](object::Communicator& c, const Perform& perform) {
    int number = 0;
    for (MPI_Count cells : counts) {
      const Layout layout = layout_at(++number, c.rank);
      for (int root : roots(c.size)) {
        TestBuffer buffer(layout, cells);
        if (c.rank == root) fill(buffer, number, root, 0, cells);
        perform(broadcast_call(buffer.argument(), root), c);
        expect(buffer, number, root, 0, cells);
      }
      TestBuffer own(layout, cells * c.size), all(Layout::plain, cells * c.size), back(layout, cells);
      fill(own, number, c.rank, 0, cells);
      perform(allgather_call(own.argument(0, cells), all.argument(0, cells), c), c);
      for (int rank = 0; rank < c.size; ++rank) expect(all, number, rank, rank * cells, cells);
      const int root = number % c.size;
      perform(scatter_call(all.argument(0, cells), back.argument(), root, c), c);
      expect(back, number, c.rank, 0, cells);
      TestBuffer gathered(Layout::plain, cells * c.size);
      perform(gather_call(back.argument(), gathered.argument(0, cells), root, c), c);
      if (c.rank == root)
        for (int rank = 0; rank < c.size; ++rank) expect(gathered, number, rank, rank * cells, cells);
      for (int rank = 0; rank < c.size; ++rank)
        fill(own, number, c.rank * c.size + rank, rank * cells, cells);
      perform(alltoall_call(own.argument(0, cells), all.argument(0, cells)), c);
      for (int rank = 0; rank < c.size; ++rank)
        expect(all, number, rank * c.size + c.rank, rank * cells, cells);
      perform(alltoall_call(Buffer{MPI_IN_PLACE, 0, nullptr}, own.argument(0, cells)), c);
      for (int rank = 0; rank < c.size; ++rank)
        expect(own, number, rank * c.size + c.rank, rank * cells, cells);
    }
  });
}

TEST(areas, long_data_moves_in_chunks) { move_data(long_counts); }

/// Ranks whose buffers have no gaps go straight (straight.cpp), the others of the same call do not.
TEST(areas, little_data_moves_the_same_way_with_and_without_gaps) {
  constexpr MPI_Count in_entries_and_pieces[] = {1, 3, 12, 13, 60, 128, 129, 500};
  move_data(in_entries_and_pieces);
}

TEST(areas, long_vectors_are_reduced_in_chunks) {
  in_areas(
      [](object::Communicator& c, const Perform& perform) {
        Datatype& type = *datatype::find_datatype(MPI_INT64_T);
        const datatype::Operation& operation = *datatype::find_operation(MPI_SUM);
        for (MPI_Count count : long_counts) {
          const auto places = static_cast<std::size_t>(count), size = static_cast<std::size_t>(c.size);
          std::vector<std::int64_t> own(places * size), result(places * size, -1);
          fill_terms(own, c.rank);
          auto expect_sums = [&](int last, std::size_t first, std::size_t number) {
            EXPECT_EQ(first_wrong_sum({result.data(), number}, last, first), -1);
          };
          perform(allreduce_call(own.data(), result.data(), count, type, operation), c);
          expect_sums(c.size - 1, 0, places);
          const int root = c.size - 1;
          std::fill(result.begin(), result.end(), -1);
          perform(reduce_call(own.data(), result.data(), count, type, operation, root, c), c);
          if (c.rank == root) expect_sums(c.size - 1, 0, places);
          perform(scan_call(own.data(), result.data(), count, type, operation), c);
          expect_sums(c.rank, 0, places);
          perform(exscan_call(own.data(), result.data(), count, type, operation), c);
          if (c.rank != 0) expect_sums(c.rank - 1, 0, places);
          perform(reduce_scatter_block_call(own.data(), result.data(), count, type, operation), c);
          expect_sums(c.size - 1, places * static_cast<std::size_t>(c.rank), places);
          result = own;
          perform(allreduce_call(MPI_IN_PLACE, result.data(), count, type, operation), c);
          expect_sums(c.size - 1, 0, places);
        }
      },
      {0, 2, 3}); // on two processors one rank reduces alone, on three all of them do
}

/// Calls on an area run in the order in which the program made them, in whatever order it waits for them.
TEST(areas, calls_under_way_complete_in_any_order) {
  make_types();
  constexpr int calls = 7, elements = 20'000; // together they use more numbers than a ring has entries
  for (int shared_processors : {0, 2}) {
    ASSERT_TRUE(configure("auto", shared_processors).ok());
    for (int size : {2, 3, 5})
      run_ranks(size, Conditions{everything, 2}, [](object::Communicator& c) {
        Datatype& type = *datatype::find_datatype(MPI_INT32_T);
        const datatype::Operation& operation = *datatype::find_operation(MPI_SUM);
        for (bool reversed : {false, true}) {
          std::vector<std::int32_t> own(elements, c.rank + 1), sums[calls], sent[calls];
          p2p::Request* requests[2 * calls] = {};
          for (int i = 0; i < calls; ++i) {
            sums[i].resize(elements);
            sent[i].assign(elements, c.rank == i % c.size ? i : -1);
            ASSERT_TRUE(start(allreduce_call(own.data(), sums[i].data(), elements - i, type, operation), c,
                              requests[2 * i])
                            .ok());
            ASSERT_TRUE(start(broadcast_call(Buffer{sent[i].data(), elements, &type}, i % c.size), c,
                              requests[2 * i + 1])
                            .ok());
          }
          std::int32_t one = 1, all = 0; // a blocking call between them
          blocking(allreduce_call(&one, &all, 1, type, operation), c);
          EXPECT_EQ(all, c.size);
          for (int i = 0; i < 2 * calls; ++i)
            EXPECT_TRUE(wait(requests[reversed ? 2 * calls - 1 - i : i]).ok());
          for (int i = 0; i < calls; ++i) {
            EXPECT_EQ(sums[i][static_cast<std::size_t>(elements - i - 1)], c.size * (c.size + 1) / 2);
            EXPECT_EQ(sent[i].back(), i);
          }
        }
      });
  }
  ASSERT_TRUE(configure("auto").ok());
}

/// A rank that has started several calls and computes does not delay the others.
TEST(areas, calls_publish_before_their_turn) {
  make_types();
  constexpr int calls = 5;
  for (int size : {2, 3, 5}) {
    std::barrier<> together(size);
    run_ranks(size, Conditions{everything, most_slices}, [&](object::Communicator& c) {
      TestBuffer buffers[calls] = {{Layout::plain, 1},
                                   {Layout::plain, 4},
                                   {Layout::plain, 40},
                                   {Layout::plain, 400},
                                   {Layout::plain, 1600}};
      p2p::Request* requests[2 * calls] = {};
      for (int i = 0; i < calls; ++i) {
        if (c.rank == 0) fill(buffers[i], i, 0, 0, 1);
        ASSERT_TRUE(start(broadcast_call(buffers[i].argument(), 0), c, requests[2 * i]).ok());
        ASSERT_TRUE(start(barrier_call(), c, requests[2 * i + 1]).ok());
      }
      if (c.rank == 0) together.arrive_and_wait(); // and makes no progress meanwhile
      for (p2p::Request* request : requests) ASSERT_TRUE(wait(request).ok());
      for (int i = 0; i < calls; ++i) expect(buffers[i], i, 0, 0, 1);
      if (c.rank != 0) together.arrive_and_wait();
    });
  }
}

/// A short call with predefined types is executed, others are recorded (short_call.h): ranks may differ in that, and a
/// later call by messages still matches.
TEST(areas, ranks_may_have_different_datatypes_in_a_short_call) {
  make_types();
  run_ranks(9, Conditions{everything}, [](object::Communicator& c) {
    Datatype& type = *datatype::find_datatype(MPI_INT64_T);
    const datatype::Operation& operation = *datatype::find_operation(MPI_SUM);
    for (int number = 1; number < 40; ++number) {
      TestBuffer buffer(c.rank % 2 == 0 ? Layout::split : Layout::gaps, 3);
      const int root = number % c.size;
      if (c.rank == root) fill(buffer, number, root, 0, 3);
      p2p::Request* request = nullptr;
      ASSERT_TRUE(start(broadcast_call(buffer.argument(), root), c, request).ok());
      ASSERT_TRUE(wait(request).ok());
      expect(buffer, number, root, 0, 3);
      std::int64_t own = number, sum = 0; // a scan of more than 8 ranks consists of messages
      ASSERT_TRUE(run(scan_call(&own, &sum, 1, type, operation), c).ok());
      EXPECT_EQ(sum, number * (c.rank + 1));
    }
  });
}

/// A rank that runs ahead of the others, by more numbers than a ring has entries, still has to read its own entries.
TEST(areas, entries_that_are_published_early_are_kept_until_their_own_rank_has_read_them) {
  make_types();
  constexpr int calls = 5 * ring_depth;
  for (int late : {0, 1, 2})
    for (int elements : {1, 30, 250}) { // in the first line of an entry, in pieces
      std::barrier<> together(3);
      run_ranks(3, Conditions{everything}, [&](object::Communicator& c) {
        Datatype& type = *datatype::find_datatype(MPI_INT32_T);
        const datatype::Operation& operation = *datatype::find_operation(MPI_SUM);
        std::vector<std::int32_t> own[calls], sums[calls];
        p2p::Request* requests[calls] = {};
        if (c.rank == late) together.arrive_and_wait();
        for (int i = 0; i < calls; ++i) {
          own[i].resize(static_cast<std::size_t>(elements));
          sums[i].resize(own[i].size());
          std::iota(own[i].begin(), own[i].end(), c.rank + i);
          ASSERT_TRUE(
              start(allreduce_call(own[i].data(), sums[i].data(), elements, type, operation), c, requests[i])
                  .ok());
        }
        if (c.rank != late) together.arrive_and_wait();
        for (int i = 0; i < calls; ++i) {
          ASSERT_TRUE(wait(requests[i]).ok());
          for (int at = 0; at < elements; ++at)
            ASSERT_EQ(sums[i][static_cast<std::size_t>(at)], 3 + 3 * (i + at));
        }
      });
    }
}

/// Each rank starts them in an order of its own, and again before others have finished.
TEST(areas, persistent_calls_start_in_any_order) {
  make_types();
  constexpr int calls = 5, rounds = 40, elements = 3'000;
  run_ranks(3, Conditions{everything, 2}, [](object::Communicator& c) {
    Datatype& type = *datatype::find_datatype(MPI_INT32_T);
    const datatype::Operation& operation = *datatype::find_operation(MPI_SUM);
    std::vector<std::int32_t> own[calls], sums[calls];
    p2p::Request* requests[calls] = {};
    for (int i = 0; i < calls; ++i) {
      own[i].resize(elements);
      sums[i].resize(elements);
      ASSERT_TRUE(
          prepare(allreduce_call(own[i].data(), sums[i].data(), elements, type, operation), c, requests[i])
              .ok());
    }
    for (int round = 0; round < rounds; ++round) {
      for (int step = 0; step < calls; ++step) {
        const int i = (step * (c.rank + 1) + round) % calls;
        std::fill(own[i].begin(), own[i].end(), c.rank + i + round);
        ASSERT_TRUE(p2p::start(*requests[i]).ok());
      }
      for (int step = 0; step < calls; ++step) {
        const int i = (step + c.rank) % calls;
        ASSERT_TRUE(wait(requests[i]).ok());
        ASSERT_EQ(sums[i].front(), 3 + 3 * (i + round));
        ASSERT_EQ(sums[i].back(), 3 + 3 * (i + round));
      }
    }
    for (p2p::Request* request : requests) free(request);
  });
}

TEST(areas, calls_under_way_fail_without_memory) {
  make_types();
  run_ranks(3, Conditions{everything, 0}, [](object::Communicator& c) {
    TestBuffer own(Layout::plain, 1000), all(Layout::plain, 3000), buffer(Layout::plain, 1000);
    p2p::Request *first = nullptr, *second = nullptr;
    ASSERT_TRUE(start(allgather_call(own.argument(), all.argument(0, 1000), c), c, first).ok());
    ASSERT_TRUE(start(broadcast_call(buffer.argument(), 1), c, second).ok());
    EXPECT_EQ(wait(second).code(), MPI_ERR_NO_MEM);
    EXPECT_EQ(wait(first).code(), MPI_ERR_NO_MEM);
    nonblocking(barrier_call(), c);
    blocking(barrier_call(), c);
  });
}

TEST(areas, without_memory_every_rank_that_needs_it_fails) {
  make_types();
  run_ranks(3, Conditions{everything, 0}, [](object::Communicator& c) {
    TestBuffer own(Layout::plain, 1000), all(Layout::plain, 3000);
    EXPECT_EQ(run(allgather_call(own.argument(), all.argument(0, 1000), c), c).code(), MPI_ERR_NO_MEM);
    TestBuffer buffer(Layout::plain, 1000);
    EXPECT_EQ(run(broadcast_call(buffer.argument(), 1), c).code(), MPI_ERR_NO_MEM);
    TestBuffer small(Layout::plain, 2);
    blocking(broadcast_call(small.argument(), 1), c); // needs no slice
    blocking(barrier_call(), c);
  });
}

TEST(areas, ranks_that_call_different_collectives_get_an_error) {
  make_types();
  run_ranks(2, Conditions{everything}, [](object::Communicator& c) {
    TestBuffer buffer(Layout::plain, 4);
    if (c.rank == 1) {
      blocking(broadcast_call(buffer.argument(), 1), c); // the root does not wait
      return;
    }
    EXPECT_EQ(run(barrier_call(), c).code(), MPI_ERR_OTHER);
    const std::string text(base::failure_text());
    EXPECT_EQ(
        text,
        "rank 0 calls barrier, but rank 1 of the same communicator calls broadcast of 32 bytes, root 1");
  });
  run_ranks(2, Conditions{everything}, [](object::Communicator& c) {
    std::int32_t own = 1, sum = 0;
    const datatype::Operation& operation = *datatype::find_operation(c.rank == 0 ? MPI_SUM : MPI_MAX);
    EXPECT_EQ(run(allreduce_call(&own, &sum, 1, *datatype::find_datatype(MPI_INT), operation), c).code(),
              MPI_ERR_OTHER);
    EXPECT_NE(std::string(base::failure_text()).find("MPI_MAX"), std::string::npos);
  });
}

/// Nobody publishes what the odd rank waits for. It is told once the rank that it takes for the root has read what that publishes
/// itself, whatever the others call next.
TEST(areas, a_wrong_root_is_found) {
  make_types();
  const Perform barrier = [](const Call&, object::Communicator& c) {
    EXPECT_EQ(run(barrier_call(), c).code(), MPI_ERR_OTHER);
  };
  const Perform gather = [](const Call&, object::Communicator& c) {
    TestBuffer own(Layout::plain, 1), all(Layout::plain, 3);
    const Call call = gather_call(own.argument(), all.argument(0, 1), 1, c);
    EXPECT_TRUE(run(call, c).code() == MPI_ERR_OTHER || c.rank != 1);
  };
  const Perform the_same = [](const Call& same, object::Communicator& c) {
    // As many as the root may be ahead of the odd rank, and more.
    constexpr int most = 20 * static_cast<int>(ring_depth);
    int calls = 0;
    while (calls < most && run(same, c).ok()) ++calls;
    EXPECT_LT(calls, most);
  };
  for (const Perform& then : {barrier, gather, the_same})
    for (MPI_Count cells : {1, 40, 100'000})
      for (bool later : {false, true})
        run_ranks(3, Conditions{everything, most_slices}, [&](object::Communicator& c) {
          TestBuffer buffer(Layout::plain, cells);
          const Call call = broadcast_call(buffer.argument(), c.rank == 2 ? 1 : 0);
          Result result;
          if (later) {
            p2p::Request* request = nullptr;
            ASSERT_TRUE(start(call, c, request).ok());
            result = wait(request);
          } else {
            result = run(call, c);
          }
          if (c.rank != 2 && result.ok()) return then(call, c);
          EXPECT_EQ(result.code(), MPI_ERR_OTHER);
          if (c.rank == 2 && !later) {
            const std::string text(base::failure_text());
            EXPECT_NE(text.find("root 1"), std::string::npos) << text;
          }
        });
}

TEST(areas, a_wrong_root_of_a_persistent_call_is_found) {
  make_types();
  for (MPI_Count cells : {1, 40, 100'000})
    run_ranks(3, Conditions{everything, most_slices}, [&](object::Communicator& c) {
      TestBuffer buffer(Layout::plain, cells);
      p2p::Request* request = nullptr;
      ASSERT_TRUE(prepare(broadcast_call(buffer.argument(), c.rank == 2 ? 1 : 0), c, request).ok());
      ASSERT_TRUE(p2p::start(*request).ok());
      const Result result = wait(request);
      if (c.rank == 2) EXPECT_EQ(result.code(), MPI_ERR_OTHER);
      free(request);
    });
}

/// This includes a rank that only hears of the mismatch from others, and one with chunks left to publish.
TEST(areas, every_rank_gets_an_error_that_names_both_collectives) {
  make_types();
  const Conditions conditions{.eager_bytes = everything, .slices = most_slices, .messages_remain = true};
  for (bool later : {false, true})
    run_ranks(3, conditions, [&](object::Communicator& c) {
      TestBuffer own(Layout::plain, 40'000), all(Layout::plain, 40'000);
      const Call call = c.rank == 1 ? allgather_call(own.argument(0, 10'000), all.argument(0, 10'000), c)
                                    : alltoall_call(own.argument(0, 10'000), all.argument(0, 10'000));
      if (later) {
        p2p::Request* request = nullptr;
        ASSERT_TRUE(start(call, c, request).ok());
        EXPECT_EQ(wait(request).code(), MPI_ERR_OTHER);
        return;
      }
      EXPECT_EQ(run(call, c).code(), MPI_ERR_OTHER);
      for (const char* each : {"allgather of 80000 bytes", "alltoall of 80000 bytes"})
        EXPECT_NE(std::string(base::failure_text()).find(each), std::string::npos) << base::failure_text();
      EXPECT_EQ(run(barrier_call(), c).code(), MPI_ERR_OTHER);
      EXPECT_NE(std::string(base::failure_text()).find("cannot be used"), std::string::npos);
    });
}

/// As if there were no memory for its request: the call has begun, and what it still has to publish fails.
TEST(areas, nobody_waits_for_a_call_that_cannot_be_recorded_to_its_end) {
  make_types();
  for (MPI_Count cells : {1, 10'000, 200'000})
    run_ranks(3, Conditions{everything, 1}, [&](object::Communicator& c) {
      TestBuffer own(Layout::plain, cells), all(Layout::plain, 3 * cells);
      const Call call = allgather_call(own.argument(0, cells), all.argument(0, cells), c);
      if (c.rank == 0) {
        Schedule begun(true);
        CollectiveGroup group(c, &begun, static_cast<AreaExtension&>(*c.extension).area.get());
        ASSERT_TRUE(run(group, call).ok());
      } else {
        p2p::Request* request = nullptr;
        ASSERT_TRUE(start(call, c, request).ok());
        const Result result = wait(request);
        EXPECT_TRUE(result.ok() || result.code() == MPI_ERR_NO_MEM) << base::failure_text();
      }
      blocking(barrier_call(), c);
    });
}

TEST(areas, nobody_waits_in_an_area_whose_ranks_have_called_different_collectives) {
  make_types();
  // One call has a single chunk, the other many: a rank with chunks to publish needs entries that the others
  // never free.
  for (bool turned : {false, true})
    run_ranks(3, Conditions{everything, most_slices}, [&](object::Communicator& c) {
      Datatype& type = *datatype::find_datatype(MPI_INT64_T);
      const datatype::Operation& operation = *datatype::find_operation(MPI_SUM);
      const MPI_Count count = (c.rank == 1) != turned ? 1'000'000 : 1;
      std::vector<std::int64_t> own(1'000'000), sum(1'000'000);
      EXPECT_EQ(run(allreduce_call(own.data(), sum.data(), count, type, operation), c).code(), MPI_ERR_OTHER);
      EXPECT_EQ(run(barrier_call(), c).code(), MPI_ERR_OTHER);
      TestBuffer buffer(Layout::plain, 100'000);
      EXPECT_EQ(run(broadcast_call(buffer.argument(), 2), c).code(), MPI_ERR_OTHER);
    });
}

/// The first number of a new call, which takes `numbers` of them.
Number first_number(Area& area, Number numbers) {
  Number first = 0;
  (void)area.take_turn(numbers, first);
  return first;
}

/// Calls that are under way when this process learns of the failure end, and so do later ones.
TEST(areas, nobody_waits_for_a_rank_that_has_failed) {
  make_types();
  for (bool nonblocking : {false, true})
    run_ranks(4, Conditions{everything, 1}, [&](object::Communicator& c) {
      if (c.rank == 2) return;
      Area& area = *static_cast<AreaExtension&>(*c.extension).area;
      TestBuffer own(Layout::plain, 40'000), all(Layout::plain, 40'000);
      Datatype& type = *datatype::find_datatype(MPI_INT64_T);
      const datatype::Operation& sum = *datatype::find_operation(MPI_SUM);
      std::vector<std::int64_t> vector(30'000), sums(30'000);
      const Call calls[] = {
          allgather_call(own.argument(0, 10'000), all.argument(0, 10'000), c),
          allreduce_call(vector.data(), sums.data(), 30'000, type, sum),
          broadcast_call(own.argument(), 2),
          barrier_call(),
      };
      p2p::Request* requests[std::size(calls)] = {};
      if (nonblocking)
        for (std::size_t i = 0; i < std::size(calls); ++i) ASSERT_TRUE(start(calls[i], c, requests[i]).ok());
      area.process_failed({.rank = 2});
      for (std::size_t i = 0; i < std::size(calls); ++i) {
        const Result ended = nonblocking ? wait(requests[i]) : run(calls[i], c);
        EXPECT_EQ(ended.code(), MPI_ERR_PROC_ABORTED) << "call " << i;
        EXPECT_NE(std::string(base::failure_text()).find("rank 2 of this communicator has failed"),
                  std::string::npos)
            << base::failure_text();
      }
    });
}

/// A short call that had published when the area broke still declares what it has not read as finished: otherwise the
/// slices of others, and the area itself, would never be free.
TEST(areas, a_short_call_that_fails_leaves_nothing_behind) {
  make_types();
  for (bool derived : {false, true}) {
    std::barrier<> together(2);
    run_ranks(2, Conditions{everything, most_slices}, [&](object::Communicator& c) {
      Area& area = *static_cast<AreaExtension&>(*c.extension).area;
      const MPI_Count cells = c.rank == 0 ? 200 : 300; // more than a piece holds, and a mismatch
      TestBuffer own(derived ? Layout::gaps : Layout::split, cells), all(Layout::split, 2 * cells);
      p2p::Request* request = nullptr;
      ASSERT_TRUE(start(allgather_call(own.argument(), all.argument(0, cells), c), c, request).ok());
      EXPECT_EQ(wait(request).code(), MPI_ERR_OTHER);
      together.arrive_and_wait();
      EXPECT_TRUE(area.is_over());
    });
  }
}

/// Otherwise calls on other communicators would wait for its slices for ever.
TEST(areas, slices_that_a_failed_rank_has_not_read_become_free) {
  std::array<AreaPart, 3> parts{};
  std::vector<AreaMember> members(3);
  for (std::uint32_t i = 0; i < 3; ++i) {
    members[i].process.rank = i;
    members[i].part = &parts[i];
  }
  static std::vector<std::vector<std::byte>> memory;
  Slices slices({[](std::size_t, void*& at, std::size_t&) -> base::Result {
                   at = memory.emplace_back(slice_bytes).data();
                   return {};
                 },
                 [](std::byte*, std::size_t, std::size_t) { return base::Result{}; }});
  Area own(members, 0, nullptr, slices);
  ASSERT_EQ(first_number(own, most_slices), 1u);
  std::byte* at = nullptr;
  for (Number number = 1; number <= most_slices; ++number) {
    ASSERT_TRUE(own.prepare(number, 2000, at).ok());
    own.publish(number, {});
  }
  own.finish(most_slices);
  parts[1].finished.raise(most_slices);
  EXPECT_FALSE(slices.any_free(2000));
  own.process_failed({.rank = 7}); // not a member
  EXPECT_FALSE(own.is_broken());
  own.process_failed({.rank = 2});
  EXPECT_TRUE(own.is_broken());
  EXPECT_TRUE(slices.any_free(2000));
}

/// Otherwise, in a program with threads, two areas could wait for each other's ranks.
TEST(areas, an_area_without_a_slice_does_not_wait_for_those_of_another) {
  std::array<AreaPart, 2> parts{}, further{};
  std::vector<AreaMember> members(2), others(2);
  for (std::size_t i = 0; i < 2; ++i) {
    members[i].part = &parts[i];
    others[i].part = &further[i];
  }
  static std::vector<std::vector<std::byte>> memory;
  auto reserve = [](std::size_t, void*& at, std::size_t&) -> base::Result {
    at = memory.emplace_back(slice_bytes).data();
    return {};
  };
  auto populate = [](std::byte*, std::size_t, std::size_t) { return base::Result{}; };
  Slices slices({reserve, populate});
  Area first(members, 0, nullptr, slices), second(others, 0, nullptr, slices);
  std::byte* at = nullptr;
  ASSERT_EQ(first_number(first, most_slices + 1), 1u);
  for (Number number = 1; number <= most_slices; ++number) {
    ASSERT_TRUE(first.prepare(number, 2000, at).ok());
    first.publish(number, {});
  }
  EXPECT_FALSE(first.can_prepare(most_slices + 1, 2000));
  ASSERT_EQ(first_number(second, 2), 1u);
  ASSERT_TRUE(second.can_prepare(1, 2000));
  ASSERT_TRUE(second.prepare(1, 2000, at).ok());
  second.publish(1, {});
  EXPECT_FALSE(second.can_prepare(2, 2000)) << "it has one";
}

/// If a free slice is too short and there is no memory to extend it, a rank does not wait for it.
TEST(areas, a_rank_does_not_wait_for_a_slice_that_is_too_short) {
  std::array<AreaPart, 2> parts{};
  std::vector<AreaMember> members(2);
  for (std::size_t i = 0; i < 2; ++i) members[i].part = &parts[i];
  static std::vector<std::vector<std::byte>> memory;
  static std::size_t pages;
  pages = 6000;
  auto reserve = [](std::size_t, void*& at, std::size_t&) -> base::Result {
    at = memory.emplace_back(slice_bytes).data();
    return {};
  };
  auto populate = [](std::byte*, std::size_t had, std::size_t bytes) -> base::Result {
    if (bytes - had > pages) return base::fail(MPI_ERR_NO_MEM, "no more pages");
    pages -= bytes - had;
    return {};
  };
  Slices slices({reserve, populate});
  Area own(members, 0, nullptr, slices);
  ASSERT_EQ(first_number(own, 4), 1u);
  std::byte* at = nullptr;
  ASSERT_TRUE(own.prepare(1, 4000, at).ok());
  own.publish(1, {});
  ASSERT_TRUE(own.prepare(2, 2000, at).ok());
  own.publish(2, {});
  own.finish(2);
  parts[1].finished.raise(2); // both slices are free; one has only 2000 bytes
  EXPECT_FALSE(own.can_prepare(3, 5000));
  EXPECT_TRUE(slices.exhausted(5000));
  EXPECT_FALSE(slices.any_free(5000));
  EXPECT_TRUE(slices.any_free(4000));
  ASSERT_TRUE(own.prepare(3, 4000, at).ok());
  EXPECT_FALSE(slices.any_free(4000)) << "the free one is too short";
  EXPECT_FALSE(slices.exhausted(4000)) << "the other one is worth waiting for";
}

/// Waiting is expensive for ranks that share processors.
TEST(areas, no_rank_waits_for_data_that_is_available) {
  std::array<AreaPart, 2> parts{};
  std::vector<AreaMember> members(2);
  for (std::size_t i = 0; i < 2; ++i) members[i].part = &parts[i];
  auto refuse = [](std::size_t, void*&, std::size_t&) -> base::Result {
    return base::fail(MPI_ERR_NO_MEM, "no slices");
  };
  Slices none({refuse, nullptr}), neither({refuse, nullptr});
  Area own(members, 0, nullptr, none), other(members, 1, nullptr, neither);
  const std::byte* data = nullptr;
  for (Number number = 1; number < 5 * ring_depth; ++number) {
    // The rank that comes last finds the other's entry, and finds the entries of the last round finished.
    ASSERT_EQ(first_number(own, 1), number);
    ASSERT_EQ(first_number(other, 1), number);
    for (Area* area : {&own, &other}) {
      std::byte* at = nullptr;
      ASSERT_TRUE(area->prepare(number, 8, at).ok());
      area->publish(number, {});
    }
    ASSERT_TRUE(other.wait(0, number, {}, data).ok());
    other.finish(number);
    ASSERT_TRUE(own.wait(1, number, {}, data).ok());
    own.finish(number);
  }
  EXPECT_EQ(own.waits(), 0u);
  EXPECT_EQ(other.waits(), 0u);
}

/// A rank that publishes ahead still has to read its own slices.
TEST(areas, a_slice_is_taken_again_only_after_its_own_rank_has_read_it) {
  std::array<AreaPart, 2> parts{};
  std::vector<AreaMember> members(2);
  for (std::size_t i = 0; i < 2; ++i) members[i].part = &parts[i];
  static std::vector<std::byte> memory(static_cast<std::size_t>(slice_bytes));
  static int made = 0;
  made = 0;
  auto reserve = [](std::size_t, void*& at, std::size_t&) -> base::Result {
    if (made++ != 0) return base::fail(MPI_ERR_NO_MEM, "one slice only");
    at = memory.data();
    return {};
  };
  auto populate = [](std::byte*, std::size_t, std::size_t) { return base::Result{}; };
  Slices slices({reserve, populate}), others({reserve, populate});
  Area own(members, 0, nullptr, slices), other(members, 1, nullptr, others);
  ASSERT_EQ(first_number(own, 2), 1u);
  ASSERT_EQ(first_number(other, 2), 1u);
  std::byte* at = nullptr;
  ASSERT_TRUE(own.prepare(1, 2000, at).ok());
  own.publish(1, {});
  const std::byte* data = nullptr;
  ASSERT_TRUE(other.wait(0, 1, {}, data).ok());
  EXPECT_EQ(data, at);
  EXPECT_FALSE(own.can_prepare(2, 2000));
  other.finish(1);
  EXPECT_FALSE(own.can_prepare(2, 2000)) << "this rank has not read it";
  own.finish(1);
  EXPECT_TRUE(own.can_prepare(2, 2000));
}

/// A slice that is still in use cannot be fetched ahead.
TEST(areas, short_data_rotates_through_enough_slices) {
  std::array<AreaPart, 2> parts{};
  std::vector<AreaMember> members(2);
  for (std::size_t i = 0; i < 2; ++i) members[i].part = &parts[i];
  static std::vector<std::vector<std::byte>> memory;
  memory.clear();
  auto reserve = [](std::size_t, void*& at, std::size_t&) -> base::Result {
    at = memory.emplace_back(slice_bytes).data();
    return {};
  };
  auto populate = [](std::byte*, std::size_t, std::size_t) { return base::Result{}; };
  Slices slices({reserve, populate, 4}), few({reserve, populate});
  Area own(members, 0, nullptr, slices);
  ASSERT_EQ(first_number(own, 9), 1u);
  std::vector<std::byte*> at(9);
  for (Number number = 1; number < 9; ++number) {
    ASSERT_TRUE(own.prepare(number, 2000, at[number]).ok());
    own.publish(number, {});
    own.finish(number);
    parts[1].finished.raise(number); // so each slice is free at once
  }
  for (Number number = 5; number < 9; ++number) EXPECT_EQ(at[number], at[number - 4]);
  EXPECT_EQ(memory.size(), 4u);
  std::byte* piece = nullptr;
  ASSERT_TRUE(own.prepare(9, piece_bytes, piece).ok());
  EXPECT_GE(piece, parts[0].pieces);
  EXPECT_LT(piece, parts[0].pieces + sizeof parts[0].pieces) << "shorter data needs no slice";

  memory.clear();
  Area other(members, 1, nullptr, few);
  ASSERT_EQ(first_number(other, 2), 1u);
  std::byte* first = nullptr;
  for (Number number = 1; number < 3; ++number) {
    ASSERT_TRUE(other.prepare(number, 2000, first).ok());
    other.publish(number, {});
    other.finish(number);
    parts[0].finished.raise(9);
  }
  EXPECT_EQ(memory.size(), 1u) << "nor does a persistent call make more than it needs";
}

/// A rotation is a gain, no need: what exists already is used first, and nothing is lost if there is no memory for it.
TEST(areas, a_rotation_begins_with_the_first_slice_and_does_without_the_others) {
  std::array<AreaPart, 2> parts{};
  std::vector<AreaMember> members(2);
  for (std::size_t i = 0; i < 2; ++i) members[i].part = &parts[i];
  static std::vector<std::vector<std::byte>> memory;
  static int refused;
  memory.clear();
  memory.reserve(most_slices);
  refused = 0;
  auto reserve = [](std::size_t index, void*& at, std::size_t& had) -> base::Result {
    if (index == memory.size()) memory.emplace_back(slice_bytes);
    at = memory[index].data();
    had = index == 0 ? slice_bytes : 0;
    return {};
  };
  auto populate = [](std::byte* slice, std::size_t, std::size_t) -> base::Result {
    if (slice != memory[1].data() || ++refused > 1) return {};
    return base::fail(MPI_ERR_NO_MEM, "not now");
  };
  Slices slices({reserve, populate, 4});
  Area own(members, 0, nullptr, slices);
  ASSERT_EQ(first_number(own, 5), 1u);
  std::byte* at = nullptr;
  auto publish = [&](Number number, MPI_Count bytes) {
    EXPECT_TRUE(own.can_prepare(number, bytes));
    ASSERT_TRUE(own.prepare(number, bytes, at).ok());
    own.publish(number, {});
  };
  publish(1, 2000);
  EXPECT_EQ(at, memory[0].data());
  EXPECT_EQ(memory.size(), 1u) << "the first slice was not used before";
  own.finish(1);
  parts[1].finished.raise(1);
  for (Number number = 2; number < 4; ++number) {
    publish(number, 2000);
    EXPECT_EQ(at, memory[0].data());
    own.finish(number);
    parts[1].finished.raise(number);
  }
  EXPECT_EQ(refused, 1) << "asked once";
  publish(4, slice_bytes);
  publish(5, slice_bytes); // needs a second one, for which there is memory now
  EXPECT_EQ(at, memory[1].data());
}

/// Where ranks share processors, a rank that publishes little data may be far ahead of those that read it.
TEST(areas, slices_are_filled_before_more_are_made) {
  std::array<AreaPart, 2> parts{};
  std::vector<AreaMember> members(2);
  for (std::size_t i = 0; i < 2; ++i) members[i].part = &parts[i];
  static std::vector<std::vector<std::byte>> memory;
  memory.clear();
  memory.reserve(most_slices);
  auto reserve = [](std::size_t, void*& made, std::size_t&) -> base::Result {
    made = memory.emplace_back(slice_bytes).data();
    return {};
  };
  static std::size_t pages;
  pages = 0;
  auto populate = [](std::byte*, std::size_t had, std::size_t bytes) -> base::Result {
    pages += bytes - had;
    return {};
  };
  Slices slices({.reserve = reserve, .populate = populate, .packs = true});
  Area own(members, 0, nullptr, slices);
  constexpr MPI_Count bytes = 5000;
  constexpr Number in_slice = slice_bytes / (bytes + 128), all = in_slice * most_slices;
  ASSERT_EQ(first_number(own, all + 10), 1u);
  std::vector<std::byte*> at(all + 10);
  auto publish = [&](Number number) {
    ASSERT_TRUE(own.can_prepare(number, bytes)) << number;
    ASSERT_TRUE(own.prepare(number, bytes, at[number]).ok());
    own.publish(number, {});
    own.finish(number);
  };
  for (Number number = 1; number <= all; ++number) {
    publish(number);
    EXPECT_EQ(memory.size(), (number - 1) / in_slice + 1) << number;
    std::memset(at[number], static_cast<int>(number), bytes);
  }
  EXPECT_FALSE(own.can_prepare(all + 1, bytes)) << "all slices are full";
  EXPECT_LE(pages, most_slices * slice_bytes);
  for (Number number = 1; number <= all; ++number)
    for (const MPI_Count byte : {MPI_Count{0}, bytes - 1})
      EXPECT_EQ(at[number][byte], static_cast<std::byte>(number)) << number << " was overwritten";

  parts[1].finished.raise(in_slice - 1);
  EXPECT_FALSE(own.can_prepare(all + 1, bytes)) << "the last data of a slice is still being read";
  parts[1].finished.raise(in_slice);
  publish(all + 1);
  EXPECT_EQ(at[all + 1], at[1]);
  parts[1].finished.raise(all + 1);
  for (Number number = all + 2; number < all + 10; ++number) {
    publish(number);
    parts[1].finished.raise(number);
    EXPECT_EQ(at[number], memory[(number - all - 1) % most_slices].data()) << "free slices go first";
  }
}

/// Those of a persistent call, whose starts allocate nothing.
TEST(areas, slices_that_do_not_grow_are_filled_as_far_as_they_have_pages) {
  std::array<AreaPart, 2> parts{};
  std::vector<AreaMember> members(2);
  for (std::size_t i = 0; i < 2; ++i) members[i].part = &parts[i];
  static std::vector<std::vector<std::byte>> memory;
  memory.clear();
  memory.reserve(2);
  auto reserve = [](std::size_t, void*& made, std::size_t&) -> base::Result {
    made = memory.emplace_back(slice_bytes).data();
    return {};
  };
  static int populated;
  populated = 0;
  auto populate = [](std::byte*, std::size_t, std::size_t) -> base::Result {
    ++populated;
    return {};
  };
  Slices slices({.reserve = reserve, .populate = populate, .packs = true, .most = 2, .grows = false});
  constexpr MPI_Count bytes = 5000;
  constexpr Number in_slice = 3;
  ASSERT_TRUE(slices.make(2, in_slice * (bytes + 128)));
  Area own(members, 0, nullptr, slices);
  ASSERT_EQ(first_number(own, 2 * in_slice + 1), 1u);
  std::byte* at = nullptr;
  for (Number number = 1; number <= 2 * in_slice; ++number) {
    ASSERT_TRUE(own.can_prepare(number, bytes)) << number;
    ASSERT_TRUE(own.prepare(number, bytes, at).ok());
    own.publish(number, {});
    own.finish(number);
  }
  EXPECT_FALSE(own.can_prepare(2 * in_slice + 1, bytes)) << "both slices are full";
  EXPECT_EQ(memory.size(), 2u);
  EXPECT_EQ(populated, 2);
  // Free slices go first, so the first one holds numbers 1, 3 and 4.
  parts[1].finished.raise(3);
  EXPECT_FALSE(own.can_prepare(2 * in_slice + 1, bytes));
  parts[1].finished.raise(4);
  EXPECT_TRUE(own.can_prepare(2 * in_slice + 1, bytes));
}

TEST(pieces, successive_data_lies_apart_and_room_is_asked_for_once_it_is_used_again) {
  Pieces pieces;
  std::map<std::size_t, Number> used; // by unit
  std::size_t last = Pieces::ring_bytes;
  const std::size_t sizes[] = {97, 1024, 130, 512, 1000, 128, 700};
  for (Number number = 1; number < 2000; ++number) {
    const std::size_t bytes = sizes[number % std::size(sizes)];
    const Pieces::Place place = pieces.next(bytes);
    ASSERT_LE(place.offset + bytes, Pieces::bytes);
    EXPECT_EQ(place.offset % Pieces::unit, 0u);
    Number newest = 0;
    for (std::size_t unit = place.offset / Pieces::unit; unit * Pieces::unit < place.offset + bytes; ++unit) {
      newest = std::max(newest, used[unit]);
      used[unit] = number;
    }
    EXPECT_EQ(place.before, newest);
    EXPECT_NE(place.offset / Pieces::ring_bytes, last / Pieces::ring_bytes) << "adjacent to the data before";
    EXPECT_TRUE(place.before == 0 || number - place.before >= 2 * Pieces::ring_bytes / 1024 - 2) << number;
    last = place.offset;
    pieces.take(bytes, number);
    EXPECT_EQ(pieces.next(bytes).offset / Pieces::ring_bytes, 1 - place.offset / Pieces::ring_bytes);
  }
}

/// Bytes that all ranks of a call have read of others, and how many of them from the other node. The call has vectors of
/// long_elements integers.
struct Moved {
  std::uint64_t bytes, crossing;
};
constexpr MPI_Count long_elements = 80000;
constexpr std::uint64_t vector_bytes = long_elements * sizeof(int);

Moved moved_by(int size, const Perform& perform, const std::function<Call(int* in, int* out)>& call_of) {
  make_types();
  static base::Hardware::Atomic<std::uint64_t> bytes, crossing;
  bytes.store_relaxed(0);
  crossing.store_relaxed(0);
  run_ranks(size, Conditions{everything, most_slices}, [&](object::Communicator& c) {
    std::vector<int> in(long_elements, c.rank), out(long_elements);
    perform(call_of(in.data(), out.data()), c);
    bytes.add_relaxed(counters().area_bytes.load_relaxed());
    crossing.add_relaxed(counters().area_bytes_of_other_nodes.load_relaxed());
  });
  return {bytes.load_relaxed(), crossing.load_relaxed()};
}

TEST(areas, a_broadcast_crosses_to_the_other_node_once) {
  for (const Perform& perform : {Perform(blocking), Perform(nonblocking)})
    for (int root : {0, 2, 4}) {
      const Moved moved = moved_by(6, perform, [root](int* in, int*) {
        return broadcast_call(Buffer{in, long_elements, datatype::find_datatype(MPI_INT)}, root);
      });
      EXPECT_EQ(moved.bytes, 5 * vector_bytes) << "root " << root;
      EXPECT_EQ(moved.crossing, vector_bytes) << "root " << root;
    }
}

TEST(areas, the_ranks_of_a_leader_without_memory_fail_as_it_does) {
  make_types();
  run_ranks(6, Conditions{.slices = 2, .without_slices = 2}, [](object::Communicator& c) {
    std::vector<int> data(long_elements, c.rank == 0 ? 7 : 0);
    const Buffer buffer{data.data(), long_elements, datatype::find_datatype(MPI_INT)};
    const Result result = run(broadcast_call(buffer, 0), c);
    EXPECT_EQ(result.ok(), node_of(c.rank) == 0) << "rank " << c.rank;
    if (!result.ok()) EXPECT_EQ(result.code(), MPI_ERR_NO_MEM);
    if (result.ok()) EXPECT_EQ(data.back(), 7);
    int small = c.rank == 0 ? 9 : 0;
    ASSERT_TRUE(run(broadcast_call(Buffer{&small, 1, buffer.type}, 0), c).ok());
    EXPECT_EQ(small, 9);
  });
}

TEST(areas, an_allreduce_reads_no_byte_twice) {
  // Each rank reads its share of all other vectors, and then the other shares of the result.
  for (const Perform& perform : {Perform(blocking), Perform(nonblocking)})
    for (int size : {3, 5}) {
      const Moved moved = moved_by(size, perform, [](int* in, int* out) {
        return allreduce_call(in, out, long_elements, *datatype::find_datatype(MPI_INT),
                              *datatype::find_operation(MPI_SUM));
      });
      EXPECT_EQ(moved.bytes, 2 * static_cast<std::uint64_t>(size - 1) * vector_bytes) << size << " ranks";
    }
}

TEST(areas, the_root_of_a_reduce_in_shares_only_collects_them) {
  // The others read all vectors but their own, each its share of them, and the root the shares of the result.
  ASSERT_TRUE(configure("reduce=shared_shares").ok());
  for (const Perform& perform : {Perform(blocking), Perform(nonblocking)})
    for (int size : {3, 5})
      for (int root : {0, 1, size - 1}) {
        object::Communicator of_root;
        of_root.rank = root;
        const Moved moved = moved_by(size, perform, [&](int* in, int* out) {
          return reduce_call(in, out, long_elements, *datatype::find_datatype(MPI_INT),
                             *datatype::find_operation(MPI_SUM), root, of_root);
        });
        EXPECT_EQ(moved.bytes, static_cast<std::uint64_t>(size) * vector_bytes)
            << size << " ranks, root " << root;
      }
  ASSERT_TRUE(configure("auto").ok());
}

/// Along a grid of two rows of two ranks, and of two rows of three and one of one or two.
TEST(areas, reductions_along_a_grid_read_rows_and_columns) {
  make_types();
  ASSERT_TRUE(configure("reduce=shared_grid,allreduce=shared_grid,barrier=shared_grid").ok());
  Datatype& type = *datatype::find_datatype(MPI_INT);
  const auto& sum = *datatype::find_operation(MPI_SUM);
  for (const Perform& perform : {Perform(blocking), Perform(nonblocking)})
    for (auto [size, read] : {std::pair{4, 4 * 2}, {7, 6 * (2 + 2) + 2}, {8, 6 * (2 + 2) + 2 * (1 + 2)}}) {
      SCOPED_TRACE(std::to_string(size) + " ranks");
      for (int root : {0, 1, size - 1}) {
        object::Communicator of_root;
        of_root.rank = root;
        // Each rank but the root publishes one vector, which one other rank reads.
        EXPECT_EQ(moved_by(size, perform,
                           [&](int* in, int* out) {
                             return reduce_call(in, out, long_elements, type, sum, root, of_root);
                           })
                      .bytes,
                  static_cast<std::uint64_t>(size - 1) * vector_bytes)
            << "root " << root;
      }
      constexpr MPI_Count short_elements = 16;
      EXPECT_EQ(
          moved_by(size, perform,
                   [&](int* in, int* out) { return allreduce_call(in, out, short_elements, type, sum); })
              .bytes,
          static_cast<std::uint64_t>(read) * short_elements * sizeof(int));
    }
  ASSERT_TRUE(configure("auto").ok());
}

/// The entry of its next call lies where the others look for its second step, and nobody reads its first one if it is alone in the
/// last row.
TEST(areas, a_rank_that_is_a_call_behind_gets_no_wrong_result_along_a_grid) {
  make_types();
  ASSERT_TRUE(configure("reduce=shared_flat,allreduce=shared_grid").ok());
  Datatype& type = *datatype::find_datatype(MPI_INT);
  const auto& sum = *datatype::find_operation(MPI_SUM);
  for (int size : {4, 7, 8})
    run_ranks(size, Conditions{everything, most_slices}, [&](object::Communicator& c) {
      int own = 1, all = 0;
      bool failed = false;
      if (c.rank == size - 1) failed = !run(reduce_call(&own, nullptr, 1, type, sum, 0, c), c).ok();
      for (int i = 0; i < 2; ++i) {
        const Result result = run(allreduce_call(&own, &all, 1, type, sum), c);
        if (result.ok()) EXPECT_EQ(all, size) << "rank " << c.rank << " of " << size;
        failed |= !result.ok();
      }
      EXPECT_TRUE(failed) << "rank " << c.rank << " of " << size;
    });
  ASSERT_TRUE(configure("auto").ok());
}

TEST(areas, gathers_and_exchanges_read_each_block_once) {
  const auto read_by = [](const std::function<Call(const Buffer&, const Buffer&)>& call_of) {
    return moved_by(4, blocking,
                    [&](int* in, int* out) {
                      Datatype* type = datatype::find_datatype(MPI_INT);
                      return call_of(Buffer{in, long_elements / 4, type},
                                     Buffer{out, long_elements / 4, type});
                    })
        .bytes;
  };
  for (const char* way : {"alltoall=shared", "alltoall=single_copy"}) {
    ASSERT_TRUE(configure(way).ok());
    EXPECT_EQ(read_by([](const Buffer& in, const Buffer& out) { return alltoall_call(in, out); }),
              3 * vector_bytes)
        << way;
  }
  ASSERT_TRUE(configure("auto").ok());
  object::Communicator unused;
  EXPECT_EQ(read_by([&](const Buffer& in, const Buffer& out) { return allgather_call(in, out, unused); }),
            3 * vector_bytes);
}

} // namespace
} // namespace near::coll::test
