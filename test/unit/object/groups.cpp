// Groups compared with a brute-force model, below and above the size from which an index is used.
#include "object/group.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace {

using namespace near::object;
using Members = std::vector<ProcessId>;

ProcessId process(std::uint32_t rank) { return {.rank = rank}; }

bool has(const Members& members, ProcessId address) {
  return std::find(members.begin(), members.end(), address) != members.end();
}

int position(const Members& members, ProcessId address) {
  auto at = std::find(members.begin(), members.end(), address);
  return at == members.end() ? MPI_UNDEFINED : static_cast<int>(at - members.begin());
}

class GroupModel : public testing::TestWithParam<std::uint32_t> {
protected:
  Members pick(std::uint32_t universe) {
    Members all;
    for (std::uint32_t rank = 0; rank < universe; ++rank)
      if (random_() % 3 != 0) all.push_back(process(rank));
    std::shuffle(all.begin(), all.end(), random_);
    return all;
  }
  std::mt19937 random_{12345};
};

struct Held {
  Group* group;
  explicit Held(Group* made) : group(made) {}
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() { release(group); }
  Group* operator->() const { return group; }
  Group& operator*() const { return *group; }
};

TEST_P(GroupModel, set_operations_agree_with_brute_force) {
  set_own_process(process(1));
  for (int round = 0; round < 20; ++round) {
    Members a = pick(GetParam()), b = pick(GetParam());
    Held ga(make_group(a)), gb(make_group(b));
    Members both, either = a, only_a;
    for (ProcessId x : a) (has(b, x) ? both : only_a).push_back(x);
    for (ProcessId x : b)
      if (!has(a, x)) either.push_back(x);
    Held u(group_union(*ga, *gb)), i(group_intersection(*ga, *gb)), d(group_difference(*ga, *gb));
    EXPECT_EQ(u->members, either);
    EXPECT_EQ(i->members, both);
    EXPECT_EQ(d->members, only_a);
    EXPECT_EQ(u->rank, position(either, process(1)));
    for (int rank = 0; rank < ga->size(); ++rank)
      EXPECT_EQ(translate_rank(*ga, rank, *gb), position(b, a[static_cast<std::size_t>(rank)]));
    Members shuffled = a;
    std::shuffle(shuffled.begin(), shuffled.end(), random_);
    Held gs(make_group(shuffled));
    EXPECT_EQ(group_compare(*ga, *ga), MPI_IDENT);
    EXPECT_EQ(group_compare(*ga, *gs), shuffled == a ? MPI_IDENT : MPI_SIMILAR);
    Members ordered_a = a, ordered_b = b;
    auto less = [](ProcessId x, ProcessId y) { return x.rank < y.rank; };
    std::sort(ordered_a.begin(), ordered_a.end(), less);
    std::sort(ordered_b.begin(), ordered_b.end(), less);
    int expected = a == b ? MPI_IDENT : ordered_a == ordered_b ? MPI_SIMILAR : MPI_UNEQUAL;
    EXPECT_EQ(group_compare(*ga, *gb), expected);
  }
}

TEST_P(GroupModel, include_and_exclude_keep_the_order) {
  Members a = pick(GetParam());
  Held group(make_group(a));
  std::vector<int> some;
  for (int rank = group->size() - 1; rank >= 0; rank -= 2) some.push_back(rank);
  Members included, rest;
  for (int rank : some) included.push_back(a[static_cast<std::size_t>(rank)]);
  for (ProcessId x : a)
    if (!has(included, x)) rest.push_back(x);
  Held in(group_include(*group, some)), out(group_exclude(*group, some));
  EXPECT_EQ(in->members, included);
  EXPECT_EQ(out->members, rest);
}

INSTANTIATE_TEST_SUITE_P(Sizes, GroupModel, testing::Values(2u, 7u, 40u, 500u));

TEST(Groups, the_empty_group_is_one_object_that_is_never_freed) {
  Group* empty = make_group({});
  EXPECT_EQ(empty, empty_group());
  EXPECT_EQ(public_handle(*empty), MPI_GROUP_EMPTY);
  release(empty);
  release(empty);
  EXPECT_EQ(find_group(MPI_GROUP_EMPTY), empty);
  EXPECT_EQ(empty->rank, MPI_UNDEFINED);
  EXPECT_EQ(find_group(MPI_GROUP_NULL), nullptr);
}

TEST(Groups, null_processes_keep_their_rank_in_translation) {
  Held group(make_group({process(3), process(4)}));
  EXPECT_EQ(translate_rank(*group, MPI_PROC_NULL, *empty_group()), MPI_PROC_NULL);
  EXPECT_EQ(translate_rank(*group, 1, *empty_group()), MPI_UNDEFINED);
}

TEST(Groups, processes_that_differ_only_in_their_job_are_different) {
  Members members;
  for (std::uint32_t n = 0; n < 100; ++n) members.push_back({.job = n % 5, .rank = n / 5});
  Held group(make_group(members));
  for (int rank = 0; rank < 100; ++rank)
    EXPECT_EQ(rank_of(*group, members[static_cast<std::size_t>(rank)]), rank);
}

} // namespace
