// How often a rank waits in a collective where ranks share processors: each wait costs it a turn of its processor.
#include "coll/shared/area.h"
#include "forms.h"
#include "transport/registry.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace near::coll::test {
namespace {

struct Case {
  const char* name;
  std::function<Call()> make;
};

/// Collectives of blocks of `count` elements, in buffers of a block for each rank.
std::vector<Case> cases(const object::Communicator& c, std::vector<std::int64_t>& send,
                        std::vector<std::int64_t>& receive, MPI_Count count) {
  Datatype& type = *datatype::find_datatype(MPI_INT64_T);
  const datatype::Operation& sum = *datatype::find_operation(MPI_SUM);
  auto* out = send.data();
  auto* in = receive.data();
  const Buffer from{out, count, &type}, to{in, count, &type};
  const int root = c.size / 2;
  return {
      {"barrier", [] { return barrier_call(); }},
      {"broadcast", [=] { return broadcast_call(from, root); }},
      {"reduce", [=, &type, &sum, &c] { return reduce_call(out, in, count, type, sum, root, c); }},
      {"allreduce", [=, &type, &sum] { return allreduce_call(out, in, count, type, sum); }},
      {"gather", [=, &c] { return gather_call(from, to, root, c); }},
      {"scatter", [=, &c] { return scatter_call(from, to, root, c); }},
      {"allgather", [=, &c] { return allgather_call(from, to, c); }},
      {"alltoall", [=] { return alltoall_call(from, to); }},
      {"reduce_scatter_block",
       [=, &type, &sum] { return reduce_scatter_block_call(out, in, count, type, sum); }},
      {"scan", [=, &type, &sum] { return scan_call(out, in, count, type, sum); }},
      {"exscan", [=, &type, &sum] { return exscan_call(out, in, count, type, sum); }},
  };
}

const Area& area_of(const object::Communicator& c) {
  return *static_cast<const AreaExtension&>(*c.extension).area;
}

/// Calls the collective `calls` times at each rank, and returns the most waits of any rank.
std::uint64_t most_waits(int size, std::size_t which, MPI_Count count, int calls) {
  std::vector<std::uint64_t> waits(static_cast<std::size_t>(size));
  Conditions conditions{everything, most_slices};
  conditions.one_processor = true;
  run_ranks(size, conditions, [&](object::Communicator& c) {
    const auto elements = static_cast<std::size_t>(count * c.size);
    std::vector<std::int64_t> send(elements, c.rank), receive(elements);
    const Case chosen = cases(c, send, receive, count)[which];
    const std::uint64_t before = area_of(c).waits();
    for (int i = 0; i < calls; ++i) blocking(chosen.make(), c);
    waits[static_cast<std::size_t>(c.rank)] = area_of(c).waits() - before;
  });
  return *std::max_element(waits.begin(), waits.end());
}

class Waits : public testing::Test {
protected:
  void SetUp() override {
    make_types();
    ASSERT_TRUE(configure("auto", 1).ok());
    object::Communicator none;
    std::vector<std::int64_t> empty;
    none.size = 1;
    for (const Case& each : cases(none, empty, empty, 0)) names_.emplace_back(each.name);
  }
  void TearDown() override { ASSERT_TRUE(configure("auto").ok()); }
  std::vector<std::string> names_;
};

TEST_F(Waits, a_rank_waits_at_most_once_for_each_call_with_little_data) {
  constexpr int calls = 40;
  for (std::size_t which = 0; which < names_.size(); ++which)
    for (int size : {2, 3, 8, 32})
      for (MPI_Count count : {1, 4, 16})
        EXPECT_LE(most_waits(size, which, count, calls), calls)
            << names_[which] << " of " << count << " elements on " << size << " ranks";
}

/// A root or a rank that only publishes is ahead of the others by all entries or pieces, and then lets them catch up.
TEST_F(Waits, short_data_of_one_rank_or_for_one_rank_waits_once_for_all_entries_or_pieces) {
  constexpr int calls = 10 * ring_depth;
  struct Block {
    const char* name;
    MPI_Count elements; // of a block, if 1 KiB is published
  };
  for (const Block& block : {Block{"broadcast", 128}, {"reduce", 128}, {"gather", 128}, {"scatter", 16}}) {
    const auto which =
        static_cast<std::size_t>(std::find(names_.begin(), names_.end(), block.name) - names_.begin());
    ASSERT_LT(which, names_.size()) << block.name;
    for (auto [count, ahead] :
         {std::pair{block.elements / 16, ring_depth}, {block.elements, Number{Pieces::bytes / piece_bytes}}})
      EXPECT_LE(most_waits(8, which, count, calls), calls / ahead + 2)
          << block.name << " of blocks of " << count << " elements";
  }
}

/// Long data waits for slices, and reductions by shares for the results. At most so many waits a call, on eight ranks:
TEST_F(Waits, a_rank_waits_rarely_in_calls_with_long_data) {
  constexpr MPI_Count elements_of_64_kib = 8192;
  constexpr int calls = 10, size = 8;
  struct Bound {
    const char* name;
    std::uint64_t of_64_kib, of_256_kib;
  };
  for (const Bound& bound : {Bound{"broadcast", 1, 1},
                             {"reduce", 1, 1},
                             {"allreduce", 1, 2},
                             {"gather", 1, 1},
                             {"scatter", 1, 4},
                             {"allgather", 1, 1},
                             {"alltoall", 2, 8},
                             {"reduce_scatter_block", 2, 8},
                             {"scan", 1, 1},
                             {"exscan", 1, 1}}) {
    const auto which =
        static_cast<std::size_t>(std::find(names_.begin(), names_.end(), bound.name) - names_.begin());
    ASSERT_LT(which, names_.size()) << bound.name;
    EXPECT_LE(most_waits(size, which, elements_of_64_kib, calls), bound.of_64_kib * calls) << bound.name;
    EXPECT_LE(most_waits(size, which, 4 * elements_of_64_kib, calls), bound.of_256_kib * calls) << bound.name;
  }
}

TEST_F(Waits, a_rank_waits_twice_for_each_slice_of_shares) {
  constexpr MPI_Count elements_of_64_kib = 8192;
  constexpr int calls = 10, size = 8;
  ASSERT_TRUE(configure("allreduce=shared_shares", 1).ok());
  const auto which =
      static_cast<std::size_t>(std::find(names_.begin(), names_.end(), "allreduce") - names_.begin());
  EXPECT_LE(most_waits(size, which, elements_of_64_kib, calls), 2u * calls);
  EXPECT_LE(most_waits(size, which, 4 * elements_of_64_kib, calls), 3u * calls);
}

TEST_F(Waits, a_rank_polls_for_the_time_it_is_told_before_it_waits) {
  ASSERT_TRUE(configure("auto").ok()); // ranks do not share processors
  Conditions conditions{everything, most_slices};
  conditions.one_processor = true;
  // 16 ns for a check, at most 4,096 of them, and a poll after each 16th.
  for (const auto& [spin_ns, expected] : {std::pair{100'000u, 256u}, {10'000u, 39u}, {0u, 0u}})
    run_ranks(2, conditions, [&, spin_ns = spin_ns, expected = expected](object::Communicator& c) {
      transport::wait_settings.spin_ns = spin_ns;
      const std::uint64_t before = polls();
      blocking(barrier_call(), c);
      if (c.rank == 0) // waits for the other one, which runs afterwards
        EXPECT_EQ(polls() - before, expected);
    });
}

/// The ranks of a barrier wait for the last one, so these tests do count waits.
TEST_F(Waits, all_ranks_but_the_last_wait_in_a_barrier) { EXPECT_GE(most_waits(8, 0, 1, 40), 30u); }

} // namespace
} // namespace near::coll::test
