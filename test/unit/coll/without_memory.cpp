// Ranks whose memory ends in the middle of a collective: it fails there, and nobody waits for what does not come.
#include "without_memory.h"

#include "memory.h"

#include <algorithm>
#include <barrier>
#include <initializer_list>
#include <optional>

namespace near::coll::test {
namespace {

struct NamedCall {
  const char* name;
  Call (*make)(Arguments& with, const object::Communicator& c, int root);
};

/// In entries, in slices, and in several chunks; numbers of elements.
constexpr MPI_Count all_lengths[] = {4, 2'000, 40'000};

constexpr NamedCall every_call[] = {
    {"barrier", [](Arguments&, const object::Communicator&, int) { return barrier_call(); }},
    {"broadcast", [](Arguments& with, const object::Communicator&,
                     int root) { return broadcast_call(with.sent(), root); }},
    {"reduce",
     [](Arguments& with, const object::Communicator& c, int root) {
       return reduce_call(with.out.data(), with.in.data(), with.count, with.type, summing(), root, c);
     }},
    {"allreduce",
     [](Arguments& with, const object::Communicator&, int) {
       return allreduce_call(with.out.data(), with.in.data(), with.count, with.type, summing());
     }},
    {"scan",
     [](Arguments& with, const object::Communicator&, int) {
       return scan_call(with.out.data(), with.in.data(), with.count, with.type, summing());
     }},
    {"reduce_scatter",
     [](Arguments& with, const object::Communicator&, int) {
       return reduce_scatter_call(with.out.data(), with.in.data(), Counts(with.counts.data()), with.type,
                                  summing());
     }},
    {"gather", [](Arguments& with, const object::Communicator& c,
                  int root) { return gather_call(with.sent(), with.received(), root, c); }},
    {"gatherv", [](Arguments& with, const object::Communicator& c,
                   int root) { return gatherv_call(with.sent(), with.blocks(with.in), root, c); }},
    {"scatter", [](Arguments& with, const object::Communicator& c,
                   int root) { return scatter_call(with.sent(), with.received(), root, c); }},
    {"scatterv", [](Arguments& with, const object::Communicator& c,
                    int root) { return scatterv_call(with.blocks(with.out), with.received(), root, c); }},
    {"allgather", [](Arguments& with, const object::Communicator& c,
                     int) { return allgather_call(with.sent(), with.received(), c); }},
    {"allgatherv", [](Arguments& with, const object::Communicator& c,
                      int) { return allgatherv_call(with.sent(), with.blocks(with.in), c); }},
    {"alltoall", [](Arguments& with, const object::Communicator&,
                    int) { return alltoall_call(with.sent(), with.received()); }},
    {"alltoallv", [](Arguments& with, const object::Communicator&,
                     int) { return alltoallv_call(with.blocks(with.out), with.blocks(with.in)); }},
};

enum class Form {
  blocking,
  nonblocking,
  behind_another
}; // the latter: nonblocking, after one that is under way

constexpr const char* name_of(Form form) {
  return form == Form::blocking ? "blocking" : form == Form::nonblocking ? "nonblocking" : "behind another";
}

/// Calls it with more and more memory at rank `poor`, until that is enough. A nonblocking call begins there first.
void with_few_allocations(const NamedCall& named, int size, MPI_Count elements, int poor, Form form) {
  const bool later = form != Form::blocking;
  constexpr int most = 400;
  int allocations = 0;
  for (bool enough = false; !enough && allocations < most; ++allocations) {
    SCOPED_TRACE(base::format("{} of {} elements on {} ranks, {}, {} allocations at rank {}", named.name,
                              elements, size, name_of(form), allocations, poor));
    std::barrier<> together(size);
    const Conditions conditions{.eager_bytes = 4096, .messages_remain = true};
    // Ranks may still read the buffers of one that has left a single copy, before they learn that it has.
    std::vector<Arguments> all(static_cast<std::size_t>(size), Arguments(size, elements));
    run_ranks(size, conditions, [&](object::Communicator& c) {
      Arguments& arguments = all[static_cast<std::size_t>(c.rank)];
      const Call call = named.make(arguments, c, 0);
      p2p::Request *request = nullptr, *earlier = nullptr;
      if (later && c.rank != poor) together.arrive_and_wait();
      if (form == Form::behind_another) EXPECT_TRUE(tells_of_memory(start(barrier_call(), c, earlier)));
      std::optional<FewAllocations> few;
      if (c.rank == poor) few.emplace(allocations);
      Result result = begin(call, c, later, request);
      few.reset();
      if (later && c.rank == poor) together.arrive_and_wait();
      if (earlier != nullptr) EXPECT_TRUE(tells_of_memory(wait(earlier)));
      if (request != nullptr) result = wait(request);
      EXPECT_TRUE(tells_of_memory(result)) << result.code();
      if (c.rank == poor) enough = result.ok();
      EXPECT_TRUE(tells_of_memory(run(barrier_call(), c)));
    });
    ASSERT_FALSE(testing::Test::HasFailure());
  }
  EXPECT_LT(allocations, most);
}

/// The first use of some functions makes objects that remain: not by a rank that has no memory.
void use_everything() {
  make_types();
  for (const NamedCall& named : every_call)
    for (MPI_Count elements : all_lengths)
      run_ranks(3, Conditions{everything}, [&](object::Communicator& c) {
        Arguments arguments(c.size, elements);
        blocking(named.make(arguments, c, 0), c);
        nonblocking(named.make(arguments, c, 0), c);
      });
}

TEST(without_memory, nobody_waits_for_a_nonblocking_call_that_cannot_be_made) {
  use_everything();
  auto try_all = [](const char* algorithms, int processors, std::initializer_list<int> sizes_of_groups) {
    ASSERT_TRUE(configure(algorithms, processors).ok());
    for (const NamedCall& named : every_call)
      for (int size : sizes_of_groups)
        for (MPI_Count elements : all_lengths)
          for (int poor : {0, 1}) with_few_allocations(named, size, elements, poor, Form::nonblocking);
  };
  try_all("auto", 0, {2, 3});
  try_all("auto", 2, {3});
  try_all("scatter=single_copy,alltoall=single_copy", 0, {3});
  ASSERT_TRUE(configure("auto").ok());
}

/// Then it does not go straight.
TEST(without_memory, nobody_waits_for_a_call_that_cannot_be_made_while_another_is_under_way) {
  use_everything();
  for (const NamedCall& named : every_call)
    for (MPI_Count elements : all_lengths)
      for (int poor : {0, 1}) with_few_allocations(named, 3, elements, poor, Form::behind_another);
}

/// In a blocking call that consists of messages, ranks do not look at the area while they wait for them.
TEST(without_memory, nobody_waits_in_an_area_for_a_rank_that_cannot_allocate) {
  use_everything();
  for (int processors : {0, 2}) {
    ASSERT_TRUE(configure("scatter=single_copy,alltoall=single_copy", processors).ok());
    for (const NamedCall& named : every_call)
      for (int poor : {0, 1}) {
        with_few_allocations(named, 2, all_lengths[0], poor, Form::blocking);
        for (MPI_Count elements : all_lengths) with_few_allocations(named, 3, elements, poor, Form::blocking);
      }
  }
  ASSERT_TRUE(configure("auto").ok());
}

/// Ranks whose data needs no slice, or which find one, go on as ever.
TEST(without_memory, nobody_waits_for_a_rank_that_has_few_slices) {
  make_types();
  for (int processors : {0, 2}) {
    ASSERT_TRUE(configure("auto", processors).ok());
    for (const NamedCall& named : every_call)
      for (MPI_Count elements : all_lengths)
        for (bool later : {false, true})
          for (int poor : {0, 1})
            for (std::size_t slices : {0, 1, 2}) {
              SCOPED_TRACE(base::format("{} of {} elements, {}, {} slices at rank {}", named.name, elements,
                                        later ? "nonblocking" : "blocking", slices, poor));
              const Conditions conditions{
                  .eager_bytes = 4096, .slices = most_slices, .without_slices = poor, .few_slices = slices};
              run_ranks(3, conditions, [&](object::Communicator& c) {
                Arguments arguments(c.size, elements);
                p2p::Request* request = nullptr;
                Result result = begin(named.make(arguments, c, 0), c, later, request);
                if (request != nullptr) result = wait(request);
                EXPECT_TRUE(result.ok() || (slices == 0 && result.code() == MPI_ERR_NO_MEM)) << result.code();
                blocking(barrier_call(), c);
              });
              ASSERT_FALSE(testing::Test::HasFailure());
            }
  }
  ASSERT_TRUE(configure("auto").ok());
}

/// Its first step may read what this rank, or another one, has not published.
TEST(without_memory, a_call_that_fails_while_it_is_recorded_does_nothing_else) {
  make_types();
  ASSERT_TRUE(configure("allreduce=shared_flat").ok());
  for (int poor : {0, 1}) {
    std::barrier<> together(3);
    const Conditions conditions{.slices = most_slices, .without_slices = poor};
    run_ranks(3, conditions, [&](object::Communicator& c) {
      Arguments arguments(c.size, 2'000);
      p2p::Request* request = nullptr;
      if (c.rank != poor) together.arrive_and_wait();
      ASSERT_TRUE(start(allreduce_call(arguments.out.data(), arguments.in.data(), arguments.count,
                                       arguments.type, summing()),
                        c, request)
                      .ok());
      if (c.rank == poor) together.arrive_and_wait();
      EXPECT_EQ(wait(request).code(), MPI_ERR_NO_MEM);
      blocking(barrier_call(), c);
    });
  }
  ASSERT_TRUE(configure("auto").ok());
}

/// The root of a gatherv alone learns that one of the others has no memory. It still receives the long blocks of those that have.
TEST(without_memory, long_blocks_of_a_gatherv_arrive_although_another_rank_has_no_slice) {
  make_types();
  for (bool later : {false, true})
    run_ranks(4, Conditions{.slices = 2, .without_slices = 1}, [&](object::Communicator& c) {
      constexpr int root = 0, poor = 1;
      Arguments arguments(c.size, 40'000);
      arguments.counts[poor] = 2'000; // is published, the others are messages
      std::fill(arguments.out.begin(), arguments.out.end(), c.rank);
      Buffer own = arguments.sent();
      own.count = arguments.counts[static_cast<std::size_t>(c.rank)];
      p2p::Request* request = nullptr;
      Result result = begin(gatherv_call(own, arguments.blocks(arguments.in), root, c), c, later, request);
      if (request != nullptr) result = wait(request);
      if (c.rank == root || c.rank == poor)
        EXPECT_EQ(result.code(), MPI_ERR_NO_MEM);
      else
        EXPECT_TRUE(result.ok());
      if (c.rank == root)
        for (int from : {2, 3})
          EXPECT_EQ(arguments.in[static_cast<std::size_t>(from * 40'000 + 39'999)], from);
      blocking(barrier_call(), c);
    });
}

} // namespace
} // namespace near::coll::test
