// Calls with little data that go straight: blocks of different sizes and reductions, next to ranks of the same call that do not.
#include "coll/shared/area.h"
#include "coll/shared/pieces.h"
#include "forms.h"

#include <barrier>
#include <numeric>
#include <string>
#include <vector>

namespace near::coll::test {
namespace {

/// Numbers that a rank sends to each rank, or receives from each, as plain integers or as the first of two.
class NumbersByRank {
public:
  NumbersByRank(std::vector<int> counts, bool gaps)
      : counts_(std::move(counts)), displacements_(counts_.size()), gaps_(gaps) {
    std::exclusive_scan(counts_.begin(), counts_.end(), displacements_.begin(), 0);
    values_.assign(static_cast<std::size_t>(displacements_.back() + counts_.back() + 1) * step(), -1);
  }
  Blocks blocks() {
    return Blocks{values_.data(), datatype::Counts(counts_.data()), datatype::Counts(displacements_.data()),
                  type()};
  }
  Buffer of(int rank) { return blocks().at(rank); }
  int& at(int rank, int i) {
    return values_[static_cast<std::size_t>(displacements_[static_cast<std::size_t>(rank)] + i) * step()];
  }
  int count(int rank) const { return counts_[static_cast<std::size_t>(rank)]; }
  /// Whether nothing was written behind the last block, or between numbers.
  bool is_clean() const {
    bool clean = values_[values_.size() - step()] == -1;
    for (std::size_t i = 1; gaps_ && i < values_.size(); i += 2) clean = clean && values_[i] == -1;
    return clean;
  }

private:
  std::size_t step() const { return gaps_ ? 2 : 1; }
  Datatype* type() const {
    if (!gaps_) return datatype::find_datatype(MPI_INT32_T);
    static Datatype* const first_of_two = [] {
      Datatype* made = nullptr;
      EXPECT_TRUE(datatype::make_resized(*datatype::find_datatype(MPI_INT32_T), 0, 8, made).ok());
      EXPECT_TRUE(datatype::commit(*made).ok());
      return made;
    }();
    return first_of_two;
  }
  std::vector<int> counts_, displacements_;
  bool gaps_;
  std::vector<int> values_;
};

int number_of(int from, int to, int i) { return from * 10'000 + to * 1'000 + i; }

void fill(NumbersByRank& numbers, int from, int to, int place) {
  for (int i = 0; i < numbers.count(place); ++i) numbers.at(place, i) = number_of(from, to, i);
}
void expect(NumbersByRank& numbers, int from, int to, int place) {
  for (int i = 0; i < numbers.count(place); ++i)
    ASSERT_EQ(numbers.at(place, i), number_of(from, to, i)) << "number " << i << " from rank " << from;
  EXPECT_TRUE(numbers.is_clean());
}

template <class CountOf>
NumbersByRank numbers(int ranks, bool gaps, CountOf count_of) {
  std::vector<int> counts;
  for (int rank = 0; rank < ranks; ++rank) counts.push_back(count_of(rank));
  return NumbersByRank(counts, gaps);
}

/// How many numbers `from` sends to `to`: few or none, and `most` in one case, which may be a message.
int count_of(int from, int to, int most) {
  constexpr int some[] = {3, 0, 1, 8, 2, 5};
  return from == 1 && to == 0 ? most : some[(from * 2 + to) % 6];
}

using Act = std::function<void()>;

/// Between start() and wait(), `meanwhile` does what the rank does before it waits.
Perform nonblocking_with(const Act& meanwhile) {
  return [meanwhile](const Call& call, object::Communicator& c) {
    p2p::Request* request = nullptr;
    ASSERT_TRUE(start(call, c, request).ok()) << base::failure_text();
    meanwhile();
    ASSERT_TRUE(wait(request).ok());
  };
}

void exchange_blocks(object::Communicator& c, const Perform& perform, bool gaps, int most) {
  const int size = c.size, rank = c.rank;
  auto sent = numbers(size, gaps, [&](int to) { return count_of(rank, to, most); });
  auto got = numbers(size, gaps, [&](int from) { return count_of(from, rank, most); });
  for (int to = 0; to < size; ++to) fill(sent, rank, to, to);
  perform(alltoallv_call(sent.blocks(), got.blocks()), c);
  for (int from = 0; from < size; ++from) expect(got, from, rank, from);
  for (int root : roots(size)) {
    auto all = numbers(size, gaps, [&](int from) { return count_of(from, root, most); });
    perform(gatherv_call(sent.of(root), all.blocks(), root, c), c);
    for (int from = 0; rank == root && from < size; ++from) expect(all, from, root, from);
    auto scattered = numbers(size, gaps, [&](int to) { return count_of(root, to, most); });
    auto mine = numbers(1, gaps, [&](int) { return count_of(root, rank, most); });
    for (int to = 0; rank == root && to < size; ++to) fill(scattered, root, to, to);
    perform(scatterv_call(scattered.blocks(), mine.of(0), root, c), c);
    expect(mine, root, rank, 0);
  }
  auto own = numbers(1, gaps, [&](int) { return count_of(rank, 0, most); });
  auto all = numbers(size, gaps, [&](int from) { return count_of(from, 0, most); });
  fill(own, rank, 0, 0);
  perform(allgatherv_call(own.of(0), all.blocks(), c), c);
  for (int from = 0; from < size; ++from) expect(all, from, 0, from);
}

/// Some ranks have gaps, so they do not go straight; some parts are messages, which their sender alone knows.
TEST(straight, few_numbers_for_each_rank_arrive) {
  make_types();
  for (int size : {2, 3, 5})
    for (int most : {4, 200, 700, 20'000})
      for (int with_gaps : {0, 1, 2})
        for (const Perform& perform : {Perform(blocking), Perform(nonblocking), Perform(persistent)}) {
          SCOPED_TRACE(std::to_string(size) + " ranks, up to " + std::to_string(most) + " numbers");
          run_ranks(size, Conditions{64}, [&](object::Communicator& c) {
            for (int times = 0; times < 10; ++times)
              exchange_blocks(c, perform, (c.rank + times) % 3 < with_gaps, most);
          });
          ASSERT_FALSE(testing::Test::HasFailure());
        }
}

/// One rank does not begin a call before the others have: what they have published must not be published again, and they read later.
TEST(straight, what_is_left_of_a_call_is_done_once_the_last_rank_has_begun) {
  make_types();
  for (int size : {2, 3, 5})
    for (int most : {4, 20'000})
      for (int late : {0, 1}) {
        std::barrier<> begun(size), over(size);
        run_ranks(size, Conditions{64}, [&](object::Communicator& c) {
          const Perform others = nonblocking_with([&] { begun.arrive_and_wait(); });
          const Perform last = [&](const Call& call, object::Communicator& all) {
            begun.arrive_and_wait();
            nonblocking(call, all);
          };
          for (int times = 0; times < 5; ++times)
            exchange_blocks(
                c,
                [&](const Call& call, object::Communicator& all) {
                  (c.rank == late ? last : others)(call, all);
                  over.arrive_and_wait();
                },
                false, most);
        });
        ASSERT_FALSE(testing::Test::HasFailure());
      }
}

/// The last rank finds everything published, and that rank 1 sends it a message, but rank 1 does so only after another message, which
/// rank 2 receives in its wait: a start must not wait for that.
TEST(straight, a_start_does_not_wait_for_messages) {
  make_types();
  std::barrier<> in_turn(3);
  run_ranks(3, Conditions{64}, [&](object::Communicator& c) {
    auto count = [](int from, int) { return from == 1 ? 20'000 : 2; };
    auto sent = numbers(3, false, [&](int to) { return count(c.rank, to); });
    auto got = numbers(3, false, [&](int from) { return count(from, c.rank); });
    for (int to = 0; to < 3; ++to) fill(sent, c.rank, to, to);
    p2p::Request* request = nullptr;
    for (int starts : {2, 1, 0}) {
      if (c.rank == starts) ASSERT_TRUE(start(alltoallv_call(sent.blocks(), got.blocks()), c, request).ok());
      in_turn.arrive_and_wait();
    }
    ASSERT_TRUE(wait(request).ok());
    for (int from = 0; from < 3; ++from) expect(got, from, c.rank, from);
  });
}

/// A rank that reads nothing may be as many calls ahead as there are entries, or pieces; further calls wait, but not in their start.
TEST(straight, a_rank_that_only_publishes_runs_ahead) {
  make_types();
  constexpr int calls = ring_depth + 20;
  for (int count : {2, 250}) {
    std::barrier<> together(3);
    run_ranks(3, Conditions{everything}, [&](object::Communicator& c) {
      std::vector<NumbersByRank> sent, got;
      for (int i = 0; i < calls; ++i) {
        sent.push_back(numbers(1, false, [&](int) { return count; }));
        got.push_back(numbers(3, false, [&](int) { return count; }));
        fill(sent.back(), c.rank, i % 100, 0);
      }
      if (c.rank == 0) together.arrive_and_wait(); // the others have started all calls
      p2p::Request* requests[2 * calls] = {};
      for (int i = 0; i < calls; ++i) {
        Call gather = i % 2 == 0 ? gatherv_call(sent[i].of(0), got[i].blocks(), 0, c)
                                 : gather_call(sent[i].of(0), got[i].of(0), 0, c);
        ASSERT_TRUE(start(gather, c, requests[2 * i]).ok());
        if (c.rank != 0 && i == 0) EXPECT_TRUE(requests[0]->complete);
      }
      auto all = numbers(3, false, [&](int) { return count; });
      ASSERT_TRUE(start(allgatherv_call(sent[7].of(0), all.blocks(), c), c, requests[1]).ok());
      if (c.rank != 0) together.arrive_and_wait();
      for (p2p::Request* request : requests)
        if (request != nullptr) ASSERT_TRUE(wait(request).ok());
      for (int from = 0; from < 3; ++from) {
        expect(all, from, 7, from);
        for (int i = 0; c.rank == 0 && i < calls; ++i) expect(got[i], from, i % 100, from);
      }
    });
    ASSERT_FALSE(testing::Test::HasFailure());
  }
}

/// The area is idle, and a slice is free for as much as all ranks publish together; but what one rank publishes goes into a piece, and all
/// of these are in use.
TEST(straight, an_allgatherv_does_not_wait_for_a_piece_in_its_start) {
  make_types();
  ASSERT_TRUE(configure("auto", 0).ok()); // each rank has a processor
  std::barrier<> together(3);
  run_ranks(3, Conditions{everything}, [&](object::Communicator& c) {
    constexpr int count = 250, calls = Pieces::bytes / 1024;
    auto sent = numbers(1, false, [&](int) { return count; });
    auto got = numbers(3, false, [&](int) { return count; });
    fill(sent, c.rank, 0, 0);
    if (c.rank == 0) together.arrive_and_wait();
    p2p::Request* requests[calls + 1] = {};
    for (int i = 0; i < calls; ++i) {
      ASSERT_TRUE(start(gather_call(sent.of(0), got.of(0), 0, c), c, requests[i]).ok());
      if (c.rank != 0) EXPECT_TRUE(requests[i]->complete);
    }
    ASSERT_TRUE(start(allgatherv_call(sent.of(0), got.blocks(), c), c, requests[calls]).ok());
    if (c.rank != 0) together.arrive_and_wait(); // rank 0 has called nothing yet
    for (p2p::Request* request : requests) ASSERT_TRUE(wait(request).ok());
    for (int from = 0; from < 3; ++from) expect(got, from, 0, from);
  });
  ASSERT_TRUE(configure("auto").ok());
}

/// A part that is too long for its buffer is an error of the wait, also if it is there when the call is started.
TEST(straight, a_nonblocking_call_reports_a_part_that_is_too_long) {
  make_types();
  for (int sent : {1, 4})
    for (int late : {0, 1}) {
      std::barrier<> begun(2);
      run_ranks(2, Conditions{everything}, [&](object::Communicator& c) {
        auto out = numbers(2, false, [&](int to) { return c.rank == 0 && to == 1 ? sent : 2; });
        auto in = numbers(2, false, [](int) { return 2; });
        p2p::Request* request = nullptr;
        if (c.rank == late) begun.arrive_and_wait();
        ASSERT_TRUE(start(alltoallv_call(out.blocks(), in.blocks()), c, request).ok());
        if (c.rank != late) begun.arrive_and_wait();
        EXPECT_EQ(wait(request).code(), c.rank == 1 && sent == 4 ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
      });
      ASSERT_FALSE(testing::Test::HasFailure());
    }
}

TEST(straight, ranks_that_only_publish_take_turns_with_others) {
  make_types();
  constexpr int calls = 40 * ring_depth;
  for (int size : {2, 3})
    run_ranks(size, Conditions{everything}, [&](object::Communicator& c) {
      Datatype& type = *datatype::find_datatype(MPI_INT32_T);
      const datatype::Operation& operation = *datatype::find_operation(MPI_SUM);
      for (int i = 0; i < calls; ++i) {
        int own = c.rank + i, sum = -1;
        nonblocking(i % 2 == 0 ? scan_call(&own, &sum, 1, type, operation)
                               : exscan_call(&own, &sum, 1, type, operation),
                    c);
        const int terms = c.rank + (i % 2 == 0 ? 1 : 0);
        if (terms != 0) ASSERT_EQ(sum, terms * i + terms * (terms - 1) / 2);
      }
      for (int i = 0; i < calls; ++i) {
        auto sent = numbers(1, false, [](int) { return 2; });
        auto got = numbers(c.size, false, [](int) { return 2; });
        fill(sent, c.rank, i % 100, 0);
        nonblocking(gatherv_call(sent.of(0), got.blocks(), 0, c), c);
        for (int from = 0; c.rank == 0 && from < c.size; ++from) expect(got, from, i % 100, from);
      }
    });
}

TEST(straight, short_vectors_are_reduced_in_every_form) {
  make_types();
  for (int size : {2, 3, 5, 7})
    for (const Perform& perform : {Perform(blocking), Perform(nonblocking), Perform(persistent)})
      run_ranks(size, Conditions{everything}, [&](object::Communicator& c) {
        Datatype& type = *datatype::find_datatype(MPI_INT32_T);
        const datatype::Operation& operation = *datatype::find_operation(MPI_SUM);
        for (int elements : {1, 3, 24, 40, 250}) {
          // By rank; the sum of what all send is that of the first rank times their number, and more.
          std::vector<int> counts, own, result;
          for (int rank = 0; rank < size; ++rank) counts.push_back((rank * 2 + 1) % 3 * elements / 2);
          const int total = std::accumulate(counts.begin(), counts.end(), 0);
          const int most = std::max(total, elements * size);
          for (int i = 0; i < most; ++i) own.push_back(c.rank * 1'000 + i);
          result.assign(static_cast<std::size_t>(most), -1);
          auto expect_sum = [&](int first, int length, int ranks) {
            for (int i = 0; i < length; ++i)
              ASSERT_EQ(result[static_cast<std::size_t>(i)],
                        ranks * (first + i) + 1'000 * ranks * (ranks - 1) / 2)
                  << "element " << i << " of " << length << ", " << size << " ranks";
            for (std::size_t i = static_cast<std::size_t>(length); i < result.size(); ++i)
              ASSERT_EQ(result[i], -1);
            std::fill(result.begin(), result.end(), -1);
          };
          perform(scan_call(own.data(), result.data(), elements, type, operation), c);
          expect_sum(0, elements, c.rank + 1);
          perform(exscan_call(own.data(), result.data(), elements, type, operation), c);
          expect_sum(0, c.rank == 0 ? 0 : elements, c.rank);
          perform(reduce_scatter_block_call(own.data(), result.data(), elements, type, operation), c);
          expect_sum(c.rank * elements, elements, size);
          perform(reduce_scatter_call(own.data(), result.data(), datatype::Counts(counts.data()), type,
                                      operation),
                  c);
          expect_sum(std::accumulate(counts.begin(), counts.begin() + c.rank, 0),
                     counts[static_cast<std::size_t>(c.rank)], size);
          std::copy(own.begin(), own.begin() + elements, result.begin());
          perform(scan_call(MPI_IN_PLACE, result.data(), elements, type, operation), c);
          expect_sum(0, elements, c.rank + 1);
        }
      });
}

} // namespace
} // namespace near::coll::test
