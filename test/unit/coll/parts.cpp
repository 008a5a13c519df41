// Collective groups that are some ranks of a communicator: subsets, and the leaders of blocks of ranks.
#include "coll/coll.h"
#include "coll/registry.h"
#include "coll/schedule.h"
#include "fake_p2p.h"
#include "rank_lists.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace near::coll::test {
namespace {

constexpr MPI_Count length = 5;

using Vector = std::vector<int>;

/// What `rank` contributes.
Vector own(int rank) {
  Vector made;
  for (int i = 0; i < length; ++i) made.push_back(rank * 100 + i);
  return made;
}

Vector sum_of(const std::vector<int>& ranks) {
  Vector sum(length, 0);
  for (int rank : ranks)
    for (int i = 0; i < length; ++i)
      sum[static_cast<std::size_t>(i)] += own(rank)[static_cast<std::size_t>(i)];
  return sum;
}

Buffer buffer_of(Vector& vector) { return Buffer{vector.data(), length, datatype::find_predefined(MPI_INT)}; }

Call allreduce(Vector& vector) {
  return allreduce_call(MPI_IN_PLACE, vector.data(), length, *datatype::find_predefined(MPI_INT),
                        *datatype::find_operation(MPI_SUM));
}

void make_objects() {
  ASSERT_TRUE(datatype::make_predefined_types().ok());
  ASSERT_TRUE(datatype::make_predefined_operations().ok());
}

TEST(Parts, a_rank_list_says_where_its_ranks_are) {
  const int some[] = {5, 0, 3};
  EXPECT_EQ(members(RankList::all(3)), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(members(RankList::strided(1, 4, 3)), (std::vector<int>{1, 5, 9}));
  EXPECT_EQ(members(RankList::of(some)), (std::vector<int>{5, 0, 3}));
  EXPECT_EQ(RankList::of(some).find(3), 2);
  EXPECT_EQ(RankList::of(some).find(4), -1);
  EXPECT_EQ(RankList::strided(1, 4, 3).find(9), 2);
}

TEST(Parts, allreduce_over_some_ranks_leaves_the_others_alone) {
  make_objects();
  const int some[] = {6, 1, 4, 3, 0};
  for (RankList list : {RankList::of(some), RankList::strided(1, 2, 3), RankList::strided(2, 1, 1)})
    for (std::size_t eager : {std::size_t{0}, std::size_t{1024}})
      run_ranks(7, Conditions{eager}, [&](object::Communicator& c) {
        TagSpace tags(3);
        for (int times = 0; times < 3; ++times) {
          CollectiveGroup group(c, list, tags);
          EXPECT_EQ(group.size(), list.size());
          EXPECT_EQ(group.rank(), list.find(c.rank));
          Vector vector = own(c.rank);
          if (group.is_member()) ASSERT_TRUE(run(group, allreduce(vector)).ok());
          EXPECT_EQ(vector, group.is_member() ? sum_of(members(list)) : own(c.rank));
        }
      });
}

TEST(Parts, calls_of_some_ranks_do_not_disturb_those_of_all) {
  make_objects();
  const int some[] = {3, 1};
  run_ranks(4, Conditions{1024}, [&](object::Communicator& c) {
    TagSpace tags(0);
    // Ranks that are not in the list do not make these calls.
    for (int times = 0; c.rank % 2 == 1 && times < 3; ++times) {
      CollectiveGroup group(c, RankList::of(some), tags);
      Vector vector = own(c.rank);
      ASSERT_TRUE(run(group, allreduce(vector)).ok());
      EXPECT_EQ(vector, sum_of({1, 3}));
    }
    Vector vector = own(c.rank);
    ASSERT_TRUE(run(allreduce(vector), c).ok());
    EXPECT_EQ(vector, sum_of({0, 1, 2, 3}));
  });
}

/// An allreduce in two levels: each block of `block` ranks reduces to its leader, the first rank; the leaders
/// exchange; each leader broadcasts to its block.
Result by_leaders(CollectiveGroup& whole, int block, Vector& vector) {
  const int begin = whole.rank() / block * block;
  const int leaders = (whole.size() + block - 1) / block;
  CollectiveGroup near(whole, RankList::strided(begin, 1, std::min(block, whole.size() - begin)));
  CollectiveGroup across(whole, RankList::strided(0, block, leaders));
  Call call = allreduce(vector);
  call.collective = Collective::reduce;
  if (near.rank() != 0) call.receive.address = nullptr;
  NEAR_TRY(run(near, call));
  if (across.is_member()) NEAR_TRY(run(across, allreduce(vector)));
  return run(near, broadcast_call(buffer_of(vector), 0));
}

TEST(Parts, an_allreduce_in_two_levels_runs_over_the_leaders_of_blocks) {
  make_objects();
  for (int size : {1, 2, 5, 8, 9})
    for (int block : {1, 2, 3, 4})
      run_ranks(size, Conditions{0}, [&](object::Communicator& c) {
        Vector vector = own(c.rank);
        CollectiveGroup whole(c);
        ASSERT_TRUE(by_leaders(whole, block, vector).ok());
        EXPECT_EQ(vector, sum_of(members(RankList::all(size)))) << size << " ranks in blocks of " << block;
      });
}

TEST(Parts, an_allreduce_over_leaders_can_be_recorded_and_run_again) {
  make_objects();
  run_ranks(7, Conditions{0}, [&](object::Communicator& c) {
    Vector vector(length);
    auto schedule = std::make_unique<Schedule>(false);
    {
      CollectiveGroup whole(c, schedule.get());
      ASSERT_TRUE(by_leaders(whole, 3, vector).ok());
    }
    p2p::Request* request = nullptr;
    ASSERT_TRUE(p2p::make_scheduled(&c, std::move(schedule), true, request).ok());
    for (int times = 0; times < 2; ++times) {
      const Vector fresh = own(c.rank);
      std::copy(fresh.begin(), fresh.end(), vector.begin()); // the schedule has recorded this address
      ASSERT_TRUE(p2p::start(*request).ok());
      ASSERT_TRUE(wait(request).ok());
      EXPECT_EQ(vector, sum_of(members(RankList::all(7))));
    }
    MPI_Request handle = MPI_REQUEST_NULL;
    p2p::free_request(handle, *request);
  });
}

TEST(Parts, a_part_of_a_part_refers_to_the_ranks_of_the_larger_one) {
  make_objects();
  const int odd[] = {7, 5, 3, 1};
  run_ranks(8, Conditions{0}, [&](object::Communicator& c) {
    TagSpace tags(1);
    CollectiveGroup outer(c, RankList::of(odd), tags);
    if (!outer.is_member()) return;
    CollectiveGroup inner(outer, RankList::strided(1, 2, 2)); // ranks 5 and 1 of the communicator
    Vector vector = own(c.rank);
    if (inner.is_member()) ASSERT_TRUE(run(inner, allreduce(vector)).ok());
    EXPECT_EQ(vector, c.rank == 5 || c.rank == 1 ? sum_of({1, 5}) : own(c.rank));
  });
}

} // namespace
} // namespace near::coll::test
