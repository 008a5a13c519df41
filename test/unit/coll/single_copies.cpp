// Ranks that read each other's data where it lies.
#include "coll/shared/area.h"
#include "forms.h"

#include <barrier>
#include <numeric>
#include <string>
#include <vector>

namespace near::coll::test {
namespace {

constexpr MPI_Count elements_of_block = 20'000; // 80 KB

using MakeCall = std::function<Call(int* out, int* in, object::Communicator& c)>;

/// Those that have such an algorithm.
const std::vector<MakeCall>& calls() {
  static const auto of = [](int* at) {
    return Buffer{at, elements_of_block, datatype::find_datatype(MPI_INT)};
  };
  static const std::vector<MakeCall> all{
      [](int* out, int* in, object::Communicator& c) { return scatter_call(of(out), of(in), c.size - 1, c); },
      [](int* out, int* in, object::Communicator&) { return alltoall_call(of(out), of(in)); }};
  return all;
}

struct Vectors {
  explicit Vectors(const object::Communicator& c)
      : out(static_cast<std::size_t>(elements_of_block * c.size)), in(out.size()) {
    std::iota(out.begin(), out.end(), c.rank * 1'000'000);
  }
  std::vector<int> out, in;
};

/// The algorithm is named: whether it is the fastest one is another question. Where it cannot be taken, the calls consist of
/// messages.
class SingleCopies : public testing::Test {
protected:
  void SetUp() override {
    make_types();
    ASSERT_TRUE(configure("scatter=single_copy,alltoall=single_copy").ok());
  }
  void TearDown() override { ASSERT_TRUE(configure("auto").ok()); }

  /// Whether the call reads data of other ranks in their memory; without slices, it comes by messages otherwise. The root of a
  /// scatter reads nothing in either case.
  static bool reads_memory(const MakeCall& make, const Perform& perform, object::Communicator& c) {
    Vectors data(c);
    const Call call = make(data.out.data(), data.in.data(), c);
    const std::uint64_t before = counters().area_bytes.load_relaxed();
    perform(call, c);
    const bool root = call.collective == Collective::scatter && c.rank == call.root;
    return root || counters().area_bytes.load_relaxed() != before;
  }
};

constexpr Conditions without_any_slice{.eager_bytes = everything, .slices = 0};

TEST_F(SingleCopies, are_taken_by_all_forms_once_the_ranks_know_that_they_can_read) {
  for (int size : {3, 5})
    for (const MakeCall& make : calls())
      run_ranks(size, without_any_slice, [&](object::Communicator& c) {
        EXPECT_TRUE(reads_memory(make, blocking, c));
        EXPECT_TRUE(reads_memory(make, nonblocking, c));
        EXPECT_TRUE(reads_memory(make, persistent, c));
      });
}

TEST_F(SingleCopies, are_taken_by_a_persistent_call_that_comes_first) {
  for (const MakeCall& make : calls())
    run_ranks(3, without_any_slice,
              [&](object::Communicator& c) { EXPECT_TRUE(reads_memory(make, persistent, c)); });
}

/// It may not wait until the ranks have told each other whether they can read.
TEST_F(SingleCopies, are_not_taken_by_a_nonblocking_call_that_comes_first) {
  for (const MakeCall& make : calls())
    run_ranks(3, without_any_slice, [&](object::Communicator& c) {
      Vectors data(c);
      nonblocking(make(data.out.data(), data.in.data(), c), c);
      EXPECT_EQ(counters().area_bytes.load_relaxed(), 0u);
      EXPECT_TRUE(reads_memory(make, blocking, c));
    });
}

TEST_F(SingleCopies, are_not_taken_if_one_rank_cannot_read) {
  for (const MakeCall& make : calls())
    for (int rank = 0; rank < 3; ++rank) {
      Conditions conditions = without_any_slice;
      conditions.without_reading = rank;
      run_ranks(3, conditions, [&](object::Communicator& c) {
        Vectors data(c);
        for (const Perform& perform : {Perform(blocking), Perform(nonblocking), Perform(persistent)})
          perform(make(data.out.data(), data.in.data(), c), c);
        EXPECT_EQ(counters().area_bytes.load_relaxed(), 0u);
      });
    }
}

/// The others read its data until it returns.
TEST_F(SingleCopies, a_rank_may_use_its_buffer_again_once_it_returns) {
  for (const MakeCall& make : calls())
    for (const Perform& perform : {Perform(blocking), Perform(nonblocking)})
      run_ranks(4, Conditions{.eager_bytes = everything, .slices = 2}, [&](object::Communicator& c) {
        Vectors data(c);
        for (int round = 0; round < 20; ++round) {
          for (int& each : data.out) each += c.size;
          const Call call = make(data.out.data(), data.in.data(), c);
          perform(call, c);
          const int from = call.collective == Collective::scatter ? c.size - 1 : (c.rank + 1) % c.size;
          const int* seen =
              data.in.data() +
              (call.collective == Collective::scatter ? 0 : from * static_cast<int>(elements_of_block));
          const int first =
              from * 1'000'000 + c.rank * static_cast<int>(elements_of_block) + (round + 1) * c.size;
          ASSERT_EQ(seen[0], first);
          ASSERT_EQ(seen[elements_of_block - 1], first + static_cast<int>(elements_of_block) - 1);
        }
      });
}

/// With slices nobody would read what a rank says that takes itself for the root of a scatter.
TEST_F(SingleCopies, a_wrong_root_is_found) {
  std::barrier<> together(3);
  run_ranks(3, Conditions{.eager_bytes = everything, .slices = 2}, [&](object::Communicator& c) {
    Vectors data(c);
    blocking(calls()[0](data.out.data(), data.in.data(), c), c);
    const Buffer out{data.out.data(), elements_of_block, datatype::find_datatype(MPI_INT)},
        in{data.in.data(), elements_of_block, out.type};
    const Result result = run(scatter_call(out, in, c.rank == 1 ? 1 : 0, c), c);
    together.arrive_and_wait();             // the others may still read this rank's data
    if (c.rank == 2 && result.ok()) return; // its root makes the same call
    EXPECT_EQ(result.code(), MPI_ERR_OTHER);
    const std::string text(base::failure_text());
    EXPECT_NE(text.find("root 1"), std::string::npos) << text;
    EXPECT_NE(text.find("root 0"), std::string::npos) << text;
  });
}

TEST_F(SingleCopies, ranks_that_call_different_collectives_get_an_error) {
  std::barrier<> together(3);
  for (bool agreed : {false, true})
    run_ranks(3, Conditions{.eager_bytes = everything, .slices = 2}, [&](object::Communicator& c) {
      Vectors data(c);
      if (agreed) blocking(calls()[1](data.out.data(), data.in.data(), c), c);
      const Call call = calls()[c.rank == 1 ? 0 : 1](data.out.data(), data.in.data(), c);
      EXPECT_EQ(run(call, c).code(), MPI_ERR_OTHER);
      together.arrive_and_wait(); // the others may still read this rank's data
    });
}

} // namespace
} // namespace near::coll::test
